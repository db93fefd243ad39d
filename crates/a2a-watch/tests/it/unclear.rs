//! Sends whose answer does not say what became of the message.

use volcanic_a2a_types::TaskState;
use volcanic_a2a_watch::{AgentError, SendEnd, SendError, WatchState};

use crate::agent::{Agent, OnSend};
use crate::world::World;

#[tokio::test(start_paused = true)]
async fn task_of_an_agent_that_broke_over_it_is_found_and_told() {
    let world = World::new(Agent::new(OnSend::Break));
    let end = world.send(world.order("go"), 60).await.unwrap();
    let SendEnd::Settled { outcome, settle: Some(settle) } = end else { panic!("{end:?}") };
    assert_eq!((outcome.task_id, outcome.state), (Some("t1".into()), Some(TaskState::Failed)));
    world.chat.commit(settle.delivery_key());
    settle.confirm();
    world.reach(&[WatchState::Done]).await;
    assert_eq!((world.agent.calls("SendMessage").len(), world.chat.attempts()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn internal_error_without_a_task_leaves_the_fate_of_the_message_open() {
    for code in [-32603, -32006, -32050] {
        let world = World::new(Agent::new(OnSend::Refuse(code)));
        let end = world.send(world.order("go"), 60).await;
        let Err(SendError::Unknown { reason, settle, .. }) = end else { panic!("{end:?}") };
        assert_eq!(reason, format!("Agent \"travel-bot\" refused: not so ({code})"));
        world.chat.commit(settle.delivery_key());
        settle.confirm();
        world.pass(3600).await;
        assert_eq!((world.agent.calls("SendMessage").len(), world.chat.attempts()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_before_anything_was_done_is_a_refusal() {
    for code in [-32600, -32601, -32602, -32001, -32004, -32005, -32009] {
        let world = World::new(Agent::new(OnSend::Refuse(code)));
        let end = world.send(world.order("go"), 60).await;
        assert!(matches!(end, Err(SendError::Agent(AgentError::Client(_)))), "{code}: {end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn task_that_an_unreadable_answer_names_is_followed() {
    let world = World::new(Agent::new(OnSend::Odd));
    let end = world.send(world.order("go"), 5).await;
    assert!(matches!(end, Ok(SendEnd::HandedOver { .. })), "{end:?}");
    assert!(world.agent.calls("ListTasks").is_empty());
    world.agent.set_task("t1", "TASK_STATE_COMPLETED", "Lisbon");
    let delivered = world.chat.wait_for(1).await;
    assert!(delivered[0].text.ends_with("\nContext: c1\nLisbon"), "{delivered:?}");
}
