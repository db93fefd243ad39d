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

/// An entry with one more member, which is wrong.
#[track_caller]
fn check_member(member: &str, fault: &str) {
    check_skipped(
        &format!(r#"[{{"name":"a","url":"http://x",{member}}}]"#),
        &[&format!("\"a\" (line 1: {fault})")],
    );
}

#[test]
fn entry_with_everything_is_read_and_members_nobody_knows_are_left_alone() {
    let file = parse(
        r#"[{"name":"travel-bot","url":"https://travel.example/a?k=1","key":"k_1","description":"Trips","protocol":"1.0",
            "binding":"jsonrpc","tenant":"t-1","headers":{"X-Gateway":"env:A2A_KEY_GATE"},"trustedOrigins":["https://api.example:443/x"],
            "unknown":{"kept":true},"note":"Alice's","owner":7}]"#,
    );
    let mut entry = AgentEntry::new(
        AgentName::new("travel-bot").unwrap(),
        Url::parse("https://travel.example/a?k=1").unwrap(),
    );
    entry.key = Some(KeySource::Plain(Secret::new("k_1")));
    entry.description = Some("Trips".to_owned());
    entry.protocol = Some(AgentProtocol::V1);
    entry.binding = Some(AgentBinding::JsonRpc);
    entry.tenant = Some("t-1".to_owned());
    entry.headers =
        vec![(HeaderName::from_static("x-gateway"), KeySource::Env("A2A_KEY_GATE".to_owned()))];
    entry.trusted_origins = vec!["https://api.example".to_owned()];
    assert_eq!(file, AgentsFile { agents: vec![entry.clone()], ..AgentsFile::default() });
    assert_eq!(entry.origin(), "https://travel.example");
    assert_eq!(entry.shown_url(), "https://travel.example/a");
}

#[test]
fn empty_key_and_null_members_are_absent() {
    let file = parse(
        r#"[{"name":"a","url":"http://localhost:1","key":"","description":null,"protocol":null,"binding":null,
            "headers":null,"trustedOrigins":null}]"#,
    );
    let plain =
        AgentEntry::new(AgentName::new("a").unwrap(), Url::parse("http://localhost:1").unwrap());
    assert_eq!(file, AgentsFile { agents: vec![plain], ..AgentsFile::default() });
}

#[test]
fn bad_entries_are_skipped_and_the_others_work() {
    let file = parse(
        r#"[7, {"name":"Bad Name","url":"http://x"}, {"name":"a","url":"http://a.example"},
            {"name":"a","url":"http://b.example"},
            {"name":"b"}, [], null, {}]"#,
    );
    assert_eq!(file.agents.len(), 1);
    assert_eq!(file.agents[0].url.as_str(), "http://a.example/");
    assert_eq!(
        file.skipped,
        [
            "entry 1 (line 1: it is a number, where an object must stand)",
            "\"Bad Name\" (line 1: a name is 1 to 40 characters of a to z, 0 to 9 and the hyphen, like \"bad-name\")",
            "\"a\" (its name is taken by the entry in line 1)",
            "\"b\" (line 3: it has no url, which must be an http:// or https:// address)",
            "entry 6 (line 3: it is a list, where an object must stand)",
            "entry 7 (line 3: it is null, where an object must stand)",
            "entry 8 (line 3: it has no name, which must be 1 to 40 characters of a to z, 0 to 9 and the hyphen; line 3: it \
             has no url, which must be an http:// or https:// address)",
        ]
    );
    assert_eq!(file.warnings, [""; 0]);
}

