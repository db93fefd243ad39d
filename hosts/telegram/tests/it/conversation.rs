//! What a person sees of the bot.

use std::time::Duration;

use serde_json::json;
use volcanic_agent_core::{EntryBody, Origin};
use volcanic_testkit::{BotCall, BotFault};

use crate::bot::{LIMIT, OWNER, World};

#[tokio::test]
async fn a_message_is_answered() {
    let world = World::new().await;
    let bot = world.start();
    world.says("hello");
    world.sees_text("I am the scripted assistant").await;
    assert_eq!(world.api.commands(), ["new", "stop", "status", "a2a", "help"]);
    assert!(!world.api.calls_of("sendChatAction").is_empty(), "nothing was typed");
    assert!(bot.terminate().await.success());
    let prompts = world.prompts().await;
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0].0, Origin::Owner);
    let shape =
        regex::Regex::new(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d \+00:00 UTC, [A-Z][a-z]{2}\]\nhello$")
            .expect("valid");
    assert!(shape.is_match(&prompts[0].1), "{:?}", prompts[0].1);
    world.check_manners();
}

#[tokio::test]
async fn typing_ends_with_the_run() {
    let mut world = World::new().await;
    world.set_rules("delay_ms = 150\n[[rule]]\nsay = 'all of it is done'\n");
    let _bot = world.start();
    world.says("go");
    world.sees_text("done").await;
    world.says("/status");
    world.sees_text("Nothing is being worked on").await;
    let seen = world.api.calls_of("sendChatAction").len();
    assert!(seen > 0, "nothing was typed");
    // Were it still refreshed, the next refresh would come within four seconds.
    let more = |_: &BotCall| world.api.calls_of("sendChatAction").len() > seen;
    let more = world.api.await_call(Duration::from_secs(6), more).await;
    assert!(more.is_err(), "typing goes on after the answer");
}

#[tokio::test]
async fn a_message_that_comes_twice_is_one_prompt() {
    let world = World::new().await;
    let bot = world.start();
    let person = json!({"id": OWNER, "is_bot": false, "first_name": "X"});
    let message = json!({
        "message_id": 41, "date": 1, "text": "ls", "from": person, "chat": {"id": OWNER, "type": "private"},
    });
    // So that the bot may write into the chat at all.
    world.says("/start");
    for _ in 0..3 {
        world.api.push_update(json!({ "message": message }));
    }
    world.says("/status");
    world.sees_text("Model: scripted").await;
    assert!(bot.terminate().await.success());
    assert_eq!(world.prompts().await.len(), 1);
}

#[tokio::test]
async fn strangers_and_groups_are_ignored() {
    let world = World::new().await;
    let _bot = world.start();
    let (stranger, group) = (222, -333);
    world.api.user_says(stranger, "/start");
    world.api.user_says(stranger, "hello");
    let person = |id: i64| json!({"id": id, "is_bot": false, "first_name": "X"});
    let chat = json!({"id": group, "type": "group", "title": "G"});
    world.api.message_in(&chat, &person(OWNER), json!({"text": "/status"}));
    // Nobody can write into the owner's chat but the owner; should it ever seem so, it counts as a stranger's.
    let owners = json!({"id": OWNER, "type": "private", "first_name": "X"});
    world.api.message_in(&owners, &person(stranger), json!({"text": "/status"}));
    world.api.push_update(json!({"message": {"nonsense": true}}));
    world.api.push_update(json!({"message": "nonsense"}));
    world.says("/help");
    world.sees_text("/stop").await;
    world.api.await_acknowledged(LIMIT).await.expect("acknowledged");
    assert_eq!(world.api.sent_to(stranger), []);
    assert_eq!(world.api.sent_to(group), []);
    assert_eq!(world.texts().len(), 1);
    world.check_manners();
}

#[tokio::test]
async fn long_answers_are_split() {
    let mut world = World::new().await;
    let answer =
        (1..=900).map(|n| format!("line {n} with 😀 and more")).collect::<Vec<_>>().join("\\n");
    world.set_rules(&format!("[[rule]]\nsay = \"{answer}\"\n"));
    let bot = world.start();
    world.says("go");
    world.sees_text("line 900 ").await;
    let texts = world.texts();
    assert!(texts.len() > 4, "{}", texts.len());
    assert!(texts.iter().all(|text| text.encode_utf16().count() <= 4096));
    assert_eq!(texts.concat(), answer.replace("\\n", "\n"));
    assert!(bot.terminate().await.success());
    world.check_manners();
}

#[tokio::test]
async fn markdown_reaches_the_chat_as_entities() {
    let mut world = World::new().await;
    world.set_rules("[[rule]]\nsay = 'a **bold** word and `code`'\n");
    let _bot = world.start();
    world.says("go");
    let message = world.sees_text("a bold word and code").await;
    let entities = json!([{"type": "bold", "offset": 2, "length": 4}, {"type": "code", "offset": 16, "length": 4}]);
    assert_eq!(serde_json::Value::from(message.entities), entities);
}

