mod restarting;

use std::iter;
use std::time::Duration;

use jiff::Timestamp;
use volcanic_a2a_client::ClientConfig;
use volcanic_a2a_types::{ContextId, MessageId, TaskId};
use volcanic_base::Secret;

use super::{
    Availability, Continuation, Hint, ReadResult, SettledState, Watch, WatchEffect, WatchEvent,
};
use crate::config::WatchConfig;
use crate::record::{WatchId, WatchRecord, WatchSource, WatchState, WatchTarget};

fn start() -> Timestamp {
    "2026-11-30T12:00:00Z".parse().unwrap()
}

fn record() -> WatchRecord {
    WatchRecord {
        context_id: Some(ContextId::from("c1")),
        state: WatchState::Attended,
        message_id: Some(MessageId::from("m1")),
        ..WatchRecord::begun(
            WatchId::new("w1"),
            WatchTarget::new("chat"),
            "/somewhere/space".into(),
            ("travel-bot".to_owned(), "https://travel.example".to_owned()),
            TaskId::from("t1"),
            start(),
        )
    }
}

/// A watch with its own time.
struct Bench {
    watch: Watch,
    now: Timestamp,
    config: WatchConfig,
}

impl Bench {
    fn new() -> Self {
        let config = WatchConfig::new(ClientConfig::default(), 1 << 20);
        Self { watch: Watch::attended(record()), now: start(), config }
    }

    /// A watch that polls, waiting for its first read.
    fn watching() -> Self {
        let mut bench = Self::new();
        assert_eq!(bench.feed(release(None)), Some(WatchEffect::Write));
        assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));
        assert_eq!(bench.feed(WatchEvent::NoStreams), wait(15));
        bench
    }

    /// A watch whose agent pushes, waiting for its safety read.
    fn pushed() -> Self {
        let mut bench = Self::new();
        assert_eq!(bench.feed(release(Some("token"))), Some(WatchEffect::Write));
        assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Register));
        assert_eq!(bench.feed(WatchEvent::Registered), Some(WatchEffect::Write));
        assert_eq!(bench.feed(WatchEvent::Written), wait(0));
        assert_eq!(bench.check(working()), wait(600));
        bench
    }

    fn feed(&mut self, event: WatchEvent) -> Option<WatchEffect> {
        self.watch.on_event(event, self.now, &self.config)
    }

    /// Lets the timer ring, reads `result`, and writes when that is asked for.
    #[track_caller]
    fn check(&mut self, result: ReadResult) -> Option<WatchEffect> {
        assert_eq!(self.feed(WatchEvent::Due), Some(WatchEffect::Read));
        self.read(result)
    }

    fn read(&mut self, result: ReadResult) -> Option<WatchEffect> {
        let effect = self.feed(WatchEvent::Read(result));
        if effect == Some(WatchEffect::Write) { self.feed(WatchEvent::Written) } else { effect }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what an event leads to")]
fn wait(seconds: u64) -> Option<WatchEffect> {
    Some(WatchEffect::Wait(Duration::from_secs(seconds)))
}

fn release(token: Option<&str>) -> WatchEvent {
    WatchEvent::Release { push_token: token.map(Secret::from), hinted: false }
}

fn working() -> ReadResult {
    ReadResult::Unsettled { label: "working".to_owned(), context_id: None }
}

fn settled(label: &str) -> ReadResult {
    ReadResult::Settled { state: state(label), text: format!("it is {label}"), context_id: None }
}

fn state(label: &str) -> SettledState {
    let is_final = !label.ends_with("-required");
    SettledState { label: label.to_owned(), mark: format!("{label}#1"), is_final }
}

fn told_before(label: &str) -> ReadResult {
    ReadResult::ToldBefore { state: state(label), context_id: None }
}

fn failed(retry_after: Option<u64>) -> ReadResult {
    ReadResult::Failed {
        reason: "did not answer in time".to_owned(),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

#[test]
fn watch_poll_backs_off() {
    let mut bench = Bench::watching();
    let pauses: Vec<_> = (0..6).map(|_| bench.check(working())).collect();
    assert_eq!(pauses, [30, 60, 120, 300, 300, 300].map(wait));
}

#[test]
fn settled_task_is_claimed_delivered_and_over() {
    let mut bench = Bench::watching();
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));
    let claimed = bench.watch.record().clone();
    assert_eq!(claimed.state, WatchState::Claimed);
    assert_eq!(claimed.delivery_key, "a2a:w1:completed");
    assert_eq!(claimed.text.as_deref(), Some("it is completed"));
    assert_eq!(bench.feed(WatchEvent::Delivered), Some(WatchEffect::Write));
    assert_eq!(bench.watch.record().state, WatchState::Done);
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::End));
    assert_eq!((bench.watch.record().epoch, bench.watch.stale()), (3, 0));
}

