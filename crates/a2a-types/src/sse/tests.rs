use proptest::prelude::*;

use super::*;

const ROOMY: SseLimits =
    SseLimits { max_event: 1 << 20, max_line: 1 << 20, max_comment: 1 << 20, max_kept: usize::MAX };

fn event(name: Option<&str>, data: &str) -> SseEvent<'static> {
    SseEvent { name: name.map(str::to_owned), data: data.to_owned().into(), is_cut: false }
}

fn drain(decoder: &mut SseDecoder) -> (Vec<SseEvent<'static>>, Option<SseError>) {
    let mut events = Vec::new();
    loop {
        match decoder.next_event() {
            Ok(Some(event)) => events.push(event.into_owned()),
            Ok(None) => return (events, None),
            Err(error) => return (events, Some(error)),
        }
    }
}

fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: SseLimits,
) -> (Vec<SseEvent<'static>>, Option<SseError>) {
    let mut decoder = SseDecoder::new(limits);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        let (more, error) = drain(&mut decoder);
        events.extend(more);
        if error.is_some() {
            return (events, error);
        }
    }
    decoder.finish();
    let (more, error) = drain(&mut decoder);
    events.extend(more);
    (events, error)
}

#[track_caller]
fn check(stream: &str, expected: &[SseEvent<'static>]) {
    let whole = decode([stream.as_bytes()], ROOMY);
    assert_eq!(whole, (expected.to_vec(), None), "{stream:?}");
    let bytewise = decode(stream.as_bytes().chunks(1), ROOMY);
    assert_eq!(bytewise, whole, "byte by byte: {stream:?}");
}

#[test]
fn every_line_end_is_known() {
    let expected = [event(None, "one"), event(Some("error"), "two")];
    for end in ["\n", "\r", "\r\n"] {
        let stream = "data: one\n\nevent: error\ndata: two\n\n".replace('\n', end);
        check(&stream, &expected);
    }
    check("data: one\r\n\ndata: two\r\r\n", &[event(None, "one"), event(None, "two")]);
}

#[test]
fn data_lines_are_joined() {
    check("data: {\ndata:  \"a\": 1\ndata\ndata: }\n\n", &[event(None, "{\n \"a\": 1\n\n}")]);
}

#[test]
fn one_space_after_the_colon_is_dropped() {
    check(
        "data:x\n\ndata: x\n\ndata:  x\n\n",
        &[event(None, "x"), event(None, "x"), event(None, " x")],
    );
}

#[test]
fn comments_ids_and_unknown_fields_are_passed_over() {
    check(
        ": ping - 2026\n\nid: 7\nretry: 10\ndatabase: no\ndat: no\n: in between\ndata: yes\n\n:\n\n",
        &[event(None, "yes")],
    );
}

#[test]
fn name_belongs_to_its_event_and_the_last_one_counts() {
    check(
        "event: a\nevent: b\ndata: 1\n\ndata: 2\n\nevent: c\nevent\ndata: 3\n\nevent: lost\n\ndata: 4\n\nevent: d\nevent:\ndata: 5\n\n",
        &[
            event(Some("b"), "1"),
            event(None, "2"),
            event(None, "3"),
            event(None, "4"),
            event(None, "5"),
        ],
    );
}

#[test]
fn events_without_data_are_none_but_empty_data_is() {
    check("event: x\n\n\n\nid: 1\n\n", &[]);
    check("data\n\ndata:\n\ndata: \n\n", &[event(None, ""), event(None, ""), event(None, "")]);
}

#[test]
fn last_event_counts_without_its_blank_line() {
    check("data: 1\n\ndata: 2\n", &[event(None, "1"), event(None, "2")]);
    check("data: 1\n\nevent: error\ndata: 2", &[event(None, "1"), event(Some("error"), "2")]);
    check("data: 1\n\n: trailing", &[event(None, "1")]);
}

#[test]
fn byte_order_mark_is_dropped_at_the_start_only() {
    check("\u{feff}data: 1\n\n", &[event(None, "1")]);
    check("data: 1\n\n\u{feff}data: no\n\n", &[event(None, "1")]);
    check("\u{feff}\u{feff}data: no\n\n", &[]);
    assert_eq!(decode([&BOM[..2]], ROOMY), (vec![], None));
    assert_eq!(
        decode([&BOM[..1], b"data: no\n\ndata: yes\n\n"], ROOMY),
        (vec![event(None, "yes")], None)
    );
}

#[test]
fn text_of_several_bytes_may_be_cut_anywhere() {
    check("data: żółw 🐢\n\n", &[event(None, "żółw 🐢")]);
}

#[test]
fn what_is_no_utf8_is_an_error_after_the_events_before_it() {
    let (events, error) = decode([b"data: 1\n\ndata: \xff\n\ndata: 3\n\n".as_slice()], ROOMY);
    assert_eq!((events, error), (vec![event(None, "1")], Some(SseError::NotUtf8)));
}

#[test]
fn limits_hold_to_the_byte() {
    let limits = SseLimits { max_event: 20, max_line: 12, max_comment: 6, ..ROOMY };
    let result = |stream: &str| {
        let whole = decode([stream.as_bytes()], limits);
        assert_eq!(decode(stream.as_bytes().chunks(1), limits).1, whole.1, "{stream:?}");
        whole.1
    };
    assert_eq!(result("data: 123456\n\n"), None);
    assert_eq!(result("data: 1234567\n\n"), Some(SseError::LineTooLong { limit: 12 }));
    assert_eq!(result("unknown: 1234567"), Some(SseError::LineTooLong { limit: 12 }));
    assert_eq!(result("data: 1234\ndata: 1234\n\ndata: 1234\n\n"), None);
    assert_eq!(result("data: 1234\ndata: 12345\n"), Some(SseError::EventTooLarge { limit: 20 }));
    assert_eq!(
        result("id: 123456\nid: 123456\nid: 1\n"),
        Some(SseError::EventTooLarge { limit: 20 })
    );
    assert_eq!(result(":12345\ndata: 1\n\n:12345\ndata: 2\n\n"), None, "an event ends the silence");
    for silence in
        [":12\n:123\n", "\n\n\n\n\n\n\n", "\r\n\r\n\r\n\r\n\r\n\r\n\r\n", "id\n\nid\n\nid\n\n"]
    {
        assert_eq!(result(silence), Some(SseError::CommentTooLong { limit: 6 }), "{silence:?}");
    }
    assert_eq!(result("\n\n\n\n\n\n"), None);
    assert_eq!(result(":123456\n"), Some(SseError::CommentTooLong { limit: 6 }));
}

#[test]
fn failed_decoder_keeps_nothing_and_stays_failed() {
    let mut decoder = SseDecoder::new(SseLimits { max_line: 10, ..ROOMY });
    decoder.push(Bytes::from_static(b"data: 1\n\ndata: 23456"));
    decoder.push(Bytes::from_static(b"data: 4\n\n"));
    assert_eq!(decoder.next_event(), Ok(Some(event(None, "1"))));
    for _ in 0..2 {
        assert_eq!(decoder.next_event(), Err(SseError::LineTooLong { limit: 10 }));
    }
    assert_eq!((decoder.data.capacity(), decoder.is_inside_event()), (0, false));
    decoder.finish();
    assert_eq!(decoder.next_event(), Err(SseError::LineTooLong { limit: 10 }));
}

#[test]
fn idle_and_stuck_are_told_apart() {
    let mut decoder = SseDecoder::new(ROOMY);
    let mut step = |bytes: &[u8]| {
        decoder.push(Bytes::copy_from_slice(bytes));
        while decoder.has_event().unwrap() {
            decoder.next_event().unwrap();
        }
        decoder.is_inside_event()
    };
    assert!(!step(b""));
    assert!(step(b"da"));
    assert!(step(b"ta: 1\n"));
    assert!(!step(b"\n"));
    assert!(!step(b": ping\r\n\r\n"));
    assert!(step(b"event: error\n"));
}

#[test]
fn written_events_read_back() {
    let stream = [
        encode_sse_comment("ping\nagain"),
        encode_sse_event("{\"a\":1}", None),
        encode_sse_event("two\nlines\r\nor\rfour", Some("error")),
        encode_sse_event("", Some("x\ndata: forged")),
    ]
    .concat();
    let expected = [
        event(None, "{\"a\":1}"),
        event(Some("error"), "two\nlines\nor\nfour"),
        event(Some("x"), ""),
    ];
    check(std::str::from_utf8(&stream).unwrap(), &expected);
    assert_eq!(&encode_sse_event("{}", Some("error"))[..], b"event: error\ndata: {}\n\n");
}

#[test]
fn large_event_in_small_pieces_takes_linear_time() {
    let mut decoder = SseDecoder::new(SseLimits {
        max_event: 1 << 24,
        max_line: 1 << 24,
        max_comment: 0,
        ..ROOMY
    });
    decoder.push(Bytes::from_static(b"data: "));
    let piece = Bytes::from_static(&[b'x'; 64]);
    assert_eq!(decoder.next_event(), Ok(None));
    for _ in 0..(4 << 20) / piece.len() {
        decoder.push(piece.clone());
        assert_eq!(decoder.next_event(), Ok(None));
    }
    decoder.push(Bytes::from_static(b"\n\n"));
    let read = decoder.next_event().unwrap().unwrap();
    assert_eq!(read.data.len(), 4 << 20);
}

#[test]
fn of_an_event_that_is_larger_than_is_kept_only_that_is_told() {
    let kept = SseLimits { max_kept: 20, ..ROOMY };
    let cut = SseEvent { name: None, data: Cow::default(), is_cut: true };
    let large = format!("event: e\ndata: 1\ndata: {}\n\n", "x".repeat(1000));
    let stream = format!("data: one\n\n{large}:{}\ndata: two\n\n", "c".repeat(1000));
    let expected = vec![event(None, "one"), cut, event(None, "two")];
    assert_eq!(decode([stream.as_bytes()], kept), (expected, None));
    let mut decoder = SseDecoder::new(kept);
    for piece in large.as_bytes().chunks(10) {
        decoder.push(Bytes::copy_from_slice(piece));
        decoder.has_event().unwrap();
        assert!(decoder.data.capacity() <= 64, "{} bytes", decoder.data.capacity());
    }
    // What is not kept counts all the same.
    let bounded = SseLimits { max_event: 900, ..kept };
    let error = SseError::EventTooLarge { limit: 900 };
    assert_eq!(decode([large.as_bytes()], bounded), (Vec::new(), Some(error)));
}

/// Streams made of what matters to the format, so that the interesting cases are common.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("data: "),
        Just("data:"),
        Just("data"),
        Just("event: error"),
        Just("event"),
        Just(":"),
        Just(": c"),
        Just("\n"),
        Just("\r"),
        Just("\r\n"),
        Just("\n\n"),
        Just(" "),
        Just("{}"),
        Just("ż"),
        Just("\u{feff}"),
        Just("id: 1"),
        Just("retry"),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

#[test]
fn event_that_came_whole_is_lent_and_one_that_came_in_pieces_is_not() {
    let lends = |pieces: &[&'static [u8]]| {
        let mut decoder = SseDecoder::new(ROOMY);
        decoder.push(Bytes::from_static(b": begin\n\n"));
        assert_eq!(decoder.next_event(), Ok(None));
        for piece in pieces {
            decoder.push(Bytes::from_static(piece));
            if let Some(event) = decoder.next_event().unwrap() {
                assert_eq!(event.data, "one");
                return matches!(event.data, Cow::Borrowed(_));
            }
        }
        panic!("no event in {pieces:?}");
    };
    for whole in ["data: one\n\n", "data:one\n\ndata: two", "data: one\r\n\r\n"] {
        assert!(lends(&[whole.as_bytes()]), "{whole:?}");
    }
    for whole in
        ["event: x\ndata: one\n\n", "data: one\nid: 1\n\n", "data: one\r\r", "data: one\n\r\n"]
    {
        assert!(!lends(&[whole.as_bytes()]), "{whole:?}");
    }
    assert!(!lends(&[b"data: o", b"ne\n\n"]) && !lends(&[b"data: one\n", b"\n"]));
}

#[test]
fn bytes_that_come_before_the_last_ones_were_asked_for_are_kept() {
    let mut decoder = SseDecoder::new(ROOMY);
    for piece in ["data: 1\n\nda", "ta: 2\n", "\ndata: 3"] {
        decoder.push(Bytes::from_static(piece.as_bytes()));
    }
    decoder.finish();
    let expected = vec![event(None, "1"), event(None, "2"), event(None, "3")];
    assert_eq!(drain(&mut decoder), (expected, None));
}

proptest! {
    #[test]
    fn all_chunkings_give_the_same_events(
        stream in stream(),
        cuts in prop::collection::vec(1_usize..7, 1..20),
        tight in any::<bool>(),
        max_kept in prop_oneof![0_usize..30, Just(usize::MAX)],
    ) {
        let narrow = SseLimits { max_event: 24, max_line: 10, max_comment: 4, ..ROOMY };
        let limits = SseLimits { max_kept, ..if tight { narrow } else { ROOMY } };
        let mut pieces = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        let whole = decode([stream.as_slice()], limits);
        prop_assert_eq!(&decode(pieces, limits), &whole);
        prop_assert_eq!(&decode(stream.chunks(1), limits), &whole);
    }

    #[test]
    fn any_bytes_do_not_panic(stream in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..50) {
        let whole = decode([stream.as_slice()], ROOMY);
        prop_assert_eq!(decode(stream.chunks(size), ROOMY), whole);
    }

    #[test]
    fn any_data_is_read_back(data in "(\\PC|[\r\n :]){0,40}") {
        let written = encode_sse_event(&data, None);
        let (events, error) = decode([&written[..]], ROOMY);
        let joined = data.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!((events, error), (vec![event(None, &joined)], None));
    }
}
