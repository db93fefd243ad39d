//! Bytes that are made while they are sent: nothing here ever holds what it stands for.

use std::{
    fmt::Write as _,
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

/// About how much is written at once, in bytes.
const BLOCK: usize = 64 << 10;

/// Some bytes, one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Once(Bytes),
    Times(Bytes, u64),
    /// For ever.
    Endless(Bytes),
    /// `before`, the number, `after`, for each number below the last; all numbers are equally wide.
    Numbered(&'static str, &'static str, u64),
}

impl Content {
    pub(super) fn of(bytes: impl Into<Bytes>) -> Self {
        Self::default().then(bytes)
    }

    pub(super) fn then(mut self, bytes: impl Into<Bytes>) -> Self {
        self.pieces.push(Piece::Once(bytes.into()));
        self
    }

    pub(super) fn times(mut self, bytes: impl Into<Bytes>, count: u64) -> Self {
        self.pieces.push(Piece::Times(bytes.into(), count));
        self
    }

    pub(super) fn endless(mut self, bytes: impl Into<Bytes>) -> Self {
        self.pieces.push(Piece::Endless(bytes.into()));
        self
    }

    pub(super) fn numbered(mut self, before: &'static str, after: &'static str, to: u64) -> Self {
        self.pieces.push(Piece::Numbered(before, after, to));
        self
    }

    pub(super) fn join(mut self, other: Self) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    /// How many bytes it is; `None` if it never ends.
    pub(super) fn length(&self) -> Option<u64> {
        self.pieces.iter().map(Piece::length).sum()
    }

    /// Sends all of it, and counts what was sent.
    pub(super) async fn send(&self, to: &mut TcpStream, sent: &AtomicU64) -> io::Result<()> {
        for piece in &self.pieces {
            piece.send(to, sent).await?;
        }
        Ok(())
    }

    /// The first bytes, `most` at most.
    pub(super) fn beginning(&self, most: usize) -> Bytes {
        let mut found = Vec::new();
        for piece in &self.pieces {
            if found.len() >= most {
                break;
            }
            match piece {
                Piece::Once(bytes) => found.extend_from_slice(bytes),
                Piece::Times(bytes, count) => {
                    let count = usize::try_from(*count).unwrap_or(usize::MAX);
                    let count = count.min(most / bytes.len() + 1);
                    found.extend(bytes.repeat(count));
                }
                Piece::Endless(bytes) => found.extend(bytes.repeat(most / bytes.len() + 1)),
                Piece::Numbered(before, after, to) => {
                    found.extend(numbers(before, after, 0, (*to).min(most as u64)).into_bytes());
                }
            }
        }
        found.truncate(most);
        found.into()
    }
}

impl Piece {
    fn length(&self) -> Option<u64> {
        match self {
            Self::Once(bytes) => Some(bytes.len() as u64),
            Self::Times(bytes, count) => Some(bytes.len() as u64 * count),
            Self::Endless(_) => None,
            Self::Numbered(before, after, to) => {
                Some((before.len() + after.len() + WIDTH) as u64 * to)
            }
        }
    }

    async fn send(&self, to: &mut TcpStream, sent: &AtomicU64) -> io::Result<()> {
        let mut write = async |bytes: &[u8]| {
            to.write_all(bytes).await?;
            sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            io::Result::Ok(())
        };
        match self {
            Self::Once(bytes) => write(bytes).await,
            Self::Times(bytes, count) => {
                let at_once = (BLOCK / bytes.len().max(1)).max(1) as u64;
                let block = bytes.repeat(usize::try_from(at_once.min(*count)).unwrap_or(1));
                for _ in 0..count / at_once {
                    write(&block).await?;
                }
                let rest = usize::try_from(count % at_once).unwrap_or_default();
                write(&block[..rest * bytes.len()]).await
            }
            Self::Endless(bytes) => {
                let block = bytes.repeat((BLOCK / bytes.len().max(1)).max(1));
                loop {
                    write(&block).await?;
                }
            }
            Self::Numbered(before, after, last) => {
                let mut next = 0;
                while next < *last {
                    let end = (next + 1000).min(*last);
                    write(numbers(before, after, next, end).as_bytes()).await?;
                    next = end;
                }
                Ok(())
            }
        }
    }
}

/// How many digits a number has here.
const WIDTH: usize = 9;

fn numbers(before: &str, after: &str, from: u64, to: u64) -> String {
    (from..to).fold(String::new(), |mut text, number| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{before}{number:09}{after}");
        text
    })
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncReadExt as _, net::TcpListener};

    use super::*;

    async fn sent(content: &Content) -> (Vec<u8>, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let count = AtomicU64::new(0);
        let sending = async {
            let mut to = listener.accept().await.unwrap().0;
            content.send(&mut to, &count).await.unwrap();
        };
        let reading = async {
            let mut found = Vec::new();
            TcpStream::connect(address).await.unwrap().read_to_end(&mut found).await.unwrap();
            found
        };
        let ((), found) = tokio::join!(sending, reading);
        (found, count.into_inner())
    }

    #[tokio::test]
    async fn what_is_sent_is_as_long_as_it_said() {
        let content = Content::of("[").times("ab,", 50_000).numbered("<", ">", 2_500).then("]");
        let (found, count) = sent(&content).await;
        assert_eq!(Some(found.len() as u64), content.length());
        assert_eq!(count, found.len() as u64);
        let text = String::from_utf8(found).unwrap();
        assert_eq!(text.matches("ab,").count(), 50_000);
        assert!(text.ends_with("<000002499>]"), "{}", &text[text.len() - 40..]);
        assert_eq!(content.beginning(6), "[ab,ab");
    }

    #[test]
    fn what_never_ends_has_no_length() {
        assert_eq!(Content::of("a").endless("b").length(), None);
        assert_eq!(Content::of("a").endless("b").beginning(3), "abb");
    }
}
