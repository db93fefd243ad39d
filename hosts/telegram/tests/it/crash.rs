//! The binary is killed; nothing gets lost.

use std::collections::HashMap;
use std::time::Duration;

use volcanic_agent_core::Origin;
use volcanic_base::Chance;
use volcanic_testkit::BotFault;

use crate::bot::{OWNER, World, open_store};

#[tokio::test]
async fn updates_that_were_kept_but_not_handled_are_handled_at_the_next_start() {
    let world = World::new().await;
    let store = open_store(&world.state());
    let update = serde_json::json!({"update_id": 7, "message": {
        "message_id": 3, "date": 1, "text": "ls", "chat": {"id": OWNER, "type": "private"},
        "from": {"id": OWNER, "is_bot": false, "first_name": "X"},
    }});
    // What a bot that was killed between the two steps leaves behind.
    store
        .record_updates(vec![(7, update.to_string()), (8, "no JSON".to_owned())], 9)
        .await
        .expect("kept");
    store.close().await;
    world.api.set_blocked(OWNER, false);
    let bot = world.start();
    world.sees(|_| true).await;
    let poll = world
        .api
        .await_call(crate::bot::LIMIT, |call| call.is("getUpdates"))
        .await
        .expect("a poll");
    assert_eq!(poll.param("offset").as_deref(), Some("9"));
    assert!(bot.terminate().await.success());
    let bot = world.start();
    world.says("/help");
    world.sees_text("/stop").await;
    assert!(bot.terminate().await.success());
    assert_eq!(world.prompts().await.len(), 1);
    assert_eq!(world.texts().len(), 2);
}

#[tokio::test]
async fn an_answer_that_may_have_arrived_is_repeated_with_a_label() {
    let mut world = World::new().await;
    world.set_rules("[[rule]]\nsay = 'the **answer**'\n");
    let bot = world.start();
    world.api.fail_next("sendMessage", &BotFault::Hang, 1);
    world.says("go");
    world.api.await_call(crate::bot::LIMIT, |call| call.is("sendMessage")).await.expect("a try");
    bot.kill().await;
    let bot = world.start();
    let repeat = world.sees_text("answer").await;
    assert_eq!(repeat.text, "(may be a repeat)\nthe answer");
    assert_eq!(repeat.entities, [serde_json::json!({"type": "bold", "offset": 22, "length": 6})]);
    assert!(bot.terminate().await.success());
    assert_eq!(world.texts().len(), 1);
}

#[tokio::test]
async fn kills_at_random_times_lose_no_message_and_double_none() {
    const ROUNDS: usize = 12;
    let mut world = World::new().await;
    world.set_rules(
        "delay_ms = 2\n[[rule]]\nwhen = 'word (\\w+)'\nsay = 'the answer to $1 is this'\n",
    );
    let chance = Chance::from_os();
    for round in 0..ROUNDS {
        let bot = world.start();
        world.says(&format!("word w{round}"));
        // Between nothing at all and a finished answer.
        tokio::time::sleep(Duration::from_millis(600).mul_f64(chance.fraction())).await;
        bot.kill().await;
    }
    let bot = world.start();
    world.says(&format!("word w{ROUNDS}"));
    for round in 0..=ROUNDS {
        world.sees_text(&format!("the answer to w{round} is this")).await;
    }
    assert!(bot.terminate().await.success());
    let texts = world.texts();
    for round in 0..=ROUNDS {
        let answer = format!("the answer to w{round} is this");
        let unlabelled = texts.iter().filter(|text| **text == answer).count();
        assert!(unlabelled <= 1, "{answer}: {texts:#?}");
    }
    let mut prompts: HashMap<String, usize> = HashMap::new();
    for (origin, text) in world.prompts().await {
        assert_eq!(origin, Origin::Owner);
        let (_, text) = text.split_once('\n').expect("a header");
        *prompts.entry(text.to_owned()).or_default() += 1;
    }
    assert_eq!(prompts.len(), ROUNDS + 1, "{prompts:#?}");
    assert!(prompts.values().all(|count| *count == 1), "{prompts:#?}");
    world.check_manners();
}
