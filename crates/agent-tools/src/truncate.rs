//! How much of a text the model gets to see.

/// The most lines one result shows.
pub(crate) const MAX_LINES: usize = 2000;

/// The most bytes one result shows.
pub(crate) const MAX_BYTES: usize = 50 * 1024;

/// The end of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tail<'t> {
    /// Whole lines, without the last line break; or the end of one line when that alone is too long.
    pub(crate) text: &'t str,
    /// How many lines that is.
    pub(crate) lines: usize,
    /// Whether the beginning of the only line is missing.
    pub(crate) cut_line: bool,
}

/// The last lines of `text` within both limits.
pub(crate) fn keep_tail(text: &str) -> Tail<'_> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut start = text.len();
    let mut lines = 0;
    for line in text.rsplit('\n') {
        let line_start = if lines == 0 { start - line.len() } else { start - 1 - line.len() };
        if lines == MAX_LINES || text.len() - line_start > MAX_BYTES {
            break;
        }
        start = line_start;
        lines += 1;
    }
    if lines == 0 {
        let start = text.ceil_char_boundary(text.len() - MAX_BYTES);
        return Tail { text: &text[start..], lines: 1, cut_line: true };
    }
    Tail { text: &text[start..], lines, cut_line: false }
}

/// The longest beginning of `text` within `limit` bytes that ends between two characters.
pub(crate) fn keep_head(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Text for a terminal as plain text: escape sequences and control characters are left out, a lone carriage return
/// becomes a line break.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_escape(&mut characters),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' | '\n' => plain.push('\n'),
            '\t' => plain.push('\t'),
            control if control.is_control() => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Skips what belongs to an escape character. A sequence never swallows a line break: a broken one would hide the rest.
fn skip_escape(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let Some(kind) = characters.next_if(|next| !next.is_control()) else { return };
    match kind {
        '[' => {
            while let Some(next) = characters.next_if(|next| !next.is_control()) {
                if ('@'..='~').contains(&next) {
                    break;
                }
            }
        }
        // Strings up to BEL or ESC \: titles, links.
        ']' | 'P' | 'X' | '^' | '_' => {
            while characters.next_if(|next| !next.is_control()).is_some() {}
            if characters.next_if_eq(&'\u{7}').is_none()
                && characters.next_if_eq(&'\u{1b}').is_some()
            {
                characters.next_if_eq(&'\\');
            }
        }
        // Intermediate bytes, then one final one.
        ' '..='/' => {
            while let Some(next) = characters.next_if(|next| !next.is_control()) {
                if !(' '..='/').contains(&next) {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_kept_whole() {
        assert_eq!(keep_tail("one\ntwo\n"), Tail { text: "one\ntwo", lines: 2, cut_line: false });
        assert_eq!(keep_tail(""), Tail { text: "", lines: 1, cut_line: false });
    }

    #[test]
    fn tail_stops_at_the_line_limit() {
        let lines: Vec<String> = (1..=MAX_LINES + 5).map(|number| number.to_string()).collect();
        let text = lines.join("\n");
        let tail = keep_tail(&text);
        assert_eq!((tail.lines, tail.cut_line), (MAX_LINES, false));
        assert!(tail.text.starts_with("6\n7\n") && tail.text.ends_with("\n2005"), "{tail:?}");
    }

    #[test]
    fn tail_stops_at_the_byte_limit_between_lines() {
        let text = format!("{}\n", "x".repeat(999)).repeat(100);
        let tail = keep_tail(&text);
        assert_eq!((tail.lines, tail.text.len()), (51, 51 * 1000 - 1));
    }

    #[test]
    fn one_giant_last_line_keeps_its_end() {
        let text = format!("before\n{}end", "ä".repeat(MAX_BYTES));
        let tail = keep_tail(&text);
        assert_eq!((tail.lines, tail.cut_line), (1, true));
        assert!(tail.text.ends_with("äend") && tail.text.len() <= MAX_BYTES);
        assert!(tail.text.len() > MAX_BYTES - 2);
    }

    #[test]
    fn head_ends_between_characters() {
        assert_eq!(keep_head("aäb", 2), "a");
        assert_eq!(keep_head("aäb", 3), "aä");
        assert_eq!(keep_head("aäb", 30), "aäb");
    }

    #[test]
    fn terminal_control_is_left_out() {
        let raw = "\u{1b}[1;31mred\u{1b}[0m \u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\0\u{8}\u{9b}\u{1b}(Bz";
        assert_eq!(plain(raw), "red alinkz");
    }

    #[test]
    fn broken_escape_never_hides_the_next_line() {
        assert_eq!(plain("\u{1b}]0;title\nshown"), "\nshown");
        assert_eq!(plain("\u{1b}[31\nshown\u{1b}"), "\nshown");
    }

    #[test]
    fn carriage_returns_become_line_breaks() {
        assert_eq!(plain("a\r\nb\rc"), "a\nb\nc");
    }
}
