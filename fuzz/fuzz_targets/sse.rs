//! Any bytes in any pieces: no panic, the limits hold, and how the bytes are cut changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volcanic_a2a_types::{SseDecoder, SseError, SseEvent, SseLimits};

const LIMITS: SseLimits =
    SseLimits { max_event: 4096, max_line: 1024, max_comment: 256, max_kept: 2048 };

fn decode<'b>(
    pieces: impl Iterator<Item = &'b [u8]>,
) -> (Vec<SseEvent<'static>>, Option<SseError>) {
    let mut decoder = SseDecoder::new(LIMITS);
    let mut events = Vec::new();
    let mut take = |decoder: &mut SseDecoder| loop {
        match decoder.next_event() {
            Ok(Some(event)) => {
                assert!(event.data.len() <= LIMITS.max_event, "an event above the limit");
                events.push(event.into_owned());
            }
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    };
    for piece in pieces {
        decoder.push(piece.to_vec().into());
        if let Some(error) = take(&mut decoder) {
            return (events, Some(error));
        }
    }
    decoder.finish();
    let error = take(&mut decoder);
    (events, error)
}

fuzz_target!(|input: &[u8]| {
    let Some((seed, bytes)) = input.split_first() else { return };
    let size = usize::from(*seed).max(1);
    let whole = decode(std::iter::once(bytes));
    assert_eq!(decode(bytes.chunks(size)), whole, "cut every {size} bytes");
    assert_eq!(decode(bytes.chunks(1)), whole, "cut at every byte");
});
