//! How a bot starts and ends.

use std::time::Duration;

use volcanic_testkit::BotFault;

use crate::bot::{LIMIT, Port, World};

#[tokio::test]
async fn sigterm_sends_what_is_ready_and_ends_well() {
    let mut world = World::new().await;
    world.set_rules("[[rule]]\nsay = 'ready'\n");
    let bot = world.start();
    world.api.fail_next("sendMessage", &BotFault::TooManyRequests { retry_after: 2 }, 1);
    world.says("go");
    let refused = |call: &volcanic_testkit::BotCall| call.is("sendMessage") && !call.succeeded();
    world
        .api
        .await_call(LIMIT, |call| {
            refused(call) && call.outcome != volcanic_testkit::BotOutcome::Open
        })
        .await
        .expect("a try");
    let status = bot.terminate().await;
    assert!(status.success(), "{status}\n{}", world.log());
    assert_eq!(world.texts(), ["ready"]);
    world.check_manners();
}

#[tokio::test]
async fn a_run_that_sigterm_interrupts_goes_on_in_the_next_process() {
    let mut world = World::new().await;
    world.set_rules("delay_ms = 1000\n[[rule]]\nsay = 'one two three four five six'\n");
    let bot = world.start();
    world.says("go");
    world.api.await_call(LIMIT, |call| call.is("sendChatAction")).await.expect("typing");
    let asked = tokio::time::Instant::now();
    assert!(bot.terminate().await.success());
    assert!(asked.elapsed() < Duration::from_secs(9), "it took {:?}", asked.elapsed());
    assert_eq!(world.texts(), Vec::<String>::new());
    let _bot = world.start();
    world.sees_text("one two three four five six").await;
    assert_eq!(world.texts().len(), 1);
}

#[tokio::test]
async fn a_second_instance_refuses_to_start() {
    let world = World::new().await;
    let first = world.start();
    world.says("/help");
    world.sees_text("/stop").await;
    let mut second = world.start();
    assert_eq!(second.ended().await.code(), Some(1));
    assert!(world.log().contains("another volcanic-telegram runs on"), "{}", world.log());
    assert!(first.terminate().await.success());
    // The lock is gone with its holder.
    let third = world.start();
    world.says("/start");
    world.sees_text("Hello.").await;
    assert!(third.terminate().await.success());
}

#[tokio::test]
async fn a_refused_token_ends_the_bot_with_a_clear_message() {
    let mut world = World::new().await;
    let wrong = "123456:WRONG-token-of-the-fake-bot-api-0000";
    world.set("TELEGRAM_BOT_TOKEN", wrong);
    let mut bot = world.start();
    assert_eq!(bot.ended().await.code(), Some(1));
    let log = world.log();
    assert!(log.contains("does not accept the bot's token (Telegram__BotToken)"), "{log}");
    assert!(!log.contains(wrong));
}

#[tokio::test]
async fn an_unreachable_telegram_is_logged_without_the_token() {
    let mut world = World::new().await;
    let unheard = Port::reserve();
    world.set("Telegram__ApiUrl", format!("http://{}", unheard.address));
    world.set("Ops__Log__Level", "trace");
    world.set("Ops__Log__Format", "json");
    let bot = world.start();
    let logged = async {
        while !world.log().contains("Telegram cannot be reached") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(LIMIT, logged).await.expect("logged");
    assert!(bot.terminate().await.success());
    world.check_manners();
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let mut world = World::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    world.set("A2A__Enabled", "true");
    world.set("A2A__Listen", taken.local_addr().expect("an address").to_string());
    let mut bot = world.start();
    assert_eq!(bot.ended().await.code(), Some(1));
    assert!(world.log().contains("failed to listen on 127.0.0.1"), "{}", world.log());
}
