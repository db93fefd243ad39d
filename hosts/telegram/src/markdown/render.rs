//! Markdown to text and entities.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

use super::entity::{Entity, EntityKind, FormattedText, untangle};

/// Renders `CommonMark` with tables, strikethrough and task lists.
///
/// Headings become bold, tables monospaced, images links. A source that renders to nothing visible comes back as it is.
pub fn render_markdown(source: &str) -> FormattedText {
    let options =
        Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::default();
    for event in Parser::new_ext(source, options) {
        writer.on_event(event);
    }
    let rendered = writer.finish();
    if rendered.text.trim().is_empty() { FormattedText::plain(source) } else { rendered }
}

/// An entity whose end has not come yet.
#[derive(Debug)]
struct Open {
    /// `None` when the same look is open already: Telegram takes no look inside itself.
    kind: Option<EntityKind>,
    /// Set by the first text inside.
    start: Option<usize>,
    url: Option<String>,
    language: Option<String>,
}

#[derive(Debug, Default)]
struct Writer {
    text: String,
    units: usize,
    entities: Vec<Entity>,
    open: Vec<Open>,
    /// Line breaks owed before the next text.
    owed: usize,
    /// A list marker was just written: what follows stands on its line.
    after_marker: bool,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    table: Option<Table>,
}

impl Writer {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.on_start(tag),
            Event::End(tag) => self.on_end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.write(&text),
            Event::Code(code) => {
                self.open(EntityKind::Code, None, None);
                self.write(&code);
                self.close();
            }
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.write(&text);
            }
            Event::SoftBreak | Event::HardBreak => match &mut self.table {
                Some(table) => table.cell.push(' '),
                None => self.owe(1),
            },
            Event::Rule => {
                self.owe(2);
                self.write("———");
                self.owe(2);
            }
            Event::TaskListMarker(done) => {
                self.write(if done { "☑ " } else { "☐ " });
                self.after_marker = true;
            }
        }
    }

    fn on_start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.owe(2),
            Tag::Heading { .. } => {
                self.owe(2);
                self.open(EntityKind::Bold, None, None);
            }
            Tag::BlockQuote(_) => {
                self.owe(2);
                self.open(EntityKind::Blockquote, None, None);
            }
            Tag::CodeBlock(kind) => {
                self.owe(2);
                self.open(EntityKind::Pre, None, language_of(&kind));
            }
            Tag::List(first) => {
                self.owe(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.open(EntityKind::Italic, None, None),
            Tag::Strong => self.open(EntityKind::Bold, None, None),
            Tag::Strikethrough => self.open(EntityKind::Strikethrough, None, None),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.open(EntityKind::TextLink, Some(dest_url.into_string()), None);
            }
            Tag::Table(_) => self.table = Some(Table::default()),
            Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn on_end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.owe(2),
            TagEnd::Heading(_) | TagEnd::BlockQuote(_) | TagEnd::CodeBlock => {
                self.close();
                self.owe(2);
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.owe(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item => {
                self.after_marker = false;
                self.owe(1);
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.close(),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    table.end_cell();
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn start_item(&mut self) {
        self.after_marker = false;
        self.owe(1);
        let depth = self.lists.len().saturating_sub(1);
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None => "• ".to_owned(),
        };
        self.write(&"  ".repeat(depth));
        self.write(&marker);
        self.after_marker = true;
    }

    /// Asks for `breaks` line breaks before the next text.
    fn owe(&mut self, breaks: usize) {
        if !self.after_marker {
            self.owed = self.owed.max(breaks);
        }
    }

    fn write(&mut self, text: &str) {
        if let Some(table) = &mut self.table {
            table.cell.push_str(text);
            return;
        }
        if text.is_empty() {
            return;
        }
        if !self.text.is_empty() {
            // Html and code lines bring their own line ends.
            let brought = self.text.len() - self.text.trim_end_matches('\n').len();
            for _ in brought..self.owed {
                self.push("\n");
            }
        }
        self.owed = 0;
        self.after_marker = false;
        let start = self.units;
        for open in &mut self.open {
            open.start.get_or_insert(start);
        }
        self.push(text);
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.units += text.encode_utf16().count();
    }

    fn open(&mut self, kind: EntityKind, url: Option<String>, language: Option<String>) {
        let fresh = !self.open.iter().any(|open| open.kind == Some(kind));
        self.open.push(Open { kind: fresh.then_some(kind), start: None, url, language });
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let (Some(kind), Some(start)) = (open.kind, open.start) else { return };
        let mut end = self.units;
        if kind == EntityKind::Pre {
            // The line end that closes the block belongs to the gap after it.
            end -= usize::from(self.text.ends_with('\n'));
        }
        if self.table.is_none() && end > start {
            let (url, language) = (open.url, open.language);
            self.entities.push(Entity { kind, offset: start, length: end - start, url, language });
        }
    }

    fn close_link(&mut self) {
        let Some(url) = self.open.last().and_then(|open| open.url.clone()) else { return };
        let start = self.open.last().and_then(|open| open.start);
        let shown = start.map(|start| units_from(&self.text, self.units - start).to_owned());
        if self.table.is_some() {
            self.open.pop();
            return;
        }
        match shown {
            // Nothing to click on (an image without a description): the address itself.
            None => {
                self.open.pop();
                self.write(&url);
            }
            Some(shown) if is_web(&url) => {
                if shown == url {
                    self.open.pop();
                } else {
                    self.close();
                }
            }
            // Telegram cannot follow relative links; the reader may want to know them all the same.
            Some(shown) => {
                self.open.pop();
                if shown != url && format!("mailto:{shown}") != url && !url.is_empty() {
                    self.write(&format!(" ({url})"));
                }
            }
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        self.owe(2);
        self.open(EntityKind::Pre, None, None);
        self.write(&table.lay_out());
        self.close();
        self.owe(2);
    }

    fn finish(self) -> FormattedText {
        FormattedText { text: self.text, entities: untangle(self.entities) }
    }
}

fn language_of(kind: &CodeBlockKind<'_>) -> Option<String> {
    match kind {
        CodeBlockKind::Indented => None,
        CodeBlockKind::Fenced(info) => first_word(info),
    }
}

fn first_word(info: &CowStr<'_>) -> Option<String> {
    info.split([' ', '\t', ',', '{']).next().filter(|word| !word.is_empty()).map(str::to_owned)
}

/// Whether a link may stand behind a text. A `tg://` link acts inside the app (it joins, it sets a proxy), so it is shown.
fn is_web(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme))
}

/// The last `units` UTF-16 units of `text`.
fn units_from(text: &str, units: usize) -> &str {
    let mut left = units;
    for (index, character) in text.char_indices().rev() {
        if left == 0 {
            return &text[index + character.len_utf8()..];
        }
        left = left.saturating_sub(character.len_utf16());
    }
    text
}

/// A table that is being read.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    cell: String,
}

impl Table {
    /// The widest column that is padded; a longer cell just sticks out.
    const MAX_PADDING: usize = 40;

    fn end_cell(&mut self) {
        let cell = std::mem::take(&mut self.cell);
        self.row.push(cell.trim().to_owned());
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        self.rows.push(row);
    }

    fn lay_out(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0).min(Self::MAX_PADDING)
            })
            .collect();
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            lines.push(cells.join(" | ").trim_end().to_owned());
            if index == 0 {
                let dashes: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                lines.push(dashes.join("-+-"));
            }
        }
        lines.join("\n")
    }
}