#[test]
fn claim_is_delivered_only_once_written() {
    let mut bench = Bench::watching();
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.feed(WatchEvent::Read(settled("completed"))), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::WriteFailed), wait(2));
    assert_eq!(bench.feed(WatchEvent::Hinted(Hint::Push)), None);
    assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Deliver));
}

#[test]
fn failed_delivery_is_tried_again() {
    let mut bench = Bench::watching();
    bench.check(settled("completed"));
    assert_eq!(bench.feed(WatchEvent::DeliverFailed), wait(2));
    assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Deliver));
}

#[test]
fn result_for_an_unknown_conversation_waits_for_a_flush() {
    let mut bench = Bench::watching();
    bench.check(settled("completed"));
    assert_eq!(bench.feed(WatchEvent::NotNow), None);
    assert_eq!(bench.watch.availability(), Availability::Kept);
    assert_eq!(bench.feed(WatchEvent::Flush), Some(WatchEffect::Deliver));
}

#[test]
fn flush_that_overtakes_the_answer_of_a_delivery_is_not_lost() {
    let mut bench = Bench::watching();
    bench.check(settled("completed"));
    assert_eq!(bench.feed(WatchEvent::Flush), None);
    assert_eq!(bench.feed(WatchEvent::NotNow), Some(WatchEffect::Deliver));
    assert_eq!(bench.feed(WatchEvent::NotNow), None);
    assert_eq!(bench.feed(WatchEvent::Flush), Some(WatchEffect::Deliver));
}

