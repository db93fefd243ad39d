use super::*;

/// What the command line is told.
fn load(settings: &[(&str, &str)], file: Option<&Path>) -> Result<ClientSettings, ConfigError> {
    let home = tempfile::tempdir().expect("a folder");
    load_at(home.path(), settings, file)
}

fn load_at(
    home: &Path,
    settings: &[(&str, &str)],
    file: Option<&Path>,
) -> Result<ClientSettings, ConfigError> {
    let home = home.display().to_string();
    let fixed = [("VOLCANIC_HOME", home.as_str())];
    let all = fixed.iter().chain(settings).map(|(name, value)| (name.into(), value.into()));
    let mut settings = Settings::collect(&all.collect(), file, &keys::COMMAND_LINE);
    let (_, level, client) = (settings.openai(), settings.log_level(), settings.client());
    settings.finish(level.and(client))
}

#[test]
fn keys_that_only_another_host_reads_are_left_alone() {
    load(
        &[
            ("TELEGRAM_BOT_TOKEN", "no token"),
            ("TELEGRAM_BOT_TOKEN_FILE", "/nowhere"),
            ("telegram__model", "x"),
            ("Telegram__Model", "y"),
            ("Telegram__NoSuchThing", "x"),
            ("A2A__Enabled", "perhaps"),
            ("A2AClient__Enabled", "maybe"),
            ("A2A_CLIENT_ENABLED", "maybe not"),
            ("Ops__Log__Format", "loud"),
        ],
        None,
    )
    .expect("none of it is read");
    let unknown =
        ["A2AClient__NoSuchThing", "A2A__NoSuchThing", "Ops__Log__Colour"].map(|name| (name, "x"));
    let error = load(&unknown, None).expect_err("the sections are read");
    assert_eq!(error.problems.len(), 3, "{error}");
}

#[test]
fn the_file_may_hold_what_other_hosts_read() {
    let home = tempfile::tempdir().expect("a folder");
    let text = "[Telegram]\nBotToken = 'x'\nNonsense = 1\n[A2AClient]\nEnabled = 'maybe'\nWaitSeconds = 7\n";
    std::fs::write(home.path().join("volcanic.toml"), text).expect("written");
    let seconds = |client: ClientSettings| client.wait.as_secs();
    assert_eq!(load_at(home.path(), &[], None).map(seconds), Ok(7));
    let above = [("a2aclient__waitseconds", "8")];
    assert_eq!(load_at(home.path(), &above, None).map(seconds), Ok(8));
    let other = home.path().join("other.toml");
    std::fs::write(&other, "[A2AClient]\nWaitSeconds = 9\n").expect("written");
    assert_eq!(load_at(home.path(), &[], Some(&other)).map(seconds), Ok(9));
    std::fs::write(&other, "colour = 1\n").expect("written");
    let error = load_at(home.path(), &[], Some(&other)).expect_err("refused").to_string();
    assert!(error.contains("colour in other.toml: there is no such setting"), "{error}");
    let error = load_at(home.path(), &[], Some(Path::new("/gone.toml"))).expect_err("refused");
    assert!(error.to_string().contains("/gone.toml: the file cannot be read"), "{error}");
}

#[test]
fn the_home_folder_is_absolute_and_lies_in_the_users_own_by_default() {
    let home = |name: &str, value: &str| {
        let variables = [(name.into(), value.into()), ("VOLCANIC_HOM".into(), "/x".into())].into();
        let settings = Settings::collect(&variables, None, &keys::COMMAND_LINE);
        let home = settings.home().to_owned();
        settings.finish(Some(home)).map_err(|error| error.to_string())
    };
    assert_eq!(home("HOME", "/home/x"), Ok("/home/x/.volcanic".into()));
    assert_eq!(home("VOLCANIC_HOME", "/state"), Ok("/state".into()));
    for (name, value) in [("VOLCANIC_HOME", "state"), ("NOTHING", "x")] {
        let told = home(name, value).expect_err("refused");
        assert!(told.contains("VOLCANIC_HOME") && told.contains("an absolute path"), "{told}");
    }
}

#[test]
fn settings_show_no_secrets() {
    let variables = [("VOLCANIC_HOME".into(), "/x".into()), ("OPENAI_API_KEY".into(), "sk".into())];
    let mut settings = Settings::collect(&variables.into(), None, &keys::COMMAND_LINE);
    let access = settings.openai().expect("set");
    assert!(access.key.is_some() && !access.lacks_key());
    assert!(!format!("{settings:?} {access:?}").contains("sk"), "{settings:?}");
    assert!(settings.effective().iter().all(|line| !line.to_string().contains("sk")));
}

#[test]
fn passwords_in_urls_are_shown_nowhere() {
    let url = "http://user:hidden@host/";
    let variables = [("VOLCANIC_HOME".into(), "/x".into()), ("OPENAI_BASE_URL".into(), url.into())];
    let mut settings = Settings::collect(&variables.into(), None, &keys::COMMAND_LINE);
    assert!(settings.openai().is_none());
    assert!(settings.effective().iter().all(|line| !line.to_string().contains("hidden")));
    let told = settings.finish(None::<()>).expect_err("refused").to_string();
    assert!(told.contains("`http://***`") && !told.contains("hidden"), "{told}");
}
