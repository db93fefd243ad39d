//! What a start makes of the watches that an earlier process left, and what a clock that is set does to one.

use std::time::Duration;

use jiff::Timestamp;
use volcanic_a2a_client::ClientConfig;
use volcanic_base::Secret;

use super::{Bench, record, release, settled, start, wait, working};
use crate::config::WatchConfig;
use crate::machine::{ReadResult, Watch, WatchEffect, WatchEvent};
use crate::record::{WatchRecord, WatchSource, WatchState};

#[test]
fn overdue_watch_is_read_once_before_it_gives_up() {
    let mut late = record();
    late.state = WatchState::Watching;
    let mut bench = Bench::new();
    bench.pass(86_400 * 3);
    let (watch, effect) = Watch::restored(late, bench.now, Duration::ZERO, None);
    bench.watch = watch;
    assert_eq!(effect, wait(0));
    assert_eq!(bench.check(working()), Some(WatchEffect::Deliver));
    let record = bench.watch.record();
    assert_eq!(record.delivery_key, "a2a:w1:no-result");
    assert!(record.text.as_ref().is_some_and(|text| text.contains("within 24h")), "{record:?}");
}

#[test]
fn push_watch_without_a_listener_subscribes_after_a_restart() {
    let mut kept = record();
    kept.state = WatchState::Watching;
    kept.source = WatchSource::Push;
    kept.push_token = Some(Secret::from("token"));
    let (watch, effect) = Watch::restored(kept, start(), Duration::ZERO, None);
    assert_eq!((effect, watch.record().source), (Some(WatchEffect::Write), WatchSource::Poll));
    let mut bench = Bench { watch, ..Bench::new() };
    assert_eq!(bench.feed(WatchEvent::Written), wait(0));
    assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Subscribe));
    assert_eq!(bench.feed(WatchEvent::NoStreams), Some(WatchEffect::Read));
}

fn kept_with_a_token() -> WatchRecord {
    let push_token = Some(Secret::from("token"));
    WatchRecord { state: WatchState::Watching, push_token, ..record() }
}

#[test]
fn push_config_that_a_killed_process_owed_is_sent_by_the_next_one_that_listens() {
    let listens = || Some(Secret::from("another"));
    let (watch, effect) = Watch::restored(kept_with_a_token(), start(), Duration::ZERO, listens());
    assert_eq!(effect, Some(WatchEffect::Register));
    let mut bench = Bench { watch, ..Bench::new() };
    assert_eq!(bench.watch.record().push_token.as_ref().unwrap().expose(), "token");
    assert_eq!(bench.feed(WatchEvent::Registered), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), wait(0));

    let (_, effect) = Watch::restored(kept_with_a_token(), start(), Duration::ZERO, None);
    assert_eq!(effect, wait(0));
    // The remote refused it.
    let refused = WatchRecord { push_token: None, ..kept_with_a_token() };
    let (_, effect) = Watch::restored(refused, start(), Duration::ZERO, listens());
    assert_eq!(effect, wait(0));
    let told = WatchRecord { source: WatchSource::Push, ..kept_with_a_token() };
    let (_, effect) = Watch::restored(told, start(), Duration::ZERO, listens());
    assert_eq!(effect, wait(0));
}

#[test]
fn push_config_that_is_owed_is_sent_by_whoever_lets_the_watch_go() {
    for state in [WatchState::Watching, WatchState::Attended] {
        let watch = Watch::attended(WatchRecord { state, ..kept_with_a_token() });
        let mut bench = Bench { watch, ..Bench::new() };
        let mut effect = bench.feed(release(Some("another")));
        if state == WatchState::Attended {
            assert_eq!(effect, Some(WatchEffect::Write));
            effect = bench.feed(WatchEvent::Written);
        }
        assert_eq!(effect, Some(WatchEffect::Register), "{state:?}");
        assert_eq!(bench.watch.record().push_token.as_ref().unwrap().expose(), "token");
    }
}

#[test]
fn watch_that_begins_with_the_commit_that_keeps_it_needs_no_write_to_go_on() {
    let begun = |record, hinted| {
        let config = WatchConfig::new(ClientConfig::default(), 1 << 20);
        let (watch, effect) = Watch::begun(record, hinted, start(), &config);
        (Bench { watch, now: start(), config }, effect)
    };
    let kept = || WatchRecord { push_token: None, ..kept_with_a_token() };

    let (mut bench, effect) = begun(kept(), false);
    assert_eq!(effect, WatchEffect::Subscribe);
    assert_eq!(bench.feed(WatchEvent::NoStreams), wait(15));
    let (mut bench, effect) = begun(kept(), false);
    assert_eq!(effect, WatchEffect::Subscribe);
    assert_eq!(bench.feed(WatchEvent::StreamOpened), Some(WatchEffect::Read));

    // What looked settled is read at once, before anything is listened to.
    let (mut bench, effect) = begun(kept(), true);
    assert_eq!(Some(effect), wait(0));
    assert_eq!(bench.check(settled("completed")), Some(WatchEffect::Deliver));

    for hinted in [false, true] {
        let (mut bench, effect) = begun(kept_with_a_token(), hinted);
        assert_eq!(effect, WatchEffect::Register);
        assert_eq!(bench.feed(WatchEvent::Registered), Some(WatchEffect::Write));
        assert_eq!(bench.feed(WatchEvent::Written), wait(0));
        assert_eq!(bench.check(working()), wait(600));
        assert_eq!(bench.watch.record().source, WatchSource::Push);
    }
}