#[test]
fn auth_required_is_told_once_and_the_watch_goes_on() {
    let mut bench = Bench::watching();
    assert_eq!(bench.check(settled("auth-required")), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:auth-required");
    bench.feed(WatchEvent::Delivered);
    assert_eq!(bench.feed(WatchEvent::Written), wait(30));
    let record = bench.watch.record();
    assert_eq!(
        (record.state, record.told.as_slice()),
        (WatchState::Watching, &["auth-required#1", "auth-required"].map(str::to_owned)[..])
    );
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:completed");
}

#[test]
fn retry_after_only_lengthens_and_is_capped() {
    let mut bench = Bench::watching();
    assert_eq!(bench.check(failed(Some(5))), wait(30));
    assert_eq!(bench.check(failed(Some(600))), wait(600));
    assert_eq!(bench.check(failed(Some(86_400))), wait(3600));
    assert_eq!(bench.watch.record().failures, 3);
    bench.check(working());
    assert_eq!(bench.watch.record().failures, 0);
}

#[test]
fn last_pause_ends_at_the_deadline() {
    let mut bench = Bench::watching();
    bench.pass(86_400 - 20);
    assert_eq!(bench.check(working()), wait(20));
    bench.pass(20);
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:completed");
}

#[test]
fn unknown_task_ends_the_watch_after_three_times_in_ten_minutes() {
    let mut bench = Bench::watching();
    for _ in 0..5 {
        assert!(matches!(bench.check(ReadResult::NotFound), Some(WatchEffect::Wait(_))));
        bench.pass(60);
    }
    bench.pass(300);
    assert_eq!(bench.check(ReadResult::NotFound), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:not-found");
}

#[test]
fn answer_in_between_forgives_an_unknown_task() {
    let mut bench = Bench::watching();
    bench.check(ReadResult::NotFound);
    bench.check(ReadResult::NotFound);
    bench.pass(900);
    bench.check(working());
    assert_eq!(bench.check(ReadResult::NotFound), wait(300));
    assert_eq!(bench.watch.record().not_found, 1);
}

#[test]
fn answer_in_between_forgives_failed_checks() {
    let mut bench = Bench::watching();
    for _ in 0..3 {
        bench.check(failed(None));
    }
    assert_eq!(bench.watch.record().failures, 3);
    bench.check(working());
    assert_eq!(bench.watch.record().failures, 0);
    // So files have all their tries, and a push watch would rest as long as ever.
    assert!(matches!(bench.check(unsaved()), Some(WatchEffect::Wait(_))));
    assert_eq!(bench.watch.record().failures, 1);
}

fn unsaved() -> ReadResult {
    ReadResult::Unsaved {
        state: state("completed"),
        text: "Lisbon, without its files".to_owned(),
        context_id: None,
        reason: "the disk is full".to_owned(),
    }
}

#[test]
fn files_that_a_full_disk_does_not_take_are_tried_again_a_few_times_before_the_text_is_told() {
    let mut bench = Bench::watching();
    for pause in [30, 60, 120] {
        assert_eq!(bench.check(unsaved()), wait(pause));
        assert_eq!(bench.watch.record().last_seen.as_deref(), Some("the disk is full"));
    }
    assert_eq!(bench.check(unsaved()), Some(WatchEffect::Deliver));
    let record = bench.watch.record();
    assert_eq!(
        (record.state, record.text.as_deref(), record.last_seen.as_deref()),
        (WatchState::Claimed, Some("Lisbon, without its files"), Some("completed"))
    );
}

#[test]
fn files_have_all_their_tries_whatever_failed_before() {
    let mut bench = Bench::watching();
    for _ in 0..5 {
        bench.check(failed(None));
    }
    for _ in 0..3 {
        assert!(matches!(bench.check(unsaved()), Some(WatchEffect::Wait(_))));
    }
    assert_eq!(bench.check(unsaved()), Some(WatchEffect::Deliver));
}

#[test]
fn checks_that_fail_in_between_do_not_put_the_text_off_for_ever() {
    let mut bench = Bench::watching();
    for _ in 0..3 {
        assert!(matches!(bench.check(unsaved()), Some(WatchEffect::Wait(_))));
        bench.check(failed(None));
    }
    assert_eq!(bench.check(unsaved()), Some(WatchEffect::Deliver));
}

#[test]
fn files_that_are_saved_at_another_try_are_told_as_ever() {
    let mut bench = Bench::watching();
    assert_eq!(bench.check(unsaved()), wait(30));
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().text.as_deref(), Some("it is completed"));
}

#[test]
fn watch_whose_time_is_over_tells_the_text_although_its_files_are_not_saved() {
    let mut bench = Bench::watching();
    bench.pass(86_400);
    assert_eq!(bench.check(unsaved()), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().text.as_deref(), Some("Lisbon, without its files"));
}

#[test]
fn watch_agent_removed_ends_watch() {
    let mut bench = Bench::watching();
    assert_eq!(bench.check(ReadResult::AgentMissing), wait(5));
    bench.pass(5);
    assert_eq!(bench.check(ReadResult::AgentMissing), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:stopped");
}

#[test]
fn agent_missing_for_one_parse_only_is_forgiven() {
    let mut bench = Bench::watching();
    bench.check(ReadResult::AgentMissing);
    bench.pass(5);
    bench.check(working());
    bench.pass(5);
    assert_eq!(bench.check(ReadResult::AgentMissing), wait(5));
}

#[test]
fn malformed_agents_file_never_ends_a_watch() {
    let mut bench = Bench::watching();
    bench.pass(86_400 * 2);
    let bad = || ReadResult::AgentsFileBad { reason: "agents.json is not JSON".to_owned() };
    assert_eq!(bench.check(bad()), wait(30));
    assert_eq!(bench.check(bad()), wait(60));
    assert_eq!(bench.watch.record().state, WatchState::Watching);
}

#[test]
fn moved_origin_is_told_once_and_the_watch_goes_on_when_it_is_back() {
    let mut bench = Bench::watching();
    assert_eq!(bench.check(ReadResult::OriginMoved), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:origin-moved");
    bench.feed(WatchEvent::Delivered);
    bench.feed(WatchEvent::Written);
    assert_eq!(bench.check(ReadResult::OriginMoved), wait(300));
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));
}

#[test]
fn first_push_reads_at_once_and_a_burst_costs_one_more_read() {
    let mut bench = Bench::pushed();
    assert_eq!(bench.feed(WatchEvent::Hinted(Hint::Push)), Some(WatchEffect::Read));
    for _ in 0..50 {
        assert_eq!(bench.feed(WatchEvent::Hinted(Hint::Push)), None);
    }
    bench.pass(1);
    assert_eq!(bench.read(working()), wait(4));
    assert_eq!(bench.feed(WatchEvent::Hinted(Hint::Push)), wait(4));
    bench.pass(4);
    assert_eq!(bench.check(working()), wait(600));
}

#[test]
fn refused_push_config_makes_the_watch_subscribe_or_poll() {
    let mut bench = Bench::new();
    bench.feed(release(Some("token")));
    bench.feed(WatchEvent::Written);
    assert_eq!(bench.feed(WatchEvent::NotRegistered), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));
    assert_eq!(bench.feed(WatchEvent::NoStreams), wait(15));
    let record = bench.watch.record();
    assert_eq!((record.source, record.push_token.is_none()), (WatchSource::Poll, true));
}

