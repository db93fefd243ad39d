//! The chat with a model behind a real socket.

use volcanic_testkit::Process;

use crate::{
    model_server,
    world::{SOON, World, shows},
};

const KEY: &str = "sk-for-the-model-only";

fn chat(world: &World, base: &str) -> Process {
    world.write("model.key", KEY);
    world
        .program("the chat")
        .args(["chat", "--model", "openai:some-model"])
        .env("OPENAI_BASE_URL", format!("{base}v1"))
        .env("OPENAI_API_KEY_FILE", world.path("model.key"))
        .start()
        .unwrap()
}

#[tokio::test]
async fn what_is_said_reaches_the_model_with_its_time_and_a_new_conversation_knows_nothing() {
    let world = World::new();
    let (server, requests) = model_server::start("Good evening.").await;
    let mut chat = chat(&world, &server.url);
    for line in ["my word is plum", "and now?"] {
        chat.say(line).await.unwrap();
        shows(&mut chat, "Good evening.").await;
    }
    chat.say("/new").await.unwrap();
    shows(&mut chat, "A new conversation.").await;
    chat.say("what was it?").await.unwrap();
    shows(&mut chat, "Good evening.").await;
    assert!(chat.finish(SOON).await.unwrap().0.success());

    let requests = requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|(key, _)| key == &format!("Bearer {KEY}")));
    let (first, second, third) =
        (requests[0].1.to_string(), requests[1].1.to_string(), requests[2].1.to_string());
    assert_eq!(requests[0].1["model"], "some-model");
    assert!(first.contains("]\\nmy word is plum"), "under a line with the time: {first}");
    assert!(second.contains("plum") && second.contains("Good evening."), "{second}");
    assert!(third.contains("what was it?") && !third.contains("plum"), "{third}");
    for tool in ["a2a", "read", "write", "edit", "ls", "bash", "send"] {
        assert!(first.contains(&format!("\"name\":\"{tool}\"")), "{tool} is not offered: {first}");
    }
}

#[tokio::test]
async fn what_a_model_says_cannot_steer_the_terminal() {
    let world = World::new();
    let (server, _) = model_server::start("a\u{1b}[2Jb\u{202e}c\nnext\tline").await;
    let mut chat = chat(&world, &server.url);
    chat.say("hello").await.unwrap();
    shows(&mut chat, "a\\u{1b}[2Jb\\u{202e}c").await;
    shows(&mut chat, "next\tline").await;
}

#[tokio::test]
async fn commands_of_the_assistant_do_not_see_our_keys() {
    let world = World::new();
    let mut chat = world
        .program("the chat")
        .args(["chat", "--model", "scripted"])
        .env("OPENAI_API_KEY", KEY)
        .env("A2A_KEY_BOB", "agent-key-of-bob")
        .start()
        .unwrap();
    chat.say("run env; echo over").await.unwrap();
    shows(&mut chat, "over").await;
    let seen = chat.seen().join("\n");
    assert!(seen.contains("PATH=") && !seen.contains(KEY) && !seen.contains("agent-key"), "{seen}");
}
