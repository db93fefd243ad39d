//! Text that comes in pieces, above a line that is redrawn after each of them.
//!
//! Every piece is written as whole rows. The next one moves back up to where the last one ended.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

/// The width of a tab here.
const TAB: &str = "    ";

/// Where the text has come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    /// The column behind the last piece and the width of the terminal then; `None` at the start of a row.
    end: Option<(usize, usize)>,
}

impl Flow {
    /// What to write for a piece: rows, the last of them perhaps not full.
    pub(super) fn piece(&mut self, text: &str, columns: usize) -> String {
        let text = text.replace('\t', TAB);
        let columns = columns.max(1);
        let mut rows = String::new();
        // In a window of another size the old row is somewhere else, so the text goes on in a new one.
        let mut column = match self.end.take() {
            Some((column, before)) if before == columns && column < columns => {
                // Writing to a string cannot fail.
                let _ = write!(rows, "\x1b[A\x1b[{}G", column + 1);
                column
            }
            Some(_) | None => 0,
        };
        let mut is_certain = true;
        for character in text.chars() {
            match character.width() {
                _ if character == '\n' => column = 0,
                // Terminals do not agree about what is joined, so where it ends is not known.
                None | Some(0) => is_certain = false,
                Some(width) if column + width > columns => column = width,
                Some(width) => column += width,
            }
        }
        rows.push_str(&text);
        if !text.ends_with('\n') {
            rows.push('\n');
            self.end = is_certain.then_some((column, columns));
        }
        rows
    }

    /// Whatever comes next begins in a row of its own.
    pub(super) fn end(&mut self) {
        self.end = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes pieces on a screen of so many columns, as a terminal does, and compares the rows.
    #[track_caller]
    fn check(columns: usize, pieces: &[&str], rows: &[&str]) {
        let mut flow = Flow::default();
        let mut screen = vec![String::new()];
        let mut row = 0;
        for piece in pieces {
            let written = flow.piece(piece, columns);
            let text = match written.strip_prefix("\x1b[A\x1b[") {
                Some(rest) => {
                    let (column, rest) = rest.split_once('G').unwrap();
                    row -= 1;
                    let length = screen[row].chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
                    assert_eq!(column.parse::<usize>().unwrap(), length + 1, "in {screen:?}");
                    rest.to_owned()
                }
                None => written,
            };
            for character in text.chars() {
                let width = screen[row].chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
                let is_full = width + character.width().unwrap_or(0) > columns;
                if character == '\n' || is_full {
                    row += 1;
                    screen.resize(screen.len().max(row + 1), String::new());
                }
                if character != '\n' {
                    screen[row].push(character);
                }
            }
        }
        assert_eq!(screen.pop().as_deref(), Some(""), "the last row is the prompt's");
        assert_eq!(screen, rows);
    }

    #[test]
    fn pieces_stand_behind_each_other() {
        check(80, &["one ", "two", " three\n", "four"], &["one two three", "four"]);
        check(80, &["a\nb", "c\n\n", "d"], &["a", "bc", "", "d"]);
    }

    #[test]
    fn rows_that_are_full_go_on_in_the_next() {
        check(4, &["abc", "def", "g"], &["abcd", "efg"]);
        check(4, &["abcd", "e"], &["abcd", "e"]);
        check(4, &["abcdefgh", "i", "j"], &["abcd", "efgh", "ij"]);
        check(5, &["漢漢漢", "x"], &["漢漢", "漢x"]);
    }

    #[test]
    fn where_the_end_is_not_certain_the_text_goes_on_in_a_new_row() {
        let mut flow = Flow::default();
        flow.piece("e\u{301}", 80);
        assert_eq!(flow.piece("x", 80), "x\n");
        assert_eq!(flow.piece("y", 79), "y\n", "the window has another size");
        flow.end();
        assert_eq!(flow.piece("z", 79), "z\n");
    }
}