/// A watch that holds a stream, its first read over.
fn subscribed() -> Bench {
    let mut bench = Bench::new();
    bench.feed(release(None));
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));
    assert_eq!(bench.feed(WatchEvent::StreamOpened), Some(WatchEffect::Read));
    assert_eq!(bench.read(working()), wait(300));
    assert_eq!(bench.watch.record().source, WatchSource::Subscribe);
    bench
}

#[test]
fn stream_is_held_five_minutes_and_the_task_is_read_after_every_connect() {
    let mut bench = subscribed();
    for _ in 0..5 {
        bench.pass(300);
        assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Subscribe));
        assert!(bench.watch.is_streaming(), "the place is kept");
        assert_eq!(bench.feed(WatchEvent::StreamOpened), Some(WatchEffect::Read));
        assert_eq!(bench.read(working()), wait(300));
    }
}

#[test]
fn hint_of_a_stream_reads_at_once_and_a_burst_costs_one_more_read() {
    let mut bench = subscribed();
    bench.pass(60);
    assert_eq!(bench.feed(WatchEvent::Hinted(Hint::Stream)), Some(WatchEffect::Read));
    assert_eq!(bench.feed(WatchEvent::Hinted(Hint::Stream)), None);
    assert_eq!(bench.read(working()), wait(5));
    bench.pass(5);
    assert_eq!(bench.check(working()), wait(235), "the stream is held on");
}

#[test]
fn every_read_says_what_it_is_for() {
    let mut bench = Bench::watching();
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.watch.read_for(), Hint::Poll);

    let mut bench = Bench::pushed();
    assert_eq!(bench.watch.read_for(), Hint::Begin, "what came before the config was not pushed");
    bench.pass(600);
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.watch.read_for(), Hint::SafetyRead);
    assert_eq!(bench.feed(WatchEvent::Hinted(Hint::Push)), None);
    assert_eq!(bench.read(failed(None)), wait(0));
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.watch.read_for(), Hint::Push, "the push came while the task was read");
    assert_eq!(bench.read(failed(None)), wait(30));
    bench.pass(30);
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.watch.read_for(), Hint::Poll, "a failed read is made up for");

    let mut bench = subscribed();
    assert_eq!(bench.watch.read_for(), Hint::Gap);
    bench.pass(6);
    bench.feed(WatchEvent::Hinted(Hint::Stream));
    assert_eq!(bench.watch.read_for(), Hint::Stream);
    bench.read(working());
    bench.feed(WatchEvent::StreamEnded);
    assert_eq!(bench.watch.read_for(), Hint::Gap);

    let mut bench = Bench::new();
    bench.feed(release(Some("token")));
    bench.feed(WatchEvent::Written);
    bench.feed(WatchEvent::Registered);
    bench.feed(WatchEvent::Hinted(Hint::Push));
    bench.feed(WatchEvent::Written);
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.watch.read_for(), Hint::Push);
    assert_eq!(bench.read(working()), wait(600));
    bench.pass(600);
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.watch.read_for(), Hint::SafetyRead, "it began with the push");

    let mut kept = record();
    kept.state = WatchState::Watching;
    let (watch, _) = Watch::restored(kept, start(), Duration::ZERO, None);
    let mut bench = Bench { watch, ..Bench::new() };
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.feed(WatchEvent::StreamFailed), Some(WatchEffect::Read));
    assert_eq!(bench.watch.read_for(), Hint::Gap);
}

