//! Two chats in one workspace.

use crate::world::{SOON, World, shows};

#[tokio::test]
async fn the_second_chat_says_who_has_the_workspace_and_follows_nothing() {
    let world = World::new();
    let remote = world.remote().await;
    let mut first = world.chat(0);
    first.say("/a2a").await.unwrap();
    shows(&mut first, "demo").await;

    let mut second = world.chat(0);
    let greeting = shows(&mut second, "has this workspace").await;
    let holder = format!("process {}", first.id().unwrap());
    assert!(greeting.contains(&holder), "{greeting} does not name {holder}");
    second.say("/a2a").await.unwrap();
    shows(&mut second, "Another chat has this workspace and its agents.").await;
    second.say("ask demo: echo plum").await.unwrap();
    second.say("hello").await.unwrap();
    shows(&mut second, "I am the scripted assistant").await;
    assert_eq!(remote.received("plum"), 0, "the second chat has no agents");

    // The first one is not disturbed, and follows its task.
    first.say("ask demo: slow 60s pear").await.unwrap();
    shows(&mut first, "will be delivered").await;
    assert_eq!(world.watches().await.len(), 1);
    assert!(second.finish(SOON).await.unwrap().0.success());
    assert!(first.finish(SOON).await.unwrap().0.success());

    let mut third = world.chat(10);
    third.say("/a2a").await.unwrap();
    shows(&mut third, "Watches:").await;
    third.say("ask demo: echo fig").await.unwrap();
    shows(&mut third, "echo: fig").await;
}

#[tokio::test]
async fn chats_in_two_workspaces_do_not_meet() {
    let world = World::new();
    std::fs::create_dir(world.path("other")).unwrap();
    let mut here = world.chat(0);
    let mut there = world
        .program("the other chat")
        .args(["chat", "--model", "scripted", "--workspace"])
        .arg(world.path("other"))
        .start()
        .unwrap();
    for chat in [&mut here, &mut there] {
        chat.say("/a2a").await.unwrap();
        shows(chat, "No agents.").await;
        assert!(!chat.seen().iter().any(|line| line.contains("has this workspace")));
    }
}
