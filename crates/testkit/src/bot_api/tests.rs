use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::methods::{Refusal, Request, dispatch};
use super::state::State;
use super::{BotApi, Shared, serve};

fn call(state: &mut State, method: &str, params: Value) -> Result<Value, Refusal> {
    dispatch(state, method, &Request { params, ..Request::default() })
}

fn state_with_chat() -> State {
    let mut state = State::new("1:token".to_owned());
    state.receive_message(
        &json!({"id": 5, "type": "private"}),
        &json!({"id": 5}),
        json!({"text": "hi"}),
    );
    state
}

#[track_caller]
fn check_refused(params: Value, wanted: &str) {
    let refusal = call(&mut state_with_chat(), "sendmessage", params).expect_err("refused");
    assert!(refusal.description.contains(wanted), "{} lacks {wanted}", refusal.description);
}

#[test]
fn a_text_is_measured_in_utf16_units() {
    let mut state = state_with_chat();
    let longest = "😀".repeat(2048);
    call(&mut state, "sendmessage", json!({"chat_id": 5, "text": longest})).expect("4096 units");
    check_refused(json!({"chat_id": 5, "text": format!("{longest}a")}), "message is too long");
}

#[test]
fn wrong_messages_are_refused() {
    check_refused(json!({"chat_id": 6, "text": "x"}), "chat not found");
    check_refused(json!({"chat_id": 5, "text": " \n "}), "message text is empty");
    check_refused(
        json!({"chat_id": 5, "text": "x", "reply_parameters": {"message_id": 99}}),
        "message to be replied not found",
    );
    check_refused(json!({"chat_id": 5, "text": "x", "parse_mode": "HTML"}), "parse_mode");
}

#[test]
fn wrong_entities_are_refused() {
    let with = |entities: Value| json!({"chat_id": 5, "text": "ab😀cd", "entities": entities});
    check_refused(with(json!([{"type": "bold", "offset": 4, "length": 3}])), "ends at 7 of 6");
    check_refused(with(json!([{"type": "bold", "offset": 2, "length": 1}])), "surrogate");
    check_refused(with(json!([{"type": "bold", "offset": 0, "length": 0}])), "empty");
    check_refused(with(json!([{"type": "heading", "offset": 0, "length": 1}])), "unsupported type");
    check_refused(
        with(
            json!([{"type": "bold", "offset": 0, "length": 2}, {"type": "italic", "offset": 1, "length": 3}]),
        ),
        "cross",
    );
    check_refused(
        with(
            json!([{"type": "code", "offset": 0, "length": 2}, {"type": "bold", "offset": 0, "length": 2}]),
        ),
        "code shares text with bold",
    );
    let fine = with(json!([
        {"type": "blockquote", "offset": 0, "length": 6},
        {"type": "code", "offset": 0, "length": 2},
        {"type": "bold", "offset": 2, "length": 2},
    ]));
    call(&mut state_with_chat(), "sendmessage", fine).expect("nested and disjoint");
}

#[test]
fn an_edit_must_change_something() {
    let mut state = state_with_chat();
    let sent = call(&mut state, "sendmessage", json!({"chat_id": 5, "text": "one"})).expect("sent");
    let id = sent["message_id"].clone();
    let same =
        call(&mut state, "editmessagetext", json!({"chat_id": 5, "message_id": id, "text": "one"}));
    assert!(same.expect_err("refused").description.contains("message is not modified"));
    call(&mut state, "editmessagetext", json!({"chat_id": 5, "message_id": id, "text": "two"}))
        .expect("edited");
    assert_eq!(state.sent_to(5).iter().map(|sent| sent.text.as_str()).collect::<Vec<_>>(), ["two"]);
}

#[test]
fn a_button_press_is_answered_once() {
    let mut state = state_with_chat();
    let id = state.press_button(5, 1, "x");
    let params = json!({"callback_query_id": id});
    call(&mut state, "answercallbackquery", params.clone()).expect("first");
    call(&mut state, "answercallbackquery", params).expect_err("second");
}