#[test]
fn third_failure_of_a_stream_in_a_row_makes_the_watch_poll() {
    let mut bench = subscribed();
    for seconds in [1, 5] {
        assert_eq!(bench.feed(WatchEvent::StreamEnded), Some(WatchEffect::Read));
        assert!(!bench.watch.is_streaming());
        assert_eq!(bench.read(working()), wait(seconds));
        bench.pass(seconds);
        assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Subscribe));
        assert_eq!(bench.feed(WatchEvent::StreamOpened), Some(WatchEffect::Read));
        assert_eq!(bench.read(working()), wait(300));
    }
    assert_eq!(bench.feed(WatchEvent::StreamEnded), Some(WatchEffect::Read));
    assert_eq!(bench.read(working()), wait(15));
    assert_eq!(bench.watch.record().source, WatchSource::Poll);
    assert_eq!(bench.check(working()), wait(30));
}

#[test]
fn stream_that_was_held_to_its_end_forgives_earlier_failures() {
    let mut bench = subscribed();
    for _ in 0..4 {
        assert_eq!(bench.feed(WatchEvent::StreamEnded), Some(WatchEffect::Read));
        assert_eq!(bench.read(working()), wait(1));
        bench.pass(1);
        bench.feed(WatchEvent::Due);
        bench.feed(WatchEvent::StreamOpened);
        assert_eq!(bench.read(working()), wait(300));
        bench.pass(300);
        assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Subscribe));
        bench.feed(WatchEvent::StreamOpened);
        assert_eq!(bench.read(working()), wait(300));
    }
}

#[test]
fn stream_that_ends_with_its_agent_is_no_failure_of_streams() {
    let mut bench = subscribed();
    for seconds in [15, 30, 60, 120, 300, 300] {
        let ended = if seconds == 15 { WatchEvent::StreamEnded } else { WatchEvent::StreamFailed };
        assert_eq!(bench.feed(ended), Some(WatchEffect::Read));
        assert_eq!(bench.read(failed(None)), wait(seconds));
        bench.pass(seconds);
        assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Subscribe));
    }
    assert_eq!(bench.feed(WatchEvent::StreamOpened), Some(WatchEffect::Read));
    assert_eq!(bench.read(working()), wait(300));
}

#[test]
fn stream_that_cannot_be_opened_lets_the_task_be_read() {
    let mut bench = Bench::new();
    bench.feed(release(None));
    bench.feed(WatchEvent::Written);
    assert_eq!(bench.feed(WatchEvent::StreamFailed), Some(WatchEffect::Read));
    assert_eq!(bench.read(settled("completed")), Some(WatchEffect::Deliver));
}

#[test]
fn watch_without_a_place_polls_until_there_is_one() {
    let mut bench = Bench::new();
    bench.feed(release(None));
    bench.feed(WatchEvent::Written);
    assert_eq!(bench.feed(WatchEvent::NoPlace), wait(15));
    assert_eq!(bench.check(working()), wait(30));
    assert!(bench.watch.waits_for_place());
    assert_eq!(bench.feed(WatchEvent::Place), Some(WatchEffect::Subscribe));
    assert_eq!(bench.feed(WatchEvent::StreamOpened), Some(WatchEffect::Read));
    assert_eq!(bench.read(working()), wait(300));
}

#[test]
fn nothing_is_listened_for_while_an_outcome_is_told() {
    let mut bench = subscribed();
    bench.feed(WatchEvent::Hinted(Hint::Stream));
    assert_eq!(bench.read(settled("auth-required")), Some(WatchEffect::Deliver));
    assert!(!bench.watch.is_streaming());
    assert_eq!(bench.feed(WatchEvent::Delivered), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));
}