#[tokio::test]
async fn a_stop_ends_the_run_that_is_going_on() {
    let world = World::new().await;
    let bot = world.start();
    world.says("run echo begun > mark; sleep 600");
    let mark = world.workspace().join("mark");
    let begun = async {
        while !mark.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, begun).await.expect("the command begins");
    world.says("ls");
    world.says("/status");
    let status = world.sees_text("tools run: bash").await;
    assert!(status.text.contains("One message waits"), "{}", status.text);
    world.says("/stop");
    world.sees_text("Stopped. One message waits and comes next.").await;
    // The waiting message is answered by itself.
    world.sees_text("mark").await;
    world.says("/stop");
    world.sees_text("Nothing is being worked on.").await;
    assert!(bot.terminate().await.success());
    let stopped =
        |body: &EntryBody| matches!(body, EntryBody::Failed { aborted: true, last: true, .. });
    assert_eq!(world.entries().await.iter().filter(|entry| stopped(&entry.body)).count(), 1);
    world.check_manners();
}

#[tokio::test]
async fn messages_sent_meanwhile_wait_their_turn() {
    let mut world = World::new().await;
    world.set_rules(
        "delay_ms = 60\n[[rule]]\nwhen = 'word (\\w+)'\nsay = 'this is the long answer to $1'\n",
    );
    let _bot = world.start();
    for word in ["one", "two", "three", "four"] {
        world.says(&format!("word {word}"));
    }
    world.sees_text("answer to four").await;
    let order: Vec<String> = world.texts();
    let wanted =
        ["one", "two", "three", "four"].map(|word| format!("this is the long answer to {word}"));
    assert_eq!(order, wanted);
}

#[tokio::test]
async fn new_begins_a_new_conversation() {
    let world = World::new().await;
    let bot = world.start();
    world.says("ls");
    world.sees(|_| true).await;
    world.says("/new");
    world.sees_text("A new conversation begins").await;
    world.says("/nonsense");
    world.sees_text("There is no command /nonsense").await;
    world.says("/start");
    world.sees_text("Hello.").await;
    assert!(bot.terminate().await.success());
    // Entries are read from the last reset on.
    assert_eq!(world.prompts().await, []);
}

#[tokio::test]
async fn what_cannot_be_taken_is_answered_visibly() {
    let world = World::new().await;
    let bot = world.start();
    world.api.user_sends(OWNER, json!({"voice": {"file_id": "v", "duration": 3}}));
    world.sees_text("I cannot take a voice message yet").await;
    for file in ["a", "b"] {
        world.api.user_sends(OWNER, json!({"document": {"file_id": file}, "media_group_id": "m1"}));
    }
    world.sees_text("I cannot take a file yet").await;
    world.api.user_sends(OWNER, json!({"rich_message": {"blocks": []}}));
    world.sees_text("I cannot take a rich message yet").await;
    world.api.user_sends(OWNER, json!({"photo": [{"file_id": "p"}], "caption": "what is this?"}));
    world.sees_text("I cannot take a photo yet, so I go by the text alone").await;
    world.sees_text("I am the scripted assistant").await;
    world.api.user_sends(
        OWNER,
        json!({"text": "ls", "entities": [{"type": "of_tomorrow", "offset": 0, "length": 2}]}),
    );
    let answered = |count| move |world: &World| world.texts().len() == count;
    world.sees(|_| answered(6)(&world)).await;
    assert!(bot.terminate().await.success());
    let prompts = world.prompts().await;
    assert_eq!(prompts.len(), 2);
    assert!(
        prompts[0].1.contains("what is this?\n[The message carries a photo"),
        "{:?}",
        prompts[0]
    );
    world.check_manners();
}

#[tokio::test]
async fn files_are_sent_as_documents() {
    let world = World::new().await;
    let _bot = world.start();
    world.says("write notes/plan.txt: all of it");
    world.sees_text("plan.txt").await;
    world.says("show notes/plan.txt");
    let document = world.sees(|message| message.document.is_some()).await;
    let (name, content) = document.document.expect("a document");
    assert_eq!((name.as_str(), &content[..]), ("plan.txt", b"all of it".as_slice()));
    world.check_manners();
}

#[tokio::test]
async fn an_outage_of_telegram_delays_and_loses_nothing() {
    let mut world = World::new().await;
    world.set("Ops__Log__Level", "trace");
    world.api.fail_next("getMe", &BotFault::CutBefore, 1);
    world.api.fail_next("getUpdates", &BotFault::CutBefore, 2);
    world.api.fail_next("sendMessage", &BotFault::TooManyRequests { retry_after: 1 }, 2);
    let bot = world.start();
    world.says("ls");
    world.sees(|_| true).await;
    assert_eq!(world.texts().len(), 1);
    assert!(bot.terminate().await.success());
    world.check_manners();
}
