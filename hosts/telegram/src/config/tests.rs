use std::time::Duration;

use super::*;

const TOKEN: &str = "123456:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghi";

fn load(settings: &[(&str, &str)]) -> Result<LoadedConfig, ConfigError> {
    let home = tempfile::tempdir().expect("a folder");
    load_at(home.path(), settings)
}

fn load_at(home: &Path, settings: &[(&str, &str)]) -> Result<LoadedConfig, ConfigError> {
    let home = home.display().to_string();
    let fixed = [("VOLCANIC_HOME", home.as_str())];
    let all = fixed.iter().chain(settings).map(|(name, value)| (name.into(), value.into()));
    load_config(&all.collect(), None)
}

/// The least that works, with `more` on top.
fn with<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut settings = vec![
        ("TELEGRAM_BOT_TOKEN", TOKEN),
        ("TELEGRAM_ALLOWED_USER_IDS", "1"),
        ("Telegram__Model", "scripted"),
    ];
    settings.extend_from_slice(more);
    settings
}

#[track_caller]
fn check_refused(more: &[(&str, &str)], wanted: &[&str]) {
    let error = load(&with(more)).expect_err("refused");
    let problems: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), wanted.len(), "{problems:#?}");
    for (problem, wanted) in problems.iter().zip(wanted) {
        assert!(problem.contains(wanted), "{problem:?} lacks {wanted:?}");
    }
}

#[test]
fn defaults_fill_what_is_not_said() {
    let config = load(&with(&[])).expect("valid").config;
    assert_eq!(config.token.expose(), TOKEN);
    assert_eq!(config.allowed_users, [1]);
    assert_eq!(config.model, ModelChoice::Scripted { rules: None });
    assert_eq!(config.api_url.as_str(), "https://api.telegram.org/");
    assert_eq!((config.client, config.server), (None, None));
}

#[test]
fn both_halves_are_read_from_sections_in_any_case_and_flat_names() {
    let config = load(&with(&[
        ("a2aclient__waitseconds", "0"),
        ("A2A_CLIENT_ENABLED", "True"),
        ("A2ACLIENT__WATCHTIMEOUT", "2.00:00:00"),
        ("A2AClient__MaxFileBytes", "5MB"),
        ("A2A__Enabled", "true"),
        ("A2A_PUBLIC_URL", "https://bot.example/base"),
        ("A2A__Listen", "[::1]:9000"),
        ("Telegram__TimeZone", "Europe/Berlin"),
    ]))
    .expect("valid")
    .config;
    let client = ClientSettings {
        wait: Duration::ZERO,
        watch_timeout: Duration::from_hours(48),
        card_timeout: Duration::from_secs(10),
        max_file_bytes: 5 << 20,
    };
    assert_eq!(config.client, Some(client));
    let server = config.server.expect("on");
    assert_eq!(server.public_url.expect("set").as_str(), "https://bot.example/base");
    assert_eq!(server.listen.port(), 9000);
    assert_eq!(config.time_zone.iana_name(), Some("Europe/Berlin"));
}

#[test]
fn all_problems_are_reported_at_once() {
    let error = load(&[
        ("TELEGRAM_BOT_TOKEN", "not-a-token-but-secret"),
        ("TELEGRAM_ALLOWED_USER_IDS", "1,two"),
        ("A2AClient__WaitSeconds", "60s"),
        ("A2AClient__WatchTimeout", "24:00:00"),
        ("A2AClient__MaxFileByte", "1"),
        ("A2AClient__PushBaseUrl", "https://x.y"),
        ("Telegram__Webhookurl", "https://x.y"),
        ("A2A__Listen", "8080"),
        ("Telegram__ApiUrl", "https://api.telegram.org/bot123"),
        ("Ops__Log__Level", "loud"),
    ])
    .expect_err("refused");
    let text = error.to_string();
    for wanted in [
        "TELEGRAM_BOT_TOKEN: it is no bot token",
        "TELEGRAM_ALLOWED_USER_IDS: `1,two` cannot be used: allowed are positive whole numbers",
        "A2AClient__WaitSeconds: `60s` cannot be used: allowed is a whole number of seconds from 0 to 600",
        "A2AClient__WatchTimeout: `24:00:00` cannot be used: hours go up to 23 in `hh:mm`; write `24h`",
        "A2AClient__MaxFileByte: there is no such setting; there are A2AClient__Enabled,",
        "A2AClient__PushBaseUrl: there is no such setting: agents push to A2A__PublicUrl",
        "Telegram__Webhookurl: this setting is not supported yet",
        "A2A__Listen: `8080` cannot be used",
        "Telegram__ApiUrl: `https://api.telegram.org/bot123` cannot be used: it has to end before",
        "Ops__Log__Level: `loud` cannot be used",
        "Telegram__Model: not set",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is missing in {text}");
    }
    assert_eq!(error.problems.len(), 11, "{text}");
    assert!(!text.contains("not-a-token-but-secret"));
}

#[test]
fn nothing_said_names_what_is_needed() {
    let error = load(&[]).expect_err("refused");
    let names: Vec<&str> = error.problems.iter().map(|problem| problem.name.as_str()).collect();
    assert_eq!(names, ["Telegram__BotToken", "Telegram__AllowedUserIds", "Telegram__Model"]);
    assert!(error.to_string().contains("or `TELEGRAM_BOT_TOKEN`"));
}