#[test]
fn overdue_watch_is_read_before_its_stream_is_opened_anew() {
    let mut bench = subscribed();
    bench.pass(86_400);
    assert_eq!(bench.check(working()), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:no-result");
}

#[test]
fn watch_that_was_held_is_checked_when_it_would_have_been() {
    let mut bench = Bench::watching();
    bench.check(working());
    bench.check(working());
    bench.pass(10);
    bench.feed(WatchEvent::Hold);
    bench.pass(5);
    assert_eq!(bench.feed(release(None)), wait(45));
}

#[test]
fn call_that_has_not_begun_can_be_taken_back() {
    let mut bench = Bench::watching();
    bench.feed(WatchEvent::Due);
    assert_eq!(bench.watch.call(), Some(WatchEffect::Read));
    assert_eq!(bench.feed(WatchEvent::Withdrawn), None);
    assert_eq!(bench.watch.availability(), Availability::Free);
    bench.feed(WatchEvent::Hold);
    assert_eq!(bench.feed(release(None)), wait(0));
    assert_eq!(bench.check(working()), wait(30));
}

#[test]
fn confirmation_that_comes_when_nobody_holds_the_watch_counts() {
    let confirmed = || WatchEvent::Confirmed { state: state("completed"), push_token: None };
    let mut idle = Bench::watching();
    assert_eq!(idle.feed(confirmed()), Some(WatchEffect::Write));
    assert_eq!(idle.feed(WatchEvent::Written), Some(WatchEffect::End));
    let mut reading = Bench::watching();
    reading.feed(WatchEvent::Due);
    assert_eq!(reading.feed(confirmed()), None);
    assert_eq!(reading.read(working()), wait(0));
    assert_eq!(reading.feed(WatchEvent::Due), Some(WatchEffect::Write));
    assert_eq!(reading.feed(WatchEvent::Written), Some(WatchEffect::End));
}

#[test]
fn kept_text_can_be_told_by_who_holds_the_watch() {
    let mut bench = Bench::watching();
    bench.check(settled("completed"));
    bench.feed(WatchEvent::NotNow);
    bench.feed(WatchEvent::Hold);
    assert_eq!(bench.feed(release(None)), Some(WatchEffect::Deliver), "it was not told");
    bench.feed(WatchEvent::NotNow);
    bench.feed(WatchEvent::Hold);
    let confirmed = WatchEvent::Confirmed { state: state("completed"), push_token: None };
    assert_eq!(bench.feed(confirmed), Some(WatchEffect::Write));
    assert_eq!(bench.watch.record().text, None);
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::End));
}

#[test]
fn confirmed_outcome_ends_the_watch() {
    let mut bench = Bench::new();
    let confirmed = WatchEvent::Confirmed { state: state("completed"), push_token: None };
    assert_eq!(bench.feed(confirmed), Some(WatchEffect::Write));
    assert_eq!(bench.watch.record().state, WatchState::Done);
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::End));
}

#[test]
fn confirmed_auth_required_goes_on() {
    let mut bench = Bench::new();
    let confirmed = WatchEvent::Confirmed { state: state("auth-required"), push_token: None };
    assert_eq!(bench.feed(confirmed), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));
    assert_eq!(bench.watch.record().told, ["auth-required#1", "auth-required"]);
}

#[test]
fn held_watch_neither_reads_nor_delivers() {
    let mut bench = Bench::watching();
    assert_eq!(bench.watch.availability(), Availability::Free);
    assert_eq!(bench.feed(WatchEvent::Hold), None);
    assert_eq!(bench.watch.availability(), Availability::Held);
    assert_eq!(bench.feed(WatchEvent::Due), None);
    assert_eq!(bench.feed(release(None)), wait(15));
    assert_eq!(bench.watch.record().epoch, 1);
}

#[test]
fn continuation_makes_every_state_worth_telling_again() {
    let mut bench = Bench::watching();
    bench.check(settled("auth-required"));
    bench.feed(WatchEvent::Delivered);
    bench.feed(WatchEvent::Written);
    bench.feed(WatchEvent::Hold);
    let continuation = Continuation {
        message_id: MessageId::from("m2"),
        hops: 1,
        source_ref: Some("9".to_owned()),
        answered: Some("input-required#answered".to_owned()),
    };
    assert_eq!(bench.feed(WatchEvent::Continued(continuation)), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Attend));
    let record = bench.watch.record();
    assert_eq!((record.round, record.hops), (1, 1));
    assert_eq!(record.told, ["input-required#answered"]);
    assert_eq!(record.key_for("auth-required"), "a2a:w1:auth-required:1");
}

