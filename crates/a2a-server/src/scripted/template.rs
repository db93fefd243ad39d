//! Texts with places to fill in: `$1`, `$text`, `${answer}`.

/// A parsed text. What stands for a place is inserted as it is and not looked at again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Group(usize),
    Message,
    Answer,
    Files,
}

/// What the places of a template stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Values {
    groups: Vec<String>,
    text: String,
    answer: String,
    files: String,
}

impl Values {
    pub(crate) fn new(groups: Vec<String>, text: &str, files: &str) -> Self {
        Self { groups, text: text.to_owned(), answer: String::new(), files: files.to_owned() }
    }

    pub(crate) fn answering(mut self, answer: &str) -> Self {
        answer.trim().clone_into(&mut self.answer);
        self
    }

    pub(crate) fn groups(&self) -> &[String] {
        &self.groups
    }
}

impl Template {
    /// Reads a template. `$$` is a dollar sign; a name that means nothing stays as written.
    pub(crate) fn parse(source: &str) -> Self {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = source;
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(tail) = after.strip_prefix('$') {
                plain.push('$');
                rest = tail;
            } else if let Some((piece, length)) = place(after) {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(piece);
                rest = &after[length..];
            } else {
                plain.push('$');
                rest = after;
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Self { pieces }
    }

    pub(crate) fn fill(&self, values: &Values) -> String {
        let mut filled = String::new();
        for piece in &self.pieces {
            filled.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Group(number) => values.groups.get(*number).map_or("", String::as_str),
                Piece::Message => &values.text,
                Piece::Answer => &values.answer,
                Piece::Files => &values.files,
            });
        }
        filled
    }
}

/// The place at the start of `source` (after its dollar sign) and how many bytes it takes.
fn place(source: &str) -> Option<(Piece, usize)> {
    if let Some(braced) = source.strip_prefix('{') {
        let end = braced.find('}')?;
        return Some((named(&braced[..end])?, end + 2));
    }
    let end = source.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(source.len());
    let digits = source.bytes().take_while(u8::is_ascii_digit).count();
    let length = if digits > 0 { digits } else { end };
    Some((named(&source[..length])?, length))
}

fn named(name: &str) -> Option<Piece> {
    match name {
        "text" => Some(Piece::Message),
        "answer" => Some(Piece::Answer),
        "files" => Some(Piece::Files),
        digits => digits.parse().ok().map(Piece::Group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, expected: &str) {
        let groups = vec!["whole".to_owned(), "one".to_owned()];
        let values = Values::new(groups, "TEXT", "FILES").answering(" $1 ");
        assert_eq!(Template::parse(template).fill(&values), expected);
    }

    #[test]
    fn places_are_filled_once() {
        check("$1 and ${1}s, $text, ${files}", "one and ones, TEXT, FILES");
        check("$answer", "$1");
        check("$9.", ".");
    }

    #[test]
    fn what_means_nothing_stays_as_written() {
        check("$$1 costs 5$ or $nobody or ${open", "$1 costs 5$ or $nobody or ${open");
        check("", "");
    }
}
