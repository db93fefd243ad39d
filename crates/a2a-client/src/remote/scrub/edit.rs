//! Replaces pieces of a text by shorter ones, in place where it can.

use std::{mem, ops::Range};

use bytes::Bytes;

/// A text on its way from one end to the other. It is copied when the first piece is replaced, and only if somebody else
/// holds it too.
pub(super) struct Edit {
    shared: Bytes,
    own: Option<Vec<u8>>,
    /// Where what is left begins.
    read: usize,
    /// Where what is done ends, once something was replaced.
    write: usize,
    /// Where what was skipped since then begins.
    skipped: usize,
}

impl Edit {
    pub(super) fn new(text: Bytes) -> Self {
        Self { shared: text, own: None, read: 0, write: 0, skipped: 0 }
    }

    /// What is left.
    pub(super) fn rest(&self) -> &[u8] {
        &self.own.as_deref().unwrap_or(&self.shared)[self.read..]
    }

    /// Leaves that much of the rest as it is.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.read += bytes;
    }

    /// Puts `mask`, which is no longer than that, in place of a piece of the rest, and leaves what stands before it.
    pub(super) fn mask(&mut self, piece: Range<usize>, mask: &[u8]) {
        let text = self.own.get_or_insert_with(|| mem::take(&mut self.shared).into());
        let begin = self.read + piece.start;
        text.copy_within(self.skipped..begin, self.write);
        self.write += begin - self.skipped;
        text[self.write..self.write + mask.len()].copy_from_slice(mask);
        self.write += mask.len();
        self.read += piece.end;
        self.skipped = self.read;
    }

    /// The text with all that was replaced.
    pub(super) fn finish(self) -> Bytes {
        let Some(mut text) = self.own else { return self.shared };
        let left = text.len() - self.skipped;
        text.copy_within(self.skipped.., self.write);
        text.truncate(self.write + left);
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_replaced_and_the_rest_stays() {
        let mut edit = Edit::new(Bytes::from_static(b"one two three four"));
        edit.mask(0..3, b"1");
        edit.skip(1);
        assert_eq!(edit.rest(), b"two three four");
        edit.skip(4);
        edit.mask(0..5, b"***");
        assert_eq!(edit.finish(), "1 two *** four");
    }

    #[test]
    fn text_without_a_hit_is_handed_back_as_it_is() {
        let text = Bytes::from(b"one".to_vec());
        let mut edit = Edit::new(text.clone());
        edit.skip(2);
        assert_eq!(edit.finish().as_ptr(), text.as_ptr());
    }
}
