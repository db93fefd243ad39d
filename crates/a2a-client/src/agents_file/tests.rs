use std::{fs, os::unix::fs::symlink};

use volcanic_base::Secret;

use super::*;

fn parse(json: &str) -> AgentsFile {
    parse_agents(json.as_bytes()).unwrap()
}

#[track_caller]
fn check_skipped(json: &str, expected: &[&str]) {
    let file = parse(json);
    assert_eq!(file.agents, vec![], "{json}");
    assert_eq!(file.skipped, expected, "{json}");
}

#[test]
fn entry_with_everything_is_read() {
    let file = parse(
        r#"[{"name":"travel-bot","url":"https://travel.example/a?k=1","key":"k_1","description":"Trips","protocol":"1.0",
            "binding":"jsonrpc","headers":{"X-Gateway":"env:A2A_KEY_GATE"},"trustedOrigins":["https://api.example:443/x"],
            "unknown":{"kept":true}}]"#,
    );
    let mut entry = AgentEntry::new(
        AgentName::new("travel-bot").unwrap(),
        Url::parse("https://travel.example/a?k=1").unwrap(),
    );
    entry.key = Some(KeySource::Plain(Secret::new("k_1")));
    entry.description = Some("Trips".to_owned());
    entry.protocol = Some(AgentProtocol::V1);
    entry.binding = Some(AgentBinding::JsonRpc);
    entry.headers =
        vec![(HeaderName::from_static("x-gateway"), KeySource::Env("A2A_KEY_GATE".to_owned()))];
    entry.trusted_origins = vec!["https://api.example".to_owned()];
    assert_eq!(file, AgentsFile { agents: vec![entry.clone()], skipped: vec![] });
    assert_eq!(entry.origin(), "https://travel.example");
    assert_eq!(entry.shown_url(), "https://travel.example/a");
}

#[test]
fn empty_key_and_null_members_are_absent() {
    let file = parse(r#"[{"name":"a","url":"http://localhost:1","key":"","description":null}]"#);
    let entry = &file.agents[0];
    assert_eq!((&entry.key, &entry.description), (&None, &None));
}

#[test]
fn bad_entries_are_skipped_and_the_others_work() {
    let file = parse(
        r#"[7, {"name":"Bad Name","url":"http://x"}, {"name":"a","url":"http://a.example"},
            {"name":"a","url":"http://b.example"}, {"name":"b"}]"#,
    );
    assert_eq!(file.agents.len(), 1);
    assert_eq!(file.agents[0].url.as_str(), "http://a.example/");
    assert_eq!(
        file.skipped,
        [
            "entry 1 (it is not an object)",
            "\"Bad Name\" (a name is 1 to 40 characters of a to z, 0 to 9 and the hyphen)",
            "a (the name is taken by an earlier entry)",
            "\"b\" (it has no url)",
        ]
    );
}

#[test]
fn bad_urls_are_skipped() {
    for (url, reason) in [
        ("travel.example", "the url cannot be read: relative URL without a base"),
        ("ftp://x/", "the url does not begin with http:// or https://"),
        ("https://me:pw@x/", "the url holds a user name or a password"),
        ("https://x/#f", "the url has a fragment"),
        ("http://", "the url cannot be read: empty host"),
    ] {
        check_skipped(
            &format!(r#"[{{"name":"a","url":"{url}"}}]"#),
            &[&format!("\"a\" ({reason})")],
        );
    }
}

#[test]
fn headers_that_steer_the_exchange_are_refused() {
    for header in [
        "Host",
        "Cookie",
        "Content-Type",
        "content-length",
        "Transfer-Encoding",
        "Connection",
        "Keep-Alive",
        "Proxy-Authorization",
        "TE",
        "Trailer",
        "Upgrade",
        "A2A-Version",
        "a2a-extensions",
    ] {
        check_skipped(
            &format!(r#"[{{"name":"a","url":"http://x","headers":{{"{header}":"v"}}}}]"#),
            &[&format!("\"a\" (the header {header} cannot be set here)")],
        );
    }
}

#[test]
fn key_headers_are_free_only_without_a_key() {
    for header in ["Authorization", "X-API-Key"] {
        let with =
            format!(r#"[{{"name":"a","url":"http://x","key":"k","headers":{{"{header}":"v"}}}}]"#);
        check_skipped(&with, &[&format!("\"a\" (the header {header} cannot be set here)")]);
        let without = format!(r#"[{{"name":"a","url":"http://x","headers":{{"{header}":"v"}}}}]"#);
        assert_eq!(parse(&without).agents.len(), 1);
    }
}

#[test]
fn key_from_a_foreign_variable_is_refused() {
    check_skipped(
        r#"[{"name":"a","url":"http://x","key":"env:TELEGRAM_BOT_TOKEN"}]"#,
        &["\"a\" (key names an environment variable that does not begin with A2A_KEY_)"],
    );
}

#[test]
fn name_is_shown_escaped_and_cut() {
    let file =
        parse(&format!(r#"[{{"name":"\n[A2A \u202e{}","url":"http://x"}}]"#, "x".repeat(100)));
    let shown = &file.skipped[0];
    assert!(shown.starts_with("\"\\u{a}[A2A \\u{202e}xxx") && shown.len() < 200, "{shown}");
}

#[test]
fn byte_order_mark_is_passed_over() {
    assert_eq!(parse_agents(b"\xef\xbb\xbf[]").unwrap(), AgentsFile::default());
}

#[test]
fn malformed_file_is_an_error_that_names_it_and_not_its_content() {
    for (json, message) in [
        (
            "[{\"key\":\"planted\"",
            ".volcanic/a2a/agents.json is not valid JSON (line 1, column 17)",
        ),
        ("", ".volcanic/a2a/agents.json is not valid JSON (line 1, column 0)"),
        ("{}", ".volcanic/a2a/agents.json does not hold a list of agents"),
        ("\"planted\"", ".volcanic/a2a/agents.json does not hold a list of agents"),
    ] {
        let error = parse_agents(json.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(!format!("{error:?}").contains("planted"));
    }
}

#[test]
fn missing_file_means_no_agents() {
    let workspace = tempfile::tempdir().unwrap();
    assert_eq!(read_agents(workspace.path()).unwrap(), AgentsFile::default());
    assert_eq!(read_agents(&workspace.path().join("gone")).unwrap(), AgentsFile::default());
    assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 0);
}

#[test]
fn file_is_read_fresh() {
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir_all(workspace.path().join(".volcanic/a2a")).unwrap();
    let path = workspace.path().join(AGENTS_FILE);
    for name in ["one", "two"] {
        fs::write(&path, format!(r#"[{{"name":"{name}","url":"http://x"}}]"#)).unwrap();
        assert!(read_agents(workspace.path()).unwrap().agent(name).is_some());
    }
}

#[test]
fn directory_or_link_out_of_the_workspace_is_an_error() {
    let (workspace, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir_all(workspace.path().join(".volcanic/a2a")).unwrap();
    let path = workspace.path().join(AGENTS_FILE);
    fs::write(outside.path().join("agents.json"), "[]").unwrap();
    symlink(outside.path().join("agents.json"), &path).unwrap();
    let error = read_agents(workspace.path()).unwrap_err();
    assert!(matches!(error, AgentsFileError::Unreadable { .. }), "{error:?}");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = read_agents(workspace.path()).unwrap_err();
    assert!(error.to_string().starts_with("could not read .volcanic/a2a/agents.json: "), "{error}");
}
