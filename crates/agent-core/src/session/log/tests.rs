use serde_json::json;

use super::*;
use crate::{content::ToolReply, model::Usage};

fn user(text: &str) -> EntryBody {
    EntryBody::User {
        text: text.to_owned(),
        origin: Origin::Owner,
        key: PromptKey::new("k"),
        hops: 2,
        source: None,
    }
}

fn call(id: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: "t".to_owned(), arguments: Ok(json!({})), replay: None }
}

fn reply(ids: &[&str], stop: StopReason) -> EntryBody {
    let blocks = ids.iter().map(|id| Block::ToolCall(call(id))).collect();
    EntryBody::Assistant { blocks, stop, model: "m".to_owned(), usage: Usage::default() }
}

fn result(id: &str) -> EntryBody {
    EntryBody::Tool(ToolReply {
        call_id: id.to_owned(),
        name: "t".to_owned(),
        text: String::new(),
        is_error: false,
        settles: false,
    })
}

fn failed(last: bool) -> EntryBody {
    EntryBody::Failed { blocks: Vec::new(), reason: String::new(), aborted: false, last }
}

fn stored(entries: impl IntoIterator<Item = EntryBody>) -> Vec<Entry> {
    let at = jiff::Timestamp::UNIX_EPOCH;
    (1..).zip(entries).map(|(seq, body)| Entry { seq, at, body }).collect()
}

fn log(entries: impl IntoIterator<Item = EntryBody>) -> ConversationLog {
    ConversationLog::new(stored(entries))
}

#[track_caller]
fn check(entries: impl IntoIterator<Item = EntryBody>, expected: &RunStep) {
    assert_eq!(log(entries).next_step(2), *expected);
}

#[test]
fn run_asks_until_a_reply_has_no_calls() {
    use StopReason::{Stop, ToolUse};
    check([], &RunStep::Over);
    check([user("a")], &RunStep::Ask { wrap_up: false });
    check([user("a"), reply(&["1"], ToolUse)], &RunStep::Call(vec![call("1")]));
    check([user("a"), reply(&["1"], ToolUse), result("1")], &RunStep::Ask { wrap_up: false });
    check([user("a"), reply(&["1"], ToolUse), result("1"), reply(&[], Stop)], &RunStep::Over);
}

#[test]
fn calls_of_a_reply_that_says_stop_are_run_and_those_of_a_cut_one_are_not() {
    check([user("a"), reply(&["1"], StopReason::Stop)], &RunStep::Call(vec![call("1")]));
    for stop in [StopReason::Length, StopReason::Refusal] {
        check([user("a"), reply(&["1", "2"], stop)], &RunStep::Refuse(vec![call("1"), call("2")]));
    }
}

#[test]
fn only_calls_without_a_result_are_missing() {
    let entries = [user("a"), reply(&["1", "2", "3"], StopReason::ToolUse), result("2")];
    check(entries, &RunStep::Call(vec![call("1"), call("3")]));
}

#[test]
fn same_id_in_an_earlier_reply_is_another_call() {
    let turn = || reply(&["1"], StopReason::ToolUse);
    check([user("a"), turn(), result("1"), turn()], &RunStep::Call(vec![call("1")]));
}

#[test]
fn last_turn_sums_up() {
    let turn = |id: &'static str| [reply(&[id], StopReason::ToolUse), result(id)];
    let entries = [user("a")].into_iter().chain(turn("1")).chain(turn("2"));
    check(entries, &RunStep::Ask { wrap_up: true });
}

#[test]
fn turns_of_an_earlier_run_do_not_count() {
    let turn = |id: &'static str| [reply(&[id], StopReason::ToolUse), result(id)];
    let earlier = [user("a")].into_iter().chain(turn("1")).chain(turn("2"));
    check(earlier.chain([failed(true), user("b")]), &RunStep::Ask { wrap_up: false });
}

#[test]
fn failures_in_a_row_are_counted_since_the_last_step() {
    assert_eq!(log([user("a"), failed(false), failed(false)]).failed_attempts(), 2);
    assert_eq!(log([user("a"), failed(false), EntryBody::Resumed]).failed_attempts(), 0);
    assert_eq!(log([user("a"), failed(true), user("b")]).failed_attempts(), 0);
}

#[test]
fn resumptions_of_this_run_alone_are_counted() {
    let entries = [user("a"), EntryBody::Resumed, failed(true), user("b"), EntryBody::Resumed];
    assert_eq!(log(entries).resumes(), 1);
}

#[test]
fn open_run_knows_its_prompt_without_header() {
    let text = "[2026-10-08 14:05 +02:00 Europe/Berlin, Thu]\nhi";
    let open = log([user("earlier"), failed(true), user(text), EntryBody::Resumed]).open_run();
    assert_eq!(open.map(|run| (run.text, run.hops)), Some(("hi".to_owned(), 2)));
    assert_eq!(log([user("a"), failed(true)]).open_run(), None);
    assert_eq!(log([user("a"), EntryBody::Reset]).open_run(), None);
}

fn delivery() -> EntryBody {
    EntryBody::User {
        text: "[A2A result …".to_owned(),
        origin: Origin::Delivery,
        key: PromptKey::new("a2a:1:completed"),
        hops: 0,
        source: None,
    }
}

#[test]
fn latest_prompt_of_the_owner_is_found_behind_deliveries() {
    let log = log([delivery(), user("hello"), delivery()]);
    assert_eq!(log.latest_of_owner(), PromptKey::new("k"));
}

#[test]
fn conversation_that_the_owner_began_anew_is_a_word_of_theirs() {
    let first = log([delivery(), delivery()]).latest_of_owner();
    assert_eq!(log([delivery()]).latest_of_owner(), first);
    let again = [user("a"), EntryBody::Reset, delivery()];
    let second = log(again.clone()).latest_of_owner();
    let third = log([&again[..], &[EntryBody::Reset, delivery()]].concat()).latest_of_owner();
    assert!(first != second && second != third, "{first} {second} {third}");
    // A process that starts later sees the entries since the reset alone.
    let later = ConversationLog::new(stored(again).split_off(2));
    assert_eq!(later.latest_of_owner(), second);
}

#[test]
fn entries_beyond_the_log_are_told_from_those_it_shows() {
    let all = stored([user("a"), failed(true), user("b")]);
    let unknown = |known: &[EntryBody]| log(known.to_vec()).unknown_of(all.clone());
    assert_eq!(unknown(&[]), all);
    assert_eq!(unknown(&[user("a"), failed(true)]), all[2..]);
    assert_eq!(unknown(&[user("a"), failed(true), user("b")]), []);
}
