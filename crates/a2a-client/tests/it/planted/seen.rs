//! All that can be seen of a call: values and errors with everything in them, and the log of every library below.

use std::{
    error::Error,
    fmt::{Debug, Write as _},
    io,
    sync::{Arc, Mutex},
};

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// What is logged on this thread, at any level.
pub(super) struct Capture {
    log: Log,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Capture {
    pub(super) fn start() -> Self {
        let log = Log::default();
        // The most that hosts let through: what HTTP/2 logs below that is what remotes say.
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new("trace,h2=info"))
            .with_ansi(false)
            .with_writer(log.clone())
            .finish();
        Self { log, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub(super) fn finish(self) -> String {
        String::from_utf8_lossy(&self.log.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// An error, its details and its causes.
pub(super) fn error(error: &(impl Error + 'static)) -> String {
    let mut seen = format!("{error}\n{error:?}\n{error:#?}\n");
    let mut cause = error.source();
    while let Some(current) = cause {
        writeln!(seen, "{current}\n{current:?}").unwrap();
        cause = current.source();
    }
    seen
}

/// How a call ended.
pub(super) fn result<T: Debug>(result: &Result<T, impl Error + 'static>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(failed) => error(failed),
    }
}

/// Whether a text has the key in it, in a writing that can be undone. Written apart from what takes keys out.
pub(super) fn is_spelled(text: &str, key: &str) -> bool {
    let mut layers = vec![text.to_owned()];
    for _ in 0..3 {
        let last = layers.last().unwrap();
        layers.push(percent(&json(last)));
    }
    let joined: Vec<_> = layers.iter().map(|layer| visible(layer)).collect();
    layers.extend(joined);
    layers.iter().any(|layer| {
        let is_encoded = |word: &str| in_base64(word).is_some_and(|text| text.contains(key));
        layer.contains(key)
            || layer
                .split(|c: char| !c.is_ascii_alphanumeric() && !"+/-_".contains(c))
                .any(is_encoded)
    })
}

fn json(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let (code, after) = (rest.get(at + 2..at + 6), rest.get(at + 6..));
        let decoded =
            code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match (rest[at + 1..].chars().next(), decoded, after) {
            (Some('u'), Some(decoded), Some(after)) => {
                plain.push(decoded);
                rest = after;
            }
            (Some(next @ ('\\' | '/' | '"')), ..) => {
                plain.push(next);
                rest = &rest[at + 2..];
            }
            _ => {
                plain.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    plain + rest
}

fn percent(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        plain.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3).and_then(|code| u8::from_str_radix(code, 16).ok());
        if let Some(code) = code.filter(u8::is_ascii) {
            plain.push(char::from(code));
            rest = &rest[at + 3..];
        } else {
            plain.push('%');
            rest = &rest[at + 1..];
        }
    }
    plain + rest
}

fn visible(text: &str) -> String {
    let is_hidden = |c: &char| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}')
    };
    text.replace("\\n", "").chars().filter(|c| !is_hidden(c)).collect()
}

fn in_base64(word: &str) -> Option<String> {
    let lax = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent);
    let whole = if word.len() % 4 == 1 { &word[..word.len() - 1] } else { word };
    let plain = whole.replace('-', "+").replace('_', "/");
    let bytes = GeneralPurpose::new(&alphabet::STANDARD, lax).decode(plain).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[test]
fn key_is_recognised_in_every_writing() {
    use base64::engine::general_purpose::STANDARD;
    let key = "k_planted_3f9c2a";
    for text in [
        "x k_planted_3f9c2a x".to_owned(),
        "k%5Fplanted%5f3f9c2a".to_owned(),
        "\\u006b_planted_3f9c2a".to_owned(),
        "k\\u0025\\u0035Fplanted_3f9c2a".to_owned(),
        "k_plan\nted_3f\u{200b}9c2a".to_owned(),
        format!("a {} b", STANDARD.encode(format!("x-api-key: {key} and more"))),
    ] {
        assert!(is_spelled(&text, key), "{text}");
    }
    assert!(!is_spelled("k_planted 3f9c2a *** KioqKioqKioqKioq", key));
}