/// A message came beside the watch, `continuations` in all.
fn beside(continuations: u32) -> WatchEvent {
    WatchEvent::ContinuedBeside { continuations, answered: None }
}

#[test]
fn message_sent_while_a_question_is_delivered_keeps_the_watch_going() {
    let mut bench = Bench::watching();
    bench.check(settled("input-required"));
    assert_eq!(bench.feed(beside(1)), None);
    assert_eq!(bench.feed(WatchEvent::Delivered), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), wait(15));
    assert_eq!(bench.watch.record().round, 1);
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));
    assert_eq!(bench.watch.record().delivery_key, "a2a:w1:completed:1");
    bench.feed(WatchEvent::Delivered);
    assert_eq!(bench.watch.record().state, WatchState::Done);
}

#[test]
fn outcome_that_a_message_beside_it_did_not_change_is_not_told_again() {
    let mut bench = Bench::watching();
    bench.check(settled("completed"));
    assert_eq!(bench.feed(beside(1)), None);
    assert_eq!(bench.feed(WatchEvent::Delivered), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), wait(15));
    assert_eq!(bench.watch.record().told, ["completed#1"]);
    assert_eq!(bench.check(told_before("completed")), Some(WatchEffect::End));
    assert_eq!(bench.watch.record().state, WatchState::Done);
}

#[test]
fn question_that_a_message_beside_it_did_not_change_is_followed_on() {
    let mut bench = Bench::watching();
    bench.check(settled("input-required"));
    bench.feed(beside(1));
    bench.feed(WatchEvent::Delivered);
    bench.feed(WatchEvent::Written);
    assert_eq!(bench.check(told_before("input-required")), wait(30));
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));
}

#[test]
fn message_sent_while_the_tombstone_is_written_keeps_the_watch_going() {
    let mut bench = Bench::watching();
    bench.check(settled("completed"));
    assert_eq!(bench.feed(WatchEvent::Delivered), Some(WatchEffect::Write));
    assert_eq!(bench.feed(beside(1)), None);
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), wait(15));
    let record = bench.watch.record();
    assert_eq!((record.state, record.round), (WatchState::Watching, 1));
    assert_eq!(bench.check(told_before("completed")), Some(WatchEffect::End));
}

#[test]
fn job_that_broke_off_counts_as_a_passing_failure() {
    let mut bench = Bench::watching();
    bench.feed(WatchEvent::Due);
    let event = bench.watch.broken_job().unwrap();
    assert_eq!(
        bench.read(match event {
            WatchEvent::Read(result) => result,
            other => panic!("{other:?}"),
        }),
        wait(30)
    );
    assert!(bench.watch.broken_job().is_none());
}

#[test]
fn late_event_means_nothing() {
    let mut bench = Bench::watching();
    let before = bench.watch.record().clone();
    for event in [
        WatchEvent::Read(settled("completed")),
        WatchEvent::Written,
        WatchEvent::WriteFailed,
        WatchEvent::Registered,
        WatchEvent::NotRegistered,
        WatchEvent::Delivered,
        WatchEvent::NotNow,
        WatchEvent::DeliverFailed,
        release(None),
    ] {
        assert_eq!(bench.feed(event), None);
    }
    assert_eq!((bench.watch.record(), bench.watch.stale()), (&before, 9));
}

#[test]
fn only_the_questions_that_were_answered_last_are_noted() {
    let mut record = record();
    record.note_told("completed#d".to_owned());
    for number in 0..100 {
        record.note_told(format!("answered#{number}"));
    }
    let last = (68..100).map(|number| format!("answered#{number}"));
    assert_eq!(record.told, iter::once("completed#d".to_owned()).chain(last).collect::<Vec<_>>());
}

#[test]
fn state_that_is_told_again_and_again_is_noted_once() {
    let mut bench = Bench::watching();
    for _ in 0..3 {
        bench.check(settled("auth-required"));
        bench.feed(WatchEvent::Delivered);
        bench.feed(WatchEvent::Written);
    }
    assert_eq!(bench.watch.record().told, ["auth-required", "auth-required#1"]);
}
