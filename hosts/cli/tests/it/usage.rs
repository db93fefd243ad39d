//! Mistakes of the user's end with 2, name what is wrong, and say how to mend it.

use std::fs::OpenOptions;

use crate::{
    odd_agent::{Answer, Odd},
    world::World,
};

#[tokio::test]
async fn unknown_agents_are_told_with_the_known_ones() {
    let world = World::new();
    let none = world.run(&["send", "travel", "x"]).await;
    none.check(
        2,
        &["there is no agent \"travel\"", "lists no agents", "agents.json", "--workspace"],
    );
    world.knows("http://127.0.0.1:9/");
    for arguments in
        [&["send", "travel", "x"][..], &["status", "travel", "t"], &["cancel", "travel", "t"]]
    {
        let ran = world.run(arguments).await;
        ran.check(2, &["there is no agent \"travel\"", "lists demo"]);
        assert!(!ran.err.contains("Did you mean"), "{ran:?}");
    }
    let near = world.run(&["send", "Dmeo", "x"]).await;
    near.check(2, &["lists demo. Did you mean \"demo\"? Add {"]);
}

#[tokio::test]
async fn an_agents_file_that_cannot_be_read_is_told_with_the_place() {
    let world = World::new();
    for (text, told) in [("[{,", "(line 1, column 3)"), ("{}", "a list of agents must stand")] {
        world.write("workspace/.volcanic/a2a/agents.json", text);
        for arguments in [&["agents"][..], &["send", "demo", "x"], &["status", "demo", "t"]] {
            world.run(arguments).await.check(2, &["agents.json", told]);
        }
    }
}

#[tokio::test]
async fn wrong_environment_is_told_all_at_once() {
    let world = World::new();
    let variables = [
        ("A2AClient__WaitSeconds", "soon"),
        ("a2aclient__watchtimeout", "90"),
        ("A2AClient__Colour", "red"),
        ("OPENAI_API_KEY", "sk-never-shown"),
        ("OPENAI_API_KEY_FILE", "/also"),
    ];
    for arguments in [&["chat"][..], &["demo"], &["watches"], &["send", "demo", "x"]] {
        let ran = world.run_with(arguments, &variables).await;
        ran.check(
            2,
            &[
                "A2AClient__WaitSeconds: `soon` cannot be used",
                "a2aclient__watchtimeout: `90` cannot be used",
                "A2AClient__Colour: there is no such setting",
                "OPENAI_API_KEY_FILE: `OPENAI_API_KEY` is set too",
            ],
        );
        assert!(!ran.err.contains("sk-never-shown"), "{ran:?}");
    }
}

#[tokio::test]
async fn the_settings_file_stands_below_the_environment_and_is_checked_with_it() {
    let world = World::new();
    let known = "[A2AClient]\nCardTimeoutSeconds = 0\n[Telegram]\nModel = 'none of ours'\n";
    world.write("home/volcanic.toml", known);
    let told = "[A2AClient] CardTimeoutSeconds in volcanic.toml: `0` cannot be used";
    world.run(&["watches"]).await.check(2, &[told]);
    let above = [("A2AClient__CardTimeoutSeconds", "5")];
    world.run_with(&["watches"], &above).await.check(0, &["No chat has run here yet."]);
    world.write("other.toml", "[A2AClient]\nEnabled = false\nColour = 1\n");
    for arguments in
        [["watches", "--config", "../other.toml"], ["--config", "../other.toml", "watches"]]
    {
        world.run(&arguments).await.check(2, &["[A2AClient] Colour in other.toml"]);
    }
    world
        .run(&["watches", "--config", "gone.toml"])
        .await
        .check(2, &["gone.toml: the file cannot be read"]);
}

#[tokio::test]
async fn settings_of_the_bot_are_left_alone() {
    let world = World::new();
    let variables = [
        ("TELEGRAM_BOT_TOKEN_FILE", "/not/for/us"),
        ("TELEGRAM_ALLOWED_USER_IDS", "nobody"),
        ("Telegram__Model", "x"),
        ("A2A_ENABLED", "true"),
        ("A2AClient__Enabled", "false"),
    ];
    world.run_with(&["agents"], &variables).await.check(0, &["No agents."]);
}

#[tokio::test]
async fn a_chat_whose_port_for_pushes_is_taken_says_so_and_goes_on() {
    let world = World::new();
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addr().unwrap().to_string();
    let variables = [("A2A__PublicUrl", "https://me.example"), ("A2A__Listen", address.as_str())];
    let told = format!("Agents cannot push, so they are asked: failed to listen on {address}");
    world.run_with(&["chat"], &variables).await.check(0, &[&told]);
    // A port that is free, whoever else takes some meanwhile.
    let variables = [variables[0], ("A2A__Listen", "127.0.0.1:0")];
    let chat = world.run_with(&["chat"], &variables).await;
    chat.check(0, &[]);
    assert!(!format!("{chat:?}").contains("Agents cannot push"), "{chat:?}");
}

#[tokio::test]
async fn the_log_is_as_loud_as_the_settings_say() {
    let world = World::new();
    let quiet = world.run_with(&["chat"], &[]).await;
    assert!(!quiet.err.contains("INFO"), "{quiet:?}");
    let loud = world.run_with(&["chat"], &[("Ops__Log__Level", "info")]).await;
    assert!(loud.err.contains("INFO") && loud.err.contains("watches restored"), "{loud:?}");
    // What goes into a file has no colours.
    assert!(!loud.err.contains('\u{1b}'), "{loud:?}");
    // Where nothing is said, only errors are logged here.
    let said = world.run(&["settings"]).await;
    said.check(0, &["Ops__Log__Level = error  (default)\n"]);
    let said = world.run_with(&["settings"], &[("Ops__Log__Level", "info")]).await;
    said.check(0, &["Ops__Log__Level = info  (Ops__Log__Level)\n"]);
    let above = [("Ops__Log__Level", "info"), ("RUST_LOG", "error")];
    let quiet = world.run_with(&["chat"], &above).await;
    assert!(!quiet.err.contains("INFO"), "{quiet:?}");
}