#[test]
fn an_unknown_method_is_reported() {
    let mut state = state_with_chat();
    assert_eq!(call(&mut state, "sendrainbow", json!({})).expect_err("refused").code, 404);
    assert_eq!(state.violations, ["unknown method `sendrainbow`"]);
}

#[test]
fn a_blocked_bot_is_refused() {
    let mut state = state_with_chat();
    state.set_blocked(5, true);
    let refusal =
        call(&mut state, "sendmessage", json!({"chat_id": 5, "text": "x"})).expect_err("refused");
    assert_eq!(
        (refusal.code, refusal.description.as_str()),
        (403, "Forbidden: bot was blocked by the user")
    );
}

#[test]
fn offsets_acknowledge_and_everything_else_comes_again() {
    let mut state = state_with_chat();
    let second = state.queue_update(json!({"message": {"text": "b"}}));
    assert_eq!(state.due_updates(1).len(), 1);
    assert_eq!(state.due_updates(100).len(), 2);
    state.acknowledge(second);
    assert_eq!(
        state.due_updates(100).iter().map(|update| &update["update_id"]).collect::<Vec<_>>(),
        [second]
    );
    state.queue_update(json!({"message": {"text": "c"}}));
    state.acknowledge(-1);
    assert_eq!(state.due_updates(9)[0]["message"]["text"], "c");
}

#[test]
fn kinds_that_were_not_asked_for_never_come() {
    let mut state = state_with_chat();
    state.allowed_updates = Some(vec!["message".to_owned()]);
    state.queue_update(json!({"edited_message": {"text": "b"}}));
    assert!(state.due_updates(9).iter().all(|update| update.get("message").is_some()));
}

async fn post(shared: &Arc<Shared>, path: &str, body: &Value) -> (u16, Value) {
    let request = axum::http::Request::post(path)
        .header("content-type", "application/json")
        .body(axum::body::Body::from(body.to_string()))
        .expect("request");
    let response = tower::ServiceExt::oneshot(serve::router(Arc::clone(shared)), request)
        .await
        .expect("infallible");
    let status = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("body");
    (status, serde_json::from_slice(&bytes).expect("JSON"))
}

fn shared() -> Arc<Shared> {
    Arc::new(Shared { state: Mutex::new(state_with_chat()), changes: watch::channel(0).0 })
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_for_an_update() {
    let shared = shared();
    shared.lock().acknowledge(i64::MAX);
    let start = tokio::time::Instant::now();
    let (status, body) = post(&shared, "/bot1:token/GetUpdates", &json!({"timeout": 20})).await;
    assert_eq!((status, body["result"].clone()), (200, json!([])));
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_second_poller_ends_the_first_with_409() {
    let shared = shared();
    shared.lock().acknowledge(i64::MAX);
    let poll = json!({"timeout": 20});
    let (first, second) = tokio::join!(
        post(&shared, "/bot1:token/getUpdates", &poll),
        post(&shared, "/bot1:token/getUpdates", &poll)
    );
    assert_eq!((first.0, second.0), (409, 200));
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_reported() {
    let shared = shared();
    assert_eq!(post(&shared, "/bot2:wrong/getMe", &json!({})).await.0, 401);
    assert_eq!(shared.lock().violations.len(), 1);
}

#[tokio::test]
async fn messages_can_be_awaited() {
    let api = BotApi::start().await.expect("started");
    api.user_says(5, "hello");
    let limit = std::time::Duration::from_millis(50);
    let missing = api.await_message(5, limit, |_| true).await.expect_err("nothing yet");
    assert!(missing.to_string().contains("a message"));
    let request = Request { params: json!({"chat_id": 5, "text": "answer"}), ..Request::default() };
    dispatch(&mut api.shared.lock(), "sendmessage", &request).expect("sent");
    assert_eq!(
        api.await_message(5, limit, |sent| sent.text == "answer").await.expect("seen").id,
        2
    );
}