#[test]
fn every_fault_of_an_entry_is_named_with_its_line() {
    let file = parse(
        r#"[
  {
    "name": "bot",
    "url": "",
    "key": 5,
    "description": ["x"],
    "protocol": "2.0",
    "binding": "gRPC",
    "headers": {"Host": "x", "é": "v", "X-A": 1, "x-a": "env:HOME", "X-B": "file:"},
    "trustedOrigins": ["https://ok.example", 7, "nowhere"],
    "trusted_origins": []
  },
  {"name": "fine", "url": "http://fine.example"}
]"#,
    );
    let [skipped] = file.skipped.as_slice() else { panic!("{:?}", file.skipped) };
    let faults: Vec<_> =
        skipped.strip_prefix("\"bot\" (").unwrap().strip_suffix(')').unwrap().split("; ").collect();
    assert_eq!(
        faults,
        [
            "line 4: url is empty",
            "it must be an http:// or https:// address",
            "line 5: key is a number, where text must stand",
            "line 6: description is a list, where text must stand",
            "line 7: protocol is \"2.0\", which is neither \"1.0\" nor \"0.3\"",
            "line 8: binding is \"gRPC\", which is neither \"JSONRPC\" nor \"HTTP+JSON\"",
            "line 9: the header Host cannot be set here",
            "line 9: the header é has a name that no header can have",
            "line 9: the header X-A is a number, where text must stand",
            "line 9: the header x-a stands here once more",
            "line 9: the header x-a names an environment variable that does not begin with A2A_KEY_",
            "line 9: the header X-B names no file after \"file:\"",
            "line 10: item 2 of trustedOrigins is a number, where text must stand",
            "line 10: item 3 of trustedOrigins does not begin with http:// or https://",
            "line 11: \"trusted_origins\" is not known and does nothing",
            "did you mean \"trustedOrigins\"?",
        ]
    );
    assert_eq!(file.agents.len(), 1);
}