#[test]
fn tombstone_that_a_message_overtook_goes_on_after_a_restart() {
    let mut done = record();
    (done.state, done.continuations) = (WatchState::Done, 1);
    let (watch, effect) = Watch::restored(done, start(), Duration::ZERO, None);
    let record = watch.record();
    assert_eq!((effect, record.state), (Some(WatchEffect::Write), WatchState::Watching));
    assert_eq!((record.round, record.is_behind()), (1, false));
}

#[test]
fn tombstone_that_a_message_overtook_is_pushed_to_again_after_a_restart() {
    for source in [WatchSource::Push, WatchSource::Poll] {
        let done = || {
            let state = WatchState::Done;
            WatchRecord { state, source, continuations: 1, ..kept_with_a_token() }
        };
        let listens = Some(Secret::from("another"));
        let (watch, effect) = Watch::restored(done(), start(), Duration::ZERO, listens);
        assert_eq!(effect, Some(WatchEffect::Write));
        let mut bench = Bench { watch, ..Bench::new() };
        assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Register), "{source:?}");
        assert_eq!(bench.watch.record().push_token.as_ref().unwrap().expose(), "token");
        assert_eq!(bench.feed(WatchEvent::NotRegistered), Some(WatchEffect::Write));
        assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));

        let (watch, effect) = Watch::restored(done(), start(), Duration::ZERO, None);
        assert_eq!((effect, watch.record().source), (Some(WatchEffect::Write), WatchSource::Poll));
        let mut bench = Bench { watch, ..Bench::new() };
        assert_eq!(bench.feed(WatchEvent::Written), wait(0));
        assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Subscribe));
    }
}

#[test]
fn watch_that_is_pushed_to_takes_no_stream_after_a_restart_in_the_middle_of_something_else() {
    let pushed = |state| WatchRecord { state, source: WatchSource::Push, ..kept_with_a_token() };
    let listens = || Some(Secret::from("another"));
    let claimed = || WatchRecord {
        delivery_key: "a2a:w1:auth-required".to_owned(),
        goes_on: true,
        ..pushed(WatchState::Claimed)
    };
    let restored = |record, token| {
        let (watch, effect) = Watch::restored(record, start(), Duration::ZERO, token);
        (Bench { watch, ..Bench::new() }, effect)
    };

    let (mut bench, effect) = restored(claimed(), listens());
    assert_eq!(effect, Some(WatchEffect::Deliver));
    assert_eq!(bench.feed(WatchEvent::Delivered), Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), wait(15));
    assert_eq!(bench.check(working()), wait(600));
    let (mut bench, _) = restored(claimed(), None);
    assert_eq!(bench.feed(WatchEvent::Delivered), Some(WatchEffect::Write));
    assert_eq!(bench.watch.record().source, WatchSource::Poll);
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));

    let (mut bench, effect) = restored(pushed(WatchState::Attended), listens());
    assert_eq!(effect, Some(WatchEffect::Write));
    assert_eq!(bench.feed(WatchEvent::Written), wait(0));
    assert_eq!(bench.check(working()), wait(600));
    let (mut bench, _) = restored(pushed(WatchState::Attended), None);
    assert_eq!(bench.watch.record().source, WatchSource::Poll);
    assert_eq!(bench.feed(WatchEvent::Written), Some(WatchEffect::Subscribe));
}

#[test]
fn moments_that_are_still_to_come_are_taken_for_now_unless_the_clock_was_never_set() {
    let early = start() - Duration::from_hours(1);
    let mut record = WatchRecord { not_found_since: Some(start()), ..record() };
    record.correct_times(Timestamp::UNIX_EPOCH);
    assert_eq!((record.started_at, record.not_found_since), (start(), Some(start())));
    record.correct_times(early);
    assert_eq!((record.started_at, record.not_found_since), (early, Some(early)));
}

#[test]
fn watch_that_began_before_the_clock_was_set_begins_anew_when_it_is() {
    let mut bench = Bench::watching();
    let set = std::mem::replace(&mut bench.now, Timestamp::UNIX_EPOCH);
    let record = WatchRecord { started_at: bench.now, ..bench.watch.record().clone() };
    (bench.watch, _) = Watch::restored(record, bench.now, Duration::ZERO, None);
    assert_eq!(bench.feed(WatchEvent::Due), Some(WatchEffect::Subscribe));
    assert_eq!(bench.feed(WatchEvent::NoStreams), Some(WatchEffect::Read));
    bench.read(ReadResult::AgentMissing);
    bench.now = set;
    assert!(!bench.watch.is_overdue(bench.now, &bench.config));
    assert_eq!(bench.check(ReadResult::AgentMissing), wait(5));
    bench.pass(5);
    assert_eq!(bench.check(ReadResult::AgentMissing), Some(WatchEffect::Deliver));
}

#[test]
fn attended_watch_is_watched_after_a_restart_and_a_claimed_one_delivered() {
    let (watch, effect) = Watch::restored(record(), start(), Duration::ZERO, None);
    assert_eq!((effect, watch.record().state), (Some(WatchEffect::Write), WatchState::Watching));
    let mut claimed = record();
    claimed.state = WatchState::Claimed;
    let (_, effect) = Watch::restored(claimed, start(), Duration::ZERO, None);
    assert_eq!(effect, Some(WatchEffect::Deliver));
}
