use serde_json::json;
use volcanic_a2a_tool::overview;
use volcanic_a2a_watch::WatchTarget;

use crate::agent::KEY;
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn agents_lists_cards_and_skills() {
    let world = World::new();
    let output = world.call(json!({"action": "agents"})).await;
    assert!(!output.is_error);
    let lines: Vec<_> = output.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", output.text);
    assert!(lines[0].starts_with("travel-bot: Plans trips."), "{}", output.text);
    assert_eq!(lines[1], "  card: Travel Bot (neither streams nor pushes)");
    assert_eq!(lines[2], "  skill plan (Planning): Plans a trip. e.g. \"one\", \"two\", \"three\"");
}

#[tokio::test(start_paused = true)]
async fn agents_unreachable_agent_listed() {
    let world = World::new();
    world.write_agents(
        r#"[
            {"name": "gone", "url": "http://gone.example/nothing/here/", "description": "Was here."},
            {"name": "travel-bot", "url": "http://travel.example/", "kye": "k_planted"},
            {"name": "BAD", "url": "http://x.example/"}
        ]"#,
    );
    let output = world.call(json!({"action": "agents"})).await;
    let blocks: Vec<_> = output.text.split("\n\n").collect();
    assert_eq!(
        [blocks[0], blocks[2], blocks[3]],
        [
            "gone: Was here.\n  unreachable (The card of agent \"gone\" cannot be used: there is none at \
             http://gone.example/nothing/here/.well-known/agent-card.json.)",
            "skipped: \"BAD\" (line 4: a name is 1 to 40 characters of a to z, 0 to 9 and the hyphen, like \"bad\")",
            "warning: \"travel-bot\" (line 3: \"kye\" is not known and does nothing; did you mean \"key\"?)",
        ]
    );
    assert!(blocks[1].starts_with("travel-bot: Plans trips."), "{}", output.text);
    assert!(!output.is_error && blocks.len() == 4, "{}", output.text);
    let target = WatchTarget::new("111");
    let shown = overview(&world.workspace(), &world.watches, &target).await;
    assert!(shown.contains(&format!("\n{}\n{}\n", blocks[2], blocks[3])), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn agents_are_asked_at_once_and_the_silent_ones_have_ten_seconds_each() {
    let world = World::new();
    let silent: Vec<_> = (0..12)
        .map(|n| json!({"name": format!("silent-{n}"), "url": format!("http://a{n}.example/silent/")}))
        .chain([json!({"name": "travel-bot", "url": "http://travel.example/"})])
        .collect();
    world.write_agents(&json!(silent).to_string());
    let asked_at = tokio::time::Instant::now();
    let output = world.call(json!({"action": "agents"})).await;
    assert_eq!(asked_at.elapsed().as_secs(), 10);
    let unreachable = output.text.matches("unreachable (Agent \"silent-").count();
    assert_eq!(
        (unreachable, output.text.matches(" did not answer in time.)").count()),
        (12, 12),
        "{}",
        output.text
    );
    assert!(output.text.contains("\n\ntravel-bot: Plans trips."), "{}", output.text);
}

#[tokio::test(start_paused = true)]
async fn agent_whose_entry_is_faulty_is_not_called_unknown() {
    let world = World::new();
    world.write_agents(r#"[{"name": "travel-bot", "url": "travel.example"}]"#);
    for call in [
        json!({"action": "send", "agent": "travel-bot", "message": "hi"}),
        json!({"action": "status", "agent": "travel-bot", "taskId": "t1"}),
    ] {
        let output = world.call(call).await;
        assert_eq!(
            output.text,
            "Agent \"travel-bot\" cannot be used until its entry in .volcanic/a2a/agents.json is mended: \"travel-bot\" \
             (line 1: url does not begin with http:// or https://)."
        );
        assert!(output.is_error);
    }
}

#[tokio::test(start_paused = true)]
async fn agents_file_edited_applies_to_next_call() {
    let world = World::new();
    world.write_agents("[]");
    let output = world.call(json!({"action": "agents"})).await;
    assert_eq!(output.text, "No agents are configured. They stand in .volcanic/a2a/agents.json.");
    world.write_agents(r#"[{"name": "new-bot", "url": "http://travel.example/"}]"#);
    let output = world.call(json!({"action": "agents"})).await;
    assert!(output.text.starts_with("new-bot: "), "{}", output.text);
}

#[tokio::test(start_paused = true)]
async fn agents_malformed_file_reports_file() {
    let world = World::new();
    world.write_agents("[{");
    for action in [
        json!({"action": "agents"}),
        json!({"action": "send", "agent": "travel-bot", "message": "hi"}),
        json!({"action": "status", "agent": "travel-bot", "taskId": "t1"}),
    ] {
        let output = world.call(action).await;
        assert!(
            output.is_error && output.text.contains(".volcanic/a2a/agents.json"),
            "{}",
            output.text
        );
    }
}

#[tokio::test(start_paused = true)]
async fn overview_shows_agents_and_watches_without_secrets() {
    let world = World::new();
    let target = WatchTarget::new("111");
    let text = overview(&world.workspace(), &world.watches, &target).await;
    assert_eq!(
        text,
        format!(
            "Agents:\n- travel-bot: http://travel.example/ (key ****{})\nNo watches.",
            &KEY[KEY.len() - 4..]
        )
    );
    let mut sending =
        Box::pin(world.call(json!({"action": "send", "agent": "travel-bot", "message": "slow"})));
    assert!(tokio::time::timeout(std::time::Duration::from_secs(2), &mut sending).await.is_err());
    let text = overview(&world.workspace(), &world.watches, &target).await;
    assert!(
        text.ends_with(
            "Watches:\n- travel-bot: task t1\n  attended (poll) for 2s\n  last: working"
        ),
        "{text}"
    );
    assert!(!text.contains(KEY) && !text.contains("secret="), "{text}");
}