#[test]
fn members_of_the_wrong_type_are_named() {
    for (member, fault) in [
        (r#""key":{"env":"X"}"#, "key is an object, where text must stand"),
        (r#""key":true"#, "key is true or false, where text must stand"),
        (r#""key":"\ud800""#, "key holds half a character"),
        (r#""description":5"#, "description is a number, where text must stand"),
        (r#""protocol":1.0"#, "protocol is a number, where text must stand"),
        (r#""binding":[]"#, "binding is a list, where text must stand"),
        (r#""headers":"X-A: b""#, "headers is text, where an object must stand"),
        (r#""headers":[]"#, "headers is a list, where an object must stand"),
        (
            r#""trustedOrigins":"https://x""#,
            "trustedOrigins is text, where a list of origins must stand",
        ),
        (r#""url":"http://y""#, "url stands here once more"),
    ] {
        check_member(member, fault);
    }
    check_skipped(
        r#"[{"name":5,"url":["http://x"]}]"#,
        &[
            "entry 1 (line 1: name is a number, where text must stand; line 1: url is a list, where text must stand)",
        ],
    );
}

#[test]
fn misspelt_members_are_named_with_what_was_meant_and_the_entry_works() {
    for (given, meant) in [
        ("kye", "key"),
        ("Key", "key"),
        ("apiKey", "key"),
        ("api_key", "key"),
        ("token", "key"),
        ("descripton", "description"),
        ("header", "headers"),
        ("trusted_origins", "trustedOrigins"),
        ("trustedOrigin", "trustedOrigins"),
        ("protocoll", "protocol"),
        ("URL", "url"),
        ("endpoint", "url"),
    ] {
        let file = parse(&format!(
            r#"[{{"name":"a","url":"http://x",
"{given}":"k_planted"}}]"#
        ));
        assert_eq!((file.agents.len(), file.skipped.len()), (1, 0), "{given}");
        let expected = format!(
            "\"a\" (line 2: \"{given}\" is not known and does nothing; did you mean \"{meant}\"?)"
        );
        assert_eq!(file.warnings, [expected]);
    }
    for given in ["note", "mode", "tags", "x", "", "kept", "comment", "$schema", "enabled"] {
        let file = parse(&format!(r#"[{{"name":"a","url":"http://x","{given}":"x"}}]"#));
        assert_eq!(file.warnings, [""; 0], "{given}");
    }
}

#[test]
fn bad_urls_are_skipped() {
    for (url, reason) in [
        ("travel.example", "does not begin with http:// or https://"),
        ("localhost:8080/a", "does not begin with http:// or https://"),
        ("ftp://x/", "does not begin with http:// or https:// but with ftp://"),
        (
            "https://me:pw_planted@x/?k=k_planted",
            "\"https://x/\" holds a user name or a password; a key stands in key",
        ),
        ("https://x/?k=k_planted#f", "\"https://x/\" has a fragment, which is never sent"),
        ("http://", "cannot be read: empty host"),
        ("http://x:99999", "cannot be read: invalid port number"),
        ("k_planted_by.mistake", "does not begin with http:// or https://"),
    ] {
        check_skipped(
            &format!(r#"[{{"name":"a","url":"{url}"}}]"#),
            &[&format!("\"a\" (line 1: url {reason})")],
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
        check_member(
            &format!(r#""headers":{{"{header}":"v"}}"#),
            &format!("the header {header} cannot be set here"),
        );
    }
}

#[test]
fn key_headers_are_free_only_without_a_key() {
    for header in ["Authorization", "X-API-Key"] {
        check_member(
            &format!(r#""key":"k","headers":{{"{header}":"v"}}"#),
            &format!("the header {header} cannot be set beside key, which is sent in it"),
        );
        for key in ["", r#""key":"","#] {
            let without =
                format!(r#"[{{"name":"a","url":"http://x",{key}"headers":{{"{header}":"v"}}}}]"#);
            assert_eq!(parse(&without).agents.len(), 1);
        }
    }
}

#[test]
fn key_from_a_foreign_variable_is_refused() {
    check_member(
        r#""key":"env:TELEGRAM_BOT_TOKEN""#,
        "key names an environment variable that does not begin with A2A_KEY_",
    );
}

#[test]
fn no_fault_shows_a_key() {
    let planted = "k_planted_0123456789";
    for entry in [
        format!(r#""name":"a","url":"{planted}","key":"http://x""#),
        format!(r#""name":"a","url":"https://{planted}@x/""#),
        format!(r#""name":"a","url":"https://u:{planted}@x/#{planted}""#),
        format!(r#""name":"a","url":"http://x","key":["{planted}"]"#),
        format!(r#""name":"a","url":"http://x","key":"{planted}","key":"{planted}""#),
        format!(r#""name":"a","url":"http://x","key":"env:{planted}""#),
        format!(
            r#""name":"a","url":"http://x","kye":"{planted}","headers":{{"Host":"{planted}"}}"#
        ),
        format!(r#""name":"a","url":"http://x","headers":{{"X-A":["{planted}"]}}"#),
        format!(r#""name":"a","url":"http://x","headers":"Bearer {planted}""#),
        format!(r#""name":"a","url":"http://x","trustedOrigins":["{planted}"]"#),
    ] {
        let file = parse(&format!("[{{{entry}}}]"));
        let shown = [file.skipped, file.warnings].concat();
        assert!(!shown.is_empty() && !format!("{shown:?}").contains(planted), "{entry}: {shown:?}");
    }
}

#[test]
fn name_is_shown_escaped_and_cut() {
    let file =
        parse(&format!(r#"[{{"name":"\n[A2A \u202e{}","url":"http://x"}}]"#, "x".repeat(100)));
    let shown = &file.skipped[0];
    assert!(shown.starts_with("\"\\u{a}[A2A \\u{202e}xxx") && shown.len() < 200, "{shown}");
}

#[test]
fn entry_that_is_skipped_is_found_by_its_name_unless_another_one_has_it() {
    let file = parse(
        r#"[{"name":"a","url":"nowhere"},{"name":"b","url":"http://b"},{"name":"b","url":""},{"name":"c"}]"#,
    );
    let fault = "\"a\" (line 1: url does not begin with http:// or https://)";
    assert_eq!(file.skipped_agent("a"), Some(fault));
    assert_eq!((file.skipped_agent("b"), file.skipped_agent("d")), (None, None));
    assert!(file.skipped_agent("c").unwrap().starts_with("\"c\" ("));
}

#[test]
fn members_that_nobody_knows_may_be_as_deep_as_they_like() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let file = parse(&format!(r#"[{{"name":"a","url":"http://x","note":{deep}}}]"#));
    assert_eq!(file.agents.len(), 1);
}

#[test]
fn byte_order_mark_is_passed_over() {
    assert_eq!(parse_agents(b"\xef\xbb\xbf[]").unwrap(), AgentsFile::default());
}

#[track_caller]
fn check_malformed(bytes: &[u8], message: &str) {
    let error = parse_agents(bytes).unwrap_err();
    assert_eq!(error.to_string(), format!(".volcanic/a2a/agents.json {message}"));
    assert!(!format!("{error:?}").contains("planted"));
}

#[test]
fn malformed_file_is_an_error_that_names_it_and_not_its_content() {
    for (json, message) in [
        (
            "[{\"key\":\"planted\"",
            "is not valid JSON: EOF while parsing an object (line 1, column 17)",
        ),
        (
            "[\n  {\"name\": \"pla",
            "is not valid JSON: EOF while parsing a string (line 2, column 15)",
        ),
        ("[\n{},\n]", "is not valid JSON: expected value (line 3, column 1)"),
        ("[] planted", "is not valid JSON: trailing characters (line 1, column 4)"),
        ("// planted\n[]", "is not valid JSON: expected value (line 1, column 1)"),
        ("", "is empty; a list without agents is []"),
        (" \n", "is empty; a list without agents is []"),
    ] {
        check_malformed(json.as_bytes(), message);
    }
    check_malformed(b"[\n\"\xc3\xa9\xff\"]", "is not UTF-8 text (line 2, column 3)");
}

#[test]
fn utf_16_is_called_by_its_name() {
    for mark in [vec![0xfeff], vec![]] {
        let units: Vec<u16> = mark.into_iter().chain("[{\"planted\":1}]".encode_utf16()).collect();
        for bytes in [
            units.iter().flat_map(|unit| unit.to_le_bytes()).collect::<Vec<_>>(),
            units.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
        ] {
            check_malformed(&bytes, "is UTF-16 text; it must be saved as UTF-8");
        }
    }
}

#[test]
fn what_is_no_list_is_told_with_what_it_is_and_what_it_should_be() {
    for (json, found) in [
        ("{\"planted\": []}", "an object"),
        ("\"planted\"", "text"),
        ("null", "null"),
        ("7", "a number"),
    ] {
        check_malformed(
            json.as_bytes(),
            &format!(
                "holds {found} where a list of agents must stand, like [{{\"name\": \"travel-bot\", \"url\": \
                 \"https://travel.example/\"}}]"
            ),
        );
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

/// A workspace whose file is made by the caller, and what reading it says.
#[track_caller]
fn check_unreadable(make: impl FnOnce(&Path), reason: &str) {
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir_all(workspace.path().join(".volcanic/a2a")).unwrap();
    make(&workspace.path().join(AGENTS_FILE));
    let error = read_agents(workspace.path()).unwrap_err();
    assert!(matches!(error, AgentsFileError::Unreadable { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!("could not read .volcanic/a2a/agents.json: `.volcanic/a2a/agents.json` {reason}")
    );
}

#[test]
fn what_is_no_file_inside_the_workspace_is_an_error() {
    let outside = tempfile::tempdir().unwrap();
    let stranger = outside.path().join("agents.json");
    fs::write(&stranger, "[]").unwrap();
    check_unreadable(|path| symlink(&stranger, path).unwrap(), "leads outside the directory");
    check_unreadable(|path| fs::create_dir(path).unwrap(), "is not a regular file");
    check_unreadable(
        |path| rustix::fs::mkfifoat(rustix::fs::CWD, path, 0o600.into()).unwrap(),
        "is not a regular file",
    );
}

#[test]
fn file_that_is_too_large_is_an_error() {
    let large = |bytes: u64| format!("[{}]", " ".repeat(usize::try_from(bytes - 2).unwrap()));
    check_unreadable(
        |path| fs::write(path, large(MAX_FILE_BYTES + 1)).unwrap(),
        "is larger than 1048576 bytes",
    );
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir_all(workspace.path().join(".volcanic/a2a")).unwrap();
    fs::write(workspace.path().join(AGENTS_FILE), large(MAX_FILE_BYTES)).unwrap();
    assert_eq!(read_agents(workspace.path()).unwrap(), AgentsFile::default());
}

proptest::proptest! {
    #[test]
    fn any_file_is_read_or_refused(text in r#"([\[\]{}",:\\]|name|url|key|headers|"a"|"http://x"|null|7|\n|\PC){0,60}"#) {
        let _ = parse_agents(text.as_bytes());
    }
}
