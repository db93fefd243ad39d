use proptest::prelude::*;

use super::*;

/// Takes a body that comes in such pieces; returns it and what stays behind it.
fn taken(mut framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, Vec<u8>, bool), Http1Error> {
    let (mut buffer, mut body) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let data = framing.take(&mut buffer)?;
            if data.is_empty() {
                break;
            }
            body.extend_from_slice(&data);
        }
    }
    Ok((body, buffer.to_vec(), framing.is_over()))
}

fn chunked() -> Framing {
    Framing::Chunked(Chunks::default())
}

#[track_caller]
fn check(framing: Framing, wire: &str, body: &str, left: &str, is_over: bool) {
    let found = taken(framing, &[wire.as_bytes()]).unwrap();
    let wanted = (body.as_bytes().to_vec(), left.as_bytes().to_vec(), is_over);
    assert_eq!(found, wanted, "{wire:?}");
}

#[test]
fn body_ends_where_it_says() {
    check(Framing::Length(3), "abcdef", "abc", "def", true);
    check(Framing::Length(3), "ab", "ab", "", false);
    check(Framing::Length(0), "x", "", "x", true);
    check(Framing::UntilClosed, "abc", "abc", "", false);
}

#[test]
fn chunks_are_put_together() {
    check(chunked(), "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nrest", "abcde", "rest", true);
    check(chunked(), "0\r\n\r\n", "", "", true);
    check(chunked(), "A\r\n0123456789\r\n", "0123456789", "", false);
    check(chunked(), "0000000000000003\r\nabc\r\n0\r\n\r\n", "abc", "", true);
    check(chunked(), "3;name=\"x\"\r\nabc\r\n0;y\r\n\r\n", "abc", "", true);
    check(chunked(), "3 \r\nabc\r\n0\r\nx-sum: 1\r\ny: 2\r\n\r\n", "abc", "", true);
    check(chunked(), "3\r\nab", "ab", "", false);
    check(chunked(), "3\r\nabc\r", "abc", "\r", false);
    check(chunked(), "3\r\nabc\r\n1", "abc", "1", false);
    check(chunked(), "0\r\nx: 1\r\n\r", "", "\r", false);
}

#[test]
fn what_is_no_chunk_is_an_error() {
    for wire in [
        "\r\n",
        "g\r\n",
        ";x\r\n",
        " 3\r\nabc\r\n",
        "-1\r\n",
        "3\rabc",
        "3\nabc\n",
        "00000000000000003\r\nabc\r\n",
        "fffffffffffffffff\r\n",
        "3\r\nabcX",
        "3\r\nabc\n0\r\n\r\n",
        "3\r\nabc\r\n\r\n",
        // A reader who takes a bare line feed for an end would see another body.
        "3;a\nb\r\nabc\r\n0\r\n\r\n",
        "3;a\n",
        "0\r\n\n",
        "0\r\nx: 1\n\r\n",
        // A size that has lost a digit.
        "0\r\nabc\r\n0\r\n\r\n",
        "0\r\n: 1\r\n\r\n",
        "0\r\nx y: 1\r\n\r\n",
    ] {
        let error = taken(chunked(), &[wire.as_bytes()]).unwrap_err();
        assert!(matches!(error, Http1Error::Chunk), "{wire:?} {error:?}");
    }
}

#[test]
fn what_came_before_a_fault_is_handed_on_first() {
    for fault in ["g\r\n", "3\r\nabcX", "1;a\nb\r\n", "0\r\n\n"] {
        let mut framing = chunked();
        let mut buffer = BytesMut::from(format!("2\r\nhe\r\n3\r\nllo\r\n{fault}").as_bytes());
        let data = framing.take(&mut buffer).unwrap();
        assert!(data.starts_with(b"hello"), "{fault:?} {data:?}");
        for _ in 0..2 {
            let error = framing.take(&mut buffer).unwrap_err();
            assert!(matches!(error, Http1Error::Chunk), "{fault:?} {error:?}");
        }
        assert!(!framing.is_over());
    }
}

#[test]
fn a_chunk_of_any_size_takes_no_room_beforehand() {
    let mut framing = chunked();
    let mut buffer = BytesMut::from(&b"ffffffffffffffff\r\nabc"[..]);
    assert_eq!(framing.take(&mut buffer).unwrap(), "abc");
    assert_eq!(framing.announced(), u64::MAX - 3);
    assert!(buffer.capacity() < 100);
}

#[test]
fn what_stands_beside_the_data_is_bounded() {
    let long = "x".repeat(2 * MAX_EXTRAS);
    let many = |line: &str| line.repeat(MAX_EXTRAS);
    for wire in [
        format!("1;{long}"),
        format!("1;{long}\r\na\r\n"),
        many("1;0123456789012345678901234567890\r\na\r\n"),
        format!("0\r\n{long}"),
        format!("0\r\n{}", many("a:b\r\n")),
    ] {
        // In small pieces, and at once.
        let pieces: Vec<&[u8]> = wire.as_bytes().chunks(1000).collect();
        for pieces in [&pieces[..], &[wire.as_bytes()]] {
            let error = taken(chunked(), pieces).unwrap_err();
            assert!(matches!(error, Http1Error::Chunk), "{error:?}");
        }
    }
    // What is usual has room, however often it comes.
    let (body, _, is_over) =
        taken(chunked(), &[(many("1\r\na\r\n") + "0\r\n\r\n").as_bytes()]).unwrap();
    assert_eq!((body.len(), is_over), (MAX_EXTRAS, true));
}

/// A body, and how it may look on the wire.
fn bodies() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let extension = prop_oneof![Just(""), Just(";a"), Just("; a=\"b\""), Just(" ")];
    let chunk = (prop::collection::vec(any::<u8>(), 1..40), extension, any::<bool>());
    let trailers = prop::collection::vec("[a-z]{1,5}: [a-z\r]{0,9}\r\n", 0..3);
    (prop::collection::vec(chunk, 0..12), trailers).prop_map(|(chunks, trailers)| {
        let (mut body, mut wire) = (Vec::new(), Vec::new());
        for (data, extension, is_upper) in chunks {
            let size = data.len();
            let size = if is_upper { format!("{size:X}") } else { format!("{size:x}") };
            wire.extend(format!("{size}{extension}\r\n").bytes());
            wire.extend(&data);
            wire.extend(b"\r\n");
            body.extend(data);
        }
        wire.extend(format!("0\r\n{}\r\n", trailers.concat()).bytes());
        (body, wire)
    })
}

proptest! {
    #[test]
    fn however_it_is_cut_the_body_is_the_same(
        (body, wire) in bodies(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        behind in prop::collection::vec(any::<u8>(), 0..5),
    ) {
        let whole = [wire, behind.clone()].concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &whole[cut[0]..cut[1]]).collect();
        prop_assert_eq!(taken(chunked(), &pieces).unwrap(), (body, behind, true));
    }

    #[test]
    fn any_bytes_are_taken_or_refused_and_never_more_than_there_are(
        pieces in prop::collection::vec(prop::collection::vec(prop_oneof![
            any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b'0'), Just(b'1'), Just(b'f'), Just(b';'),
        ], 0..20), 0..20),
        length in any::<u64>(),
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let all = pieces.concat();
        if let Ok((body, left, _)) = taken(chunked(), &pieces) {
            prop_assert!(body.len() + left.len() <= all.len());
            prop_assert!(all.ends_with(&left));
        }
        let (body, left, _) = taken(Framing::Length(length), &pieces).unwrap();
        prop_assert_eq!([body, left].concat(), all);
    }
}
