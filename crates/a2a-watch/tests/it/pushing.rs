use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use volcanic_a2a_watch::{SendEnd, WatchSource, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

const WORKING: OnSend = OnSend::Task("TASK_STATE_WORKING");

async fn pushed() -> (World, String, String) {
    let world = World::with(Agent::new(WORKING).pushes(), |config| {
        config.push_base = Some("https://me.example/base/".parse().unwrap());
    });
    world.hand_over().await;
    world.pass(5).await;
    let config = world.agent.calls("CreateTaskPushNotificationConfig")[0].clone();
    let id = world.store.all_watches()[0].id.to_string();
    assert_eq!(config["url"], json!(format!("https://me.example/base/a2a/push/{id}")));
    let token = config["token"].as_str().unwrap().to_owned();
    (world, id, token)
}

#[tokio::test(start_paused = true)]
async fn watch_push_delivers_follow_up() {
    let (world, id, token) = pushed().await;
    assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Push);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.watches.on_push(&id, &token, b"{\"task\": \"lies\"}").await);
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.ends_with("Lisbon"), "{delivered:?}");
    world.reach(&[WatchState::Done]).await;
    world.pass(1).await;
    assert_eq!(world.agent.calls("DeleteTaskPushNotificationConfig").len(), 1);
    assert!(!world.watches.on_push(&id, &token, b"").await);
}

#[tokio::test(start_paused = true)]
async fn agent_that_takes_push_configs_for_ever_is_polled_and_asked_by_few_at_once() {
    const WATCHES: usize = 30;
    let world = World::with(Agent::new(WORKING).pushes(), |config| {
        config.push_base = Some("https://me.example/".parse().unwrap());
    });
    let configs = || world.agent.calls("CreateTaskPushNotificationConfig").len();
    world.agent.stall_at(Some("CreateTaskPushNotificationConfig"));
    for _ in 0..WATCHES {
        world.hand_over().await;
    }
    world.pass(30).await;
    assert_eq!(configs(), 4);
    // The time of a call for the turn, and that of a call.
    world.pass(120).await;
    assert!(configs() <= 8, "{}", configs());
    let sources = world.watches.watches(None).await.into_iter().map(|watch| watch.source);
    assert!(sources.clone().all(|source| source == WatchSource::Poll) && sources.len() == WATCHES);
    for number in 1..=WATCHES {
        world.agent.set_task(&format!("t{number}"), "TASK_STATE_COMPLETED", "Lisbon");
    }
    world.chat.wait_for(WATCHES).await;
}

#[tokio::test(start_paused = true)]
async fn watch_push_bad_token_rejected() {
    let (world, id, token) = pushed().await;
    let reads = world.agent.calls("GetTask").len();
    let (short, last) = token.split_at(token.len() - 1);
    let other = format!("{short}{}", if last == "A" { "B" } else { "A" });
    let longer = format!("{token}A");
    for wrong in ["no", "", &token[..20], short, &other, &longer] {
        assert!(!world.watches.on_push(&id, wrong, b"").await, "{wrong} for {token}");
    }
    assert!(!world.watches.on_push("nobody", &token, b"").await);
    world.pass(10).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads);
}

#[tokio::test(start_paused = true)]
async fn burst_of_pushes_costs_two_reads_and_its_last_one_counts() {
    let (world, id, token) = pushed().await;
    let reads = world.agent.calls("GetTask").len();
    for _ in 0..100 {
        assert!(world.watches.on_push(&id, &token, b"").await);
    }
    world.pass(4).await;
    assert_eq!(world.agent.calls("GetTask").len(), reads + 1);
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.pass(2).await;
    assert_eq!((world.agent.calls("GetTask").len(), world.chat.attempts()), (reads + 2, 1));
}

#[tokio::test(start_paused = true)]
async fn lost_push_is_made_up_for_by_the_safety_read() {
    let (world, ..) = pushed().await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    world.pass(590).await;
    assert_eq!(world.chat.attempts(), 0);
    world.pass(20).await;
    assert_eq!(world.chat.attempts(), 1);
}