#[test]
fn empty_is_unset_and_foreign_names_are_left_alone() {
    load(&with(&[
        ("A2AClient__WaitSeconds", ""),
        ("A2AClient__Nonsense", " "),
        ("FOO__BAR", "x"),
        ("A2A_KEY_TRAVEL", "k"),
    ]))
    .expect("valid");
}

#[test]
fn doubles_are_refused_unless_they_agree() {
    load(&with(&[("Telegram__BotToken", TOKEN)])).expect("both names, one value");
    check_refused(
        &[("Telegram__AllowedUserIds", "2")],
        &["says something else for the same setting"],
    );
    check_refused(
        &[("A2A__Enabled", "true"), ("a2a__enabled", "true")],
        &["`A2A__Enabled` is the same name in other letters"],
    );
    check_refused(&[("Telegram__BotToken_FILE", "/x")], &["`TELEGRAM_BOT_TOKEN` is set too"]);
}

#[test]
fn secrets_come_from_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("written");
    let path = file.display().to_string();
    let mut settings = with(&[("TELEGRAM_BOT_TOKEN_FILE", &path)]);
    settings.remove(0);
    assert_eq!(load(&settings).expect("valid").config.token.expose(), TOKEN);
    std::fs::remove_file(&file).expect("removed");
    let error = load(&settings).expect_err("refused");
    assert_eq!(error.problems.len(), 1, "{error}");
    assert!(error.to_string().contains("TELEGRAM_BOT_TOKEN_FILE: `/"), "{error}");
}

#[test]
fn the_file_stands_below_the_environment() {
    let home = tempfile::tempdir().expect("a folder");
    let text = "[Telegram]\nModel = \"openai:m\"\nAllowedUserIds = [4, 5]\n[A2AClient]\nEnabled = true\nWaitSeconds = 5\n";
    std::fs::write(home.path().join("volcanic.toml"), text).expect("written");
    let settings = [
        ("TELEGRAM_BOT_TOKEN", TOKEN),
        ("Telegram__Model", "scripted"),
        ("A2AClient__CardTimeoutSeconds", "7"),
    ];
    let loaded = load_at(home.path(), &settings).expect("valid");
    assert_eq!(loaded.config.model, ModelChoice::Scripted { rules: None });
    assert_eq!(loaded.config.allowed_users, [4, 5]);
    let client = loaded.config.client.expect("on");
    assert_eq!((client.wait.as_secs(), client.card_timeout.as_secs()), (5, 7));
    let printed: Vec<String> = loaded.effective.iter().map(ToString::to_string).collect();
    for line in [
        "Telegram__BotToken = ***  (TELEGRAM_BOT_TOKEN)",
        "Telegram__AllowedUserIds = 4,5  ([Telegram] AllowedUserIds in volcanic.toml)",
        "Telegram__TimeZone = UTC  (default)",
        "A2A__PublicUrl is not set",
    ] {
        assert!(printed.iter().any(|printed| printed == line), "{line} is missing in {printed:#?}");
    }
    assert!(!printed.concat().contains(TOKEN));
}

#[test]
fn a_wrong_file_is_named_without_its_text() {
    let home = tempfile::tempdir().expect("a folder");
    std::fs::write(home.path().join("volcanic.toml"), "[Telegram]\nBotToken = \"very secret\n")
        .expect("written");
    let error = load_at(home.path(), &with(&[])).expect_err("refused");
    let text = error.to_string();
    assert!(text.contains("volcanic.toml: line 2 is not valid TOML"), "{text}");
    assert!(!text.contains("very secret"));
    std::fs::write(
        home.path().join("volcanic.toml"),
        "colour = 1\n[Telegram]\nBotToken = 2026-01-01\n",
    )
    .expect("written");
    let text = load_at(home.path(), &with(&[])).expect_err("refused").to_string();
    assert!(text.contains("colour in volcanic.toml: there is no such setting"), "{text}");
    assert!(text.contains("[Telegram] BotToken in volcanic.toml: allowed are texts"), "{text}");
}

#[test]
fn models_are_chosen_by_provider() {
    let model = |text, more: &[(&str, &str)]| {
        let mut settings = with(more);
        settings[2] = ("Telegram__Model", text);
        load(&settings).map(|loaded| (loaded.config.model, loaded.config.openai.key))
    };
    let folder = tempfile::tempdir().expect("a folder");
    let rules = folder.path().join("rules.toml");
    let named = format!("scripted:{}", rules.display());
    let error = model(&named, &[]).expect_err("no file").to_string();
    assert!(error.contains("failed to read the rules"), "{error}");
    std::fs::write(&rules, "[[rule]]\nwhen = 'x'\nsay = 'y'\n").expect("written");
    assert_eq!(model(&named, &[]).expect("valid").0, ModelChoice::Scripted { rules: Some(rules) });
    let own = model("openai:some/model:tag", &[("OPENAI_BASE_URL", "http://localhost:1234/v1")])
        .expect("valid");
    assert_eq!(own, (ModelChoice::OpenAi { model: "some/model:tag".to_owned() }, None));
    let error = model("openai:m", &[]).expect_err("no key");
    assert!(error.to_string().contains("OPENAI_API_KEY: not set"), "{error}");
    let error = model("anthropic:m", &[]).expect_err("later");
    assert!(
        error.to_string().contains("`anthropic` is not supported yet; use `openai:MODEL`"),
        "{error}"
    );
    assert!(model("openai:", &[("OPENAI_API_KEY", "k")]).is_err());
}
