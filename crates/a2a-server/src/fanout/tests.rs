use super::*;

fn event(text: &str) -> LoggedEvent {
    LoggedEvent { json: Bytes::from(text.to_owned()), end: EventEnd::Open }
}

fn fanout(task_bytes: usize, process_bytes: usize) -> (Arc<Fanout>, FanoutBudget) {
    let budget = FanoutBudget::default();
    let limits = FanoutLimits { task_bytes, process_bytes, readers: 2, ..FanoutLimits::default() };
    (Arc::new(Fanout::new(limits, budget.clone())), budget)
}

async fn text(reader: &mut EventReader) -> Result<String, CutOff> {
    let event = reader.next().await?;
    Ok(String::from_utf8(event.json.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn every_reader_gets_every_event_in_order() {
    let (fanout, budget) = fanout(100, 100);
    fanout.publish(event("before anyone listens")).await;
    let (mut one, mut other) = (fanout.subscribe().unwrap(), fanout.subscribe().unwrap());
    for name in ["a", "b", "c"] {
        fanout.publish(event(name)).await;
    }
    for name in ["a", "b", "c"] {
        assert_eq!(text(&mut one).await.unwrap(), name);
    }
    assert_eq!(budget.0.load(Ordering::Relaxed), 3, "kept for the slower one");
    for name in ["a", "b", "c"] {
        assert_eq!(text(&mut other).await.unwrap(), name);
    }
    assert_eq!(budget.0.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn reader_that_does_not_move_is_cut_off_and_told_so() {
    let (fanout, budget) = fanout(10, 100);
    let (mut quick, mut slow) = (fanout.subscribe().unwrap(), fanout.subscribe().unwrap());
    fanout.publish(event("12345678")).await;
    assert_eq!(text(&mut quick).await.unwrap(), "12345678");
    let began = Instant::now();
    fanout.publish(event("abcdefgh")).await;
    assert_eq!(began.elapsed(), Duration::from_millis(250));
    assert_eq!(text(&mut quick).await.unwrap(), "abcdefgh");
    assert_eq!(text(&mut slow).await, Err(CutOff));
    assert_eq!(budget.0.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn reader_that_moves_in_time_loses_nothing() {
    let (fanout, _) = fanout(10, 100);
    let mut reader = fanout.subscribe().unwrap();
    fanout.publish(event("12345678")).await;
    let second = fanout.publish(event("abcdefgh"));
    let reading = async {
        tokio::time::advance(Duration::from_millis(100)).await;
        (text(&mut reader).await.unwrap(), text(&mut reader).await.unwrap())
    };
    let ((), read) = tokio::join!(second, reading);
    assert_eq!(read, ("12345678".to_owned(), "abcdefgh".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn one_event_over_the_bound_still_goes_through() {
    let (fanout, _) = fanout(4, 4);
    let mut reader = fanout.subscribe().unwrap();
    fanout.publish(event("far too large")).await;
    assert_eq!(text(&mut reader).await.unwrap(), "far too large");
}

#[tokio::test(start_paused = true)]
async fn readers_are_bounded_and_leave_no_bytes_behind() {
    let (fanout, budget) = fanout(100, 100);
    let one = fanout.subscribe().unwrap();
    let other = fanout.subscribe().unwrap();
    assert!(fanout.subscribe().is_none());
    fanout.publish(event("abc")).await;
    drop(one);
    assert!(fanout.subscribe().is_some());
    drop(fanout);
    drop(other);
    assert_eq!(budget.0.load(Ordering::Relaxed), 0);
}