#[tokio::test(start_paused = true)]
async fn push_works_again_after_a_restart() {
    let (mut world, id, token) = pushed().await;
    world.crash().await;
    world.pass(5).await;
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    assert!(world.watches.on_push(&id, &token, b"").await);
    world.chat.wait_for(1).await;
    assert_eq!(world.agent.calls("CreateTaskPushNotificationConfig").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn push_config_is_sent_by_the_next_process_when_one_ends_with_the_commit_that_keeps_the_watch()
 {
    const REGISTER: &str = "CreateTaskPushNotificationConfig";
    // It ends before it hears of its own commit, in good order with the config on its way, and killed with that on its way.
    for (is_told, is_killed) in [(false, false), (true, false), (true, true)] {
        let mut world = World::with(Agent::new(WORKING).pushes(), |config| {
            config.push_base = Some("https://me.example/base/".parse().unwrap());
        });
        world.agent.stall_at(Some(REGISTER));
        if is_told {
            world.hand_over().await;
            world.pass(1).await;
        } else {
            let ending = world.ending();
            world.agent.before_send(move || ending.cancel());
            let cancel = CancellationToken::new();
            let end = world.watches.send(world.order("hi"), Duration::ZERO, cancel).await;
            assert!(matches!(end, Ok(SendEnd::Left)), "{end:?}");
        }
        if is_killed {
            world.stop_hard().await;
        } else {
            world.shut_down().await;
        }
        world.agent.stall_at(None);
        let kept = world.store.all_watches()[0].clone();
        assert_eq!((kept.state, kept.source), (WatchState::Watching, WatchSource::Poll));
        let token = kept.push_token.unwrap();
        let before = world.agent.calls(REGISTER).len();
        assert_eq!(before, usize::from(is_told));

        world.restart().await;
        world.pass(5).await;
        assert_eq!(world.watches.watches(None).await[0].source, WatchSource::Push);
        let sent = world.agent.calls(REGISTER);
        assert_eq!((sent.len(), &sent[before]["token"]), (before + 1, &json!(token.expose())));
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
        assert!(world.watches.on_push(kept.id.as_str(), token.expose(), b"").await);
        world.pass(5).await;
        assert_eq!(world.chat.delivered().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn push_token_that_an_agent_repeats_is_told_by_nobody_who_asks_over_another_connection() {
    for cancels in [false, true] {
        let (world, _, token) = pushed().await;
        world.agent.refuse_cancel();
        // A listing connects anew.
        world.watches.agents(world.workspace()).await.unwrap();
        world.agent.set_task("t1", "TASK_STATE_COMPLETED", &format!("got {token}"));
        let query = world.query("t1");
        let report = if cancels {
            world.watches.cancel(query).await
        } else {
            world.watches.status(query).await
        };
        assert_eq!(report.unwrap().outcome.answer, "got ***");
    }
}

#[tokio::test(start_paused = true)]
async fn push_token_that_an_agent_repeats_is_not_told_to_who_goes_on_with_the_task() {
    for replies in [false, true] {
        let (world, _, token) = pushed().await;
        // A listing connects anew.
        world.watches.agents(world.workspace()).await.unwrap();
        let repeated = format!("got {token}");
        world.agent.on_send(if replies {
            OnSend::Reply(repeated.clone().leak())
        } else {
            OnSend::Known
        });
        let mut order = world.order("go on");
        order.task_id = Some("t1".into());
        let (end, ()) = tokio::join!(world.send(order, 60), async {
            world.pass(5).await;
            world.agent.set_task("t1", "TASK_STATE_COMPLETED", &repeated);
        });
        let outcome = match end {
            Ok(SendEnd::Settled { outcome, .. }) => outcome,
            Ok(SendEnd::Replied { reply, .. }) => reply,
            other => panic!("{other:?}"),
        };
        assert_eq!(outcome.answer, "got ***", "replies: {replies}");
    }
}

/// A world that follows twelve tasks with pushes, and was killed since; the tokens in the order of the tasks.
async fn twelve_pushed() -> (World, Vec<String>) {
    let (mut world, ..) = pushed().await;
    // More than are remembered of those that were sent along last.
    for _ in 0..11 {
        world.hand_over().await;
    }
    world.pass(5).await;
    let watches = world.store.all_watches();
    let token = |number: usize| {
        let task = format!("t{number}");
        let watch = watches.iter().find(|watch| watch.task_id.as_str() == task).unwrap();
        watch.push_token.as_ref().unwrap().expose().to_owned()
    };
    let tokens = (1..=12).map(token).collect();
    world.crash().await;
    world.pass(5).await;
    // A listing connects anew.
    world.watches.agents(world.workspace()).await.unwrap();
    (world, tokens)
}

#[tokio::test(start_paused = true)]
async fn push_tokens_of_other_tasks_that_an_agent_repeats_are_not_told_to_who_asks_for_one() {
    for (cancels, is_watched) in [(false, true), (true, true), (false, false), (true, false)] {
        let (world, tokens) = twelve_pushed().await;
        world.agent.refuse_cancel();
        let repeated: Vec<_> = tokens.iter().map(|token| format!("got {token}")).collect();
        let task = if is_watched { "t1" } else { "by-hand" };
        world.agent.set_task(task, "TASK_STATE_COMPLETED", &repeated.join("\n"));
        let query = world.query(task);
        let report = if cancels {
            world.watches.cancel(query).await
        } else {
            world.watches.status(query).await
        };
        let wanted = ["got ***"; 12].join("\n");
        assert_eq!(report.unwrap().outcome.answer, wanted, "{cancels} {is_watched}");
    }
}

#[tokio::test(start_paused = true)]
async fn push_token_of_another_task_is_not_told_in_what_is_wrong_with_an_answer() {
    let (world, tokens) = twelve_pushed().await;
    for task in ["t1", "t2"] {
        world.agent.set_task(task, "TASK_STATE_COMPLETED", "Lisbon");
        world.agent.break_task_by(task, json!(tokens[6]));
    }
    let told = world.chat.wait_for(2).await;
    for told in told {
        assert!(told.text.contains("cannot be read: ") && told.text.contains("***"), "{told:?}");
        assert!(!told.text.contains(&tokens[6]), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn push_tokens_of_other_tasks_that_an_agent_repeats_are_not_told_to_who_goes_on_with_the_context()
 {
    for (replies, leaves) in [(true, false), (true, true), (false, false), (false, true)] {
        let (world, tokens) = twelve_pushed().await;
        let repeated: Vec<_> = tokens.iter().map(|token| format!("got {token}")).collect();
        let repeated = repeated.join("\n");
        // Long answers become files.
        let said = format!("{repeated}{}", "\nand so on".repeat(if leaves { 3000 } else { 0 }));
        if replies {
            world.agent.on_send(OnSend::Reply(said.clone().leak()));
        }
        let mut order = world.order("go on");
        order.context_id = Some("c1".into());
        if leaves {
            world.leave(order).await;
            world.pass(5).await;
            if !replies {
                world.agent.set_task("t13", "TASK_STATE_COMPLETED", &said);
            }
            let told = world.chat.wait_for(1).await[0].text.clone();
            let (_, file) = told.split_once("Files: ").expect(&told);
            assert_eq!(told.matches("got ***").count(), 12, "{told}");
            let file = std::fs::read_to_string(world.workspace().join(file.trim())).unwrap();
            assert!(file.starts_with(&"got ***\n".repeat(12)), "{file:.2000}");
            continue;
        }
        let (end, ()) = tokio::join!(world.send(order, 60), async {
            world.pass(5).await;
            if !replies {
                world.agent.set_task("t13", "TASK_STATE_COMPLETED", &said);
            }
        });
        let outcome = match end {
            Ok(SendEnd::Settled { outcome, .. }) => outcome,
            Ok(SendEnd::Replied { reply, .. }) => reply,
            other => panic!("{other:?}"),
        };
        assert_eq!(outcome.answer, ["got ***"; 12].join("\n"), "replies: {replies}");
    }
}