#[tokio::test]
async fn models_that_cannot_be_used_are_told_before_the_chat_begins() {
    let world = World::new();
    world.write("workspace/bad.toml", "[[rule]]\nwhen = '('\nsay = 'x'\n");
    for (model, told) in [
        ("gpt-5", "there are openai:NAME, scripted and scripted:RULES.toml"),
        ("openai:", "there are openai:NAME"),
        ("openai:gpt-5", "needs OPENAI_API_KEY"),
        ("scripted:gone.toml", "No such file"),
        ("scripted:bad.toml", "bad.toml:2:"),
    ] {
        world.run(&["chat", "--model", model]).await.check(2, &[told]);
    }
    let variables = [("OPENAI_BASE_URL", "not a url")];
    let ran = world.run_with(&["chat", "--model", "openai:gpt-5"], &variables).await;
    ran.check(2, &["OPENAI_BASE_URL: `not a url` cannot be used"]);
}

#[tokio::test]
async fn a_workspace_that_is_not_there_is_told() {
    let world = World::new();
    for command in
        [&["chat"][..], &["agents"], &["watches"], &["send", "demo", "x"], &["serve", "--scripted"]]
    {
        let arguments = [command, &["--workspace", "gone"]].concat();
        world.run(&arguments).await.check(2, &["the workspace `gone` cannot be used"]);
    }
}

#[tokio::test]
async fn a_workspace_that_contains_the_state_is_refused() {
    let world = World::new();
    let home = world.workspace().join("deep/home");
    let variables = [("VOLCANIC_HOME", home.to_str().unwrap())];
    for command in ["chat", "watches"] {
        let ran = world.run_with(&[command], &variables).await;
        ran.check(2, &["contains the assistant's own state", "--workspace", "VOLCANIC_HOME"]);
    }
    assert!(world.workspace_files().is_empty());
}

#[tokio::test]
async fn words_that_say_nothing_are_told() {
    let world = World::new();
    world.knows("http://127.0.0.1:9/");
    world.run(&["send", "demo", "  "]).await.check(2, &["the message is empty"]);
    world.run(&["send", "ftp://x/", "hello"]).await.check(2, &["no http or https URL"]);
    world.run(&["send", "http://[", "hello"]).await.check(2, &["`http://[` is no URL"]);
    world.run(&["send", "demo", "x", "--wait", "90"]).await.check(2, &["--wait"]);
    world.run(&["sing"]).await.check(2, &["sing"]);
    world.run(&["send", "demo"]).await.check(2, &["<TEXT>"]);
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_told() {
    let world = World::new();
    world.knows("http://127.0.0.1:9/");
    let variables = [("SSL_CERT_FILE", "/no/such/certs.pem")];
    let ran = world.run_with(&["send", "demo", "x"], &variables).await;
    ran.check(2, &["SSL_CERT_FILE is `/no/such/certs.pem`"]);
}

#[tokio::test]
async fn every_command_has_help_with_examples() {
    let world = World::new();
    let commands = [
        "chat",
        "agents",
        "card",
        "send",
        "status",
        "cancel",
        "tasks",
        "subscribe",
        "watch",
        "push-config create",
        "push-config get",
        "push-config list",
        "push-config delete",
        "watches",
        "serve",
        "demo",
        "settings",
        "completions",
    ];
    for command in commands {
        let example = format!("  volcanic {command}");
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        world.run(&arguments).await.check(0, &["Examples:", &example]);
    }
    world.run(&["--help"]).await.check(0, &["Exit codes: 0 done", "pending.json"]);
    world.run(&["chat", "--help"]).await.check(0, &["Its shell only starts there"]);
    world.run(&["serve", "--help"]).await.check(0, &["The folder where tasks are kept"]);
}

#[tokio::test]
async fn an_empty_id_is_a_mistake_and_nobody_is_asked() {
    let world = World::new();
    let odd = Odd::start(true, |_, _| Answer::Silence).await;
    let url = odd.url.as_str();
    for arguments in [
        &["status", url, ""][..],
        &["status", "", "t-1"],
        &["watch", url, " "],
        &["subscribe", url, ""],
        &["cancel", url, ""],
        &["push-config", "list", url, ""],
        &["push-config", "get", url, "t-1", ""],
        &["push-config", "delete", url, "t-1", ""],
        &["push-config", "create", url, "t-1", "https://hook.example/", "--id", ""],
        &["send", url, "hello", "--task", ""],
        &["send", url, "hello", "--context", ""],
        &["tasks", url, "--context", ""],
    ] {
        let ran = world.run(arguments).await;
        assert!(ran.code == 2 && ran.err.contains("it is empty"), "{arguments:?}: {ran:?}");
    }
    assert!(odd.asked().is_empty(), "{:?}", odd.methods());
}

#[tokio::test]
async fn a_failure_that_standard_output_does_not_take_is_told_beside_it() {
    let world = World::new();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in [&["settings", "--json"][..], &["send", "nobody", "hello", "--json"]] {
        let mut command = world.command(arguments, &[]);
        let ran = World::ended(command.stdout(full()).spawn().unwrap()).await;
        assert!(ran.code != 0 && ran.err.starts_with("volcanic: "), "{ran:?}");
    }
}
