//! What the binary says about its settings.

use std::process::Output;

use crate::bot::World;

async fn output(world: &World, argument: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        world.command().arg(argument).output().await.expect("it runs");
    (
        status.code(),
        String::from_utf8_lossy(&stdout).into_owned(),
        String::from_utf8_lossy(&stderr).into_owned(),
    )
}

#[tokio::test]
async fn all_errors_are_told_at_once_and_nothing_is_started() {
    let mut world = World::new().await;
    world.set("TELEGRAM_ALLOWED_USER_IDS", "me");
    world.set("A2AClient__WatchTimeout", "90");
    world.set("A2AClient__Watchtime", "90s");
    world.set("a2aclient__pushbaseurl", "https://x.example");
    world.set("Telegram__Model", "gemini:pro");
    for argument in ["--check", "--print-config"] {
        let (code, shown, told) = output(&world, argument).await;
        assert_eq!((code, shown.as_str()), (Some(2), ""));
        for wanted in [
            "TELEGRAM_ALLOWED_USER_IDS: `me` cannot be used",
            "A2AClient__WatchTimeout: `90` cannot be used: a length of time needs a unit",
            "A2AClient__Watchtime: there is no such setting",
            "a2aclient__pushbaseurl: there is no such setting: agents push to A2A__PublicUrl",
            "`gemini` is not supported yet; use `openai:MODEL`",
        ] {
            assert!(told.contains(wanted), "{wanted:?} is missing in {told}");
        }
    }
    assert!(!world.home.path().join("telegram").exists());
}

#[tokio::test]
async fn settings_are_checked_and_printed_without_secrets() {
    let mut world = World::new().await;
    world.set("OPENAI_API_KEY", "sk-planted");
    world.set("Telegram__Model", "openai:some-model");
    let (code, shown, told) = output(&world, "--check").await;
    assert_eq!((code, shown.as_str(), told.as_str()), (Some(0), "The settings are fine.\n", ""));
    let (code, shown, _) = output(&world, "--print-config").await;
    assert_eq!(code, Some(0));
    assert!(shown.contains("Telegram__BotToken = ***  (TELEGRAM_BOT_TOKEN)"), "{shown}");
    assert!(shown.contains("OPENAI_API_KEY = ***"), "{shown}");
    assert!(shown.contains("A2AClient__WaitSeconds = 60  (default)"), "{shown}");
    assert!(!shown.contains("sk-planted") && !shown.contains(world.api.token()));
    assert!(!world.home.path().join("telegram").exists());
}

#[tokio::test]
async fn a_wrong_rule_file_is_named() {
    let mut world = World::new().await;
    world.set_rules("[[rule]]\nwhen = '('\nsay = 'x'\n");
    let (code, _, told) = output(&world, "--check").await;
    assert_eq!(code, Some(2));
    assert!(told.contains("rules.toml:2"), "{told}");
}

#[tokio::test]
async fn files_and_folders_that_would_end_the_start_are_told_with_the_rest() {
    let mut world = World::new().await;
    let file = world.home.path().join("file");
    std::fs::write(&file, "no certificate").expect("written");
    world.set("VOLCANIC_HOME", file.join("state").display().to_string());
    world.set("Telegram__Model", "scripted:/nope.toml");
    world.set("Telegram__TimeZone", "Nowhere");
    world.set("A2A_CLIENT_ENABLED", "true");
    for certificates in ["/nope.pem".into(), file.display().to_string()] {
        world.set("SSL_CERT_FILE", certificates.clone());
        let (code, shown, told) = output(&world, "--check").await;
        assert_eq!((code, shown.as_str()), (Some(2), ""), "{told}");
        for wanted in [
            "VOLCANIC_HOME: `",
            "the folder `telegram` in it cannot be made or written into (",
            "Telegram__Model: `scripted:/nope.toml` cannot be used: failed to read the rules",
            "Telegram__TimeZone: `Nowhere` cannot be used",
            &format!("SSL_CERT_FILE: `{certificates}` cannot be used: "),
        ] {
            assert!(told.contains(wanted), "{wanted:?} is missing in {told}");
        }
    }
    // Nobody is called, so nobody's certificates are checked.
    world.set("A2A_CLIENT_ENABLED", "false");
    let (_, _, told) = output(&world, "--check").await;
    assert!(!told.contains("SSL_CERT_FILE"), "{told}");
    // The TLS of models would read them to their ends.
    for endless in ["/dev/zero", "/"] {
        world.set("SSL_CERT_FILE", endless);
        let (_, _, told) = output(&world, "--check").await;
        let wanted = format!("SSL_CERT_FILE: `{endless}` cannot be used: it is no regular file");
        assert!(told.contains(&wanted), "{told}");
    }
}

#[tokio::test]
async fn a_half_that_comes_to_little_is_warned_about() {
    let mut world = World::new().await;
    world.set("A2A_ENABLED", "true");
    let (code, shown, _) = output(&world, "--check").await;
    assert_eq!(code, Some(0));
    assert!(shown.contains("The settings are fine.\nWarning: A2A__Enabled is true and"), "{shown}");
    world.set("A2A_CLIENT_ENABLED", "true");
    let (_, shown, _) = output(&world, "--check").await;
    assert!(shown.contains("Warning: A2A__PublicUrl is not set"), "{shown}");
    world.set("A2A_PUBLIC_URL", "https://bot.example/");
    let (_, shown, _) = output(&world, "--check").await;
    assert_eq!(shown, "The settings are fine.\n");
    assert!(!world.home.path().join("telegram").exists());
}
