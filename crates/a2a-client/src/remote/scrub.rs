//! Takes our own secrets out of what a remote says, in case it repeats them.
//!
//! A secret is found as it is, in base64 (alone or inside something longer), and both also behind escapes of JSON and
//! percent-encoding, [`LAYERS`] of them. In text that was put together here, line breaks and characters without width in
//! between do not hide it either. Values shorter than [`MIN_LENGTH`] are left alone. What an agent spells in a way of its
//! own, backwards or a letter a line, cannot be found, and is not an accident.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, PoisonError, RwLock},
};

use bytes::Bytes;
use volcanic_base::Secret;

mod edit;
mod forms;
mod unescape;

use edit::Edit;
use forms::{AnyForm, Form};
use unescape::{Escape, Layer, Writing};

/// Shorter values are too likely to be ordinary words, or names in the JSON itself.
const MIN_LENGTH: usize = 8;
/// How many escapes may stand around each other.
const LAYERS: usize = 3;
/// How many bytes one byte may take behind them; `\\u005c` for a `\` is the longest that is met.
const STRETCH: usize = 12;
/// How much is looked at behind escapes at once, in bytes.
const WINDOW: usize = 64 << 10;
/// How many secrets of single calls are remembered when nobody holds them any more. Each takes two kibibytes, at every agent.
const REMEMBERED: usize = 8;

/// Knows the secrets that are sent to one agent.
pub(crate) struct Scrubber {
    /// What every request carries.
    own: Vec<Secret>,
    known: RwLock<Known>,
    /// How many secrets that nobody holds are remembered.
    remembers: usize,
    passes_through: bool,
}

#[derive(Default)]
struct Known {
    /// What single calls carry, what was used last at the end.
    learned: VecDeque<Arc<Secret>>,
    forms: Arc<Forms>,
}

/// Holds secrets of single calls: as long as this is there, they are taken out of what the agent says. Afterwards they are
/// remembered until some others were held.
#[must_use = "the secrets are only sure to be known as long as this is held"]
#[derive(Debug, Clone, Default)]
pub(crate) struct Concealed {
    /// Counted, to know which are held.
    secrets: Vec<Arc<Secret>>,
}

impl Concealed {
    /// These and others.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.secrets.extend(others.secrets);
        self
    }
}

/// Every form of every secret, the longest first, so that none is masked only in part.
#[derive(Default)]
struct Forms {
    all: Vec<Form>,
    /// Those that may stand in JSON as they are.
    plain: AnyForm,
    /// How far before and after an escape a hit may reach, in bytes.
    reach: usize,
    /// Whether one of them holds quotes or backslashes.
    has_quotes: bool,
}

impl Scrubber {
    pub(crate) fn new(own: Vec<Secret>) -> Self {
        let forms = Arc::new(Forms::of(&own));
        let known = RwLock::new(Known { learned: VecDeque::new(), forms });
        Self { own, known, remembers: REMEMBERED, passes_through: false }
    }

    /// The same with room for so many secrets that nobody holds.
    pub(crate) fn remembering(self, remembers: usize) -> Self {
        Self { remembers, ..self }
    }

    /// One that hides nothing, to show that a secret would have been seen.
    #[cfg(feature = "test-util")]
    pub(crate) fn pass_through() -> Self {
        Self { passes_through: true, ..Self::new(Vec::new()) }
    }

    /// Knows more secrets from now on.
    pub(crate) fn learn<'s>(&self, secrets: impl IntoIterator<Item = &'s Secret>) -> Concealed {
        let is_sought = |secret: &&Secret| secret.expose().len() >= MIN_LENGTH;
        let mut secrets = secrets.into_iter().filter(is_sought).peekable();
        let mut concealed = Concealed::default();
        if self.passes_through || secrets.peek().is_none() {
            return concealed;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut has_new = false;
        for secret in secrets {
            let (learned, is_new) = known.learn(secret, self.remembers);
            has_new |= is_new;
            concealed.secrets.push(learned);
        }
        if has_new {
            let all = self.own.iter().chain(known.learned.iter().map(Arc::as_ref));
            known.forms = Arc::new(Forms::of(all));
        }
        concealed
    }

    /// JSON without the secrets. It stays JSON, and what is in base64 stays that; nothing is copied when there are no
    /// secrets in it.
    pub(crate) fn scrub(&self, json: Bytes) -> Bytes {
        let forms = self.forms();
        forms.behind_escapes(forms.as_they_are(json, Form::mask), Writing::Json)
    }

    /// The same of JSON that is text.
    pub(crate) fn scrub_text<'t>(&self, json: Cow<'t, str>) -> Cow<'t, str> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let forms = &known.forms;
        let escape = || Writing::Json.next_escape(json.as_bytes(), 0, forms.has_quotes);
        if forms.all.is_empty() || (!forms.plain.may_be_in(json.as_bytes()) && escape().is_none()) {
            return json;
        }
        drop(known);
        into_text(self.scrub(json.into_owned().into())).into()
    }

    /// Text that was put together here, without the secrets.
    pub(crate) fn text(&self, text: String) -> String {
        let forms = self.forms();
        if forms.all.is_empty() {
            return text;
        }
        into_text(forms.behind_escapes(text.into(), Writing::Text))
    }

    /// The content of a file, as long as before.
    pub(crate) fn file(&self, content: Bytes) -> Bytes {
        self.forms().as_they_are(content, Form::long_mask)
    }

    /// What [`Scrubber::text`] makes of the text, if that is something else.
    pub(crate) fn changed(&self, text: &str) -> Option<String> {
        Some(self.text(text.to_owned())).filter(|clean| clean != text)
    }

    fn forms(&self) -> Arc<Forms> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner).forms)
    }
}

/// Text whose pieces were replaced by text is text.
fn into_text(clean: Bytes) -> String {
    String::from_utf8(clean.into())
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Known {
    /// Takes a secret in; whether it was not there before.
    fn learn(&mut self, secret: &Secret, remembers: usize) -> (Arc<Secret>, bool) {
        let place = self.learned.iter().position(|learned| **learned == *secret);
        if let Some(found) = place.and_then(|place| self.learned.remove(place)) {
            // It counts as new: what was used last is remembered longest.
            self.learned.push_back(Arc::clone(&found));
            return (found, false);
        }
        let learned = Arc::new(secret.clone());
        let is_free = |learned: &Arc<Secret>| Arc::strong_count(learned) == 1;
        let free = self.learned.iter().filter(|learned| is_free(learned)).count();
        let mut excess = (free + 1).saturating_sub(remembers);
        self.learned.retain(|learned| {
            let goes = excess > 0 && is_free(learned);
            excess -= usize::from(goes);
            !goes
        });
        self.learned.push_back(Arc::clone(&learned));
        (learned, true)
    }
}

impl Forms {
    fn of<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Self {
        let mut forms: Vec<Form> = secrets
            .into_iter()
            .flat_map(|secret| forms::parts(secret.expose()))
            .filter(|secret| secret.len() >= MIN_LENGTH)
            .flat_map(|secret| Form::all(&secret))
            .collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        let longest = forms.first().map_or(0, Form::len);
        let has_quotes = forms.iter().any(Form::needs_escapes);
        let plain = AnyForm::of(forms.iter().filter(|form| !form.needs_escapes()));
        Self { all: forms, plain, reach: longest * STRETCH, has_quotes }
    }

    /// Masks what stands there as it is. Secrets with quotes are never that in JSON: what looks so lies across its
    /// strings.
    fn as_they_are<'f>(&'f self, text: Bytes, mask: impl Fn(&'f Form) -> &'f [u8]) -> Bytes {
        if !self.plain.may_be_in(&text) {
            return text;
        }
        let plain = self.all.iter().filter(|form| !form.needs_escapes());
        plain.fold(text, |text, form| {
            let mut edit = Edit::new(text);
            while let Some(hit) = form.find(edit.rest()) {
                edit.mask(hit, mask(form));
            }
            edit.finish()
        })
    }

    /// Masks what stands behind escapes; in text also what stands there as it is. Looks at a window at a time, so that
    /// the largest answers take little memory.
    fn behind_escapes(&self, text: Bytes, writing: Writing) -> Bytes {
        if self.all.is_empty() {
            return text;
        }
        let window = WINDOW.max(4 * self.reach);
        let mut edit = Edit::new(text);
        // Where the next escape is looked for, from what is left.
        let mut from = 0;
        while let Some(escape) = writing.next_escape(edit.rest(), from, self.has_quotes) {
            edit.skip(escape.saturating_sub(self.reach));
            let rest = edit.rest();
            let is_last = rest.len() <= window;
            let seen = rest.get(..window).unwrap_or(rest);
            let (hits, end) = (self.hits(seen, writing), seen.len());
            let mut done = 0;
            for (hit, form) in hits {
                edit.mask(hit.start - done..hit.end - done, form.mask());
                done = hit.end;
            }
            if is_last {
                break;
            }
            from = (end - self.reach).saturating_sub(done);
        }
        edit.finish()
    }

    /// What is found in a window, in order and apart from each other.
    fn hits(&self, window: &[u8], writing: Writing) -> Vec<(std::ops::Range<usize>, &Form)> {
        let mut found = Vec::new();
        let mut layer = Layer::outermost(window);
        let mut find = |layer: &Layer| {
            for form in &self.all {
                found.extend(layer.find_all(form).map(|hit| (hit, form)));
            }
        };
        if writing == Writing::Text {
            find(&layer);
        }
        // One after the other, since a secret may look as if it were escaped itself.
        let mut inside = writing;
        for _ in 0..LAYERS {
            for escape in [Escape::Json, Escape::Percent] {
                if let Some(inner) = layer.without(escape, inside) {
                    find(&inner);
                    layer = inner;
                }
                inside = Writing::Text;
            }
        }
        found.sort_by_key(|(hit, _)| (hit.start, std::cmp::Reverse(hit.end)));
        let mut end = 0;
        found.retain(|(hit, _)| {
            let is_apart = hit.start >= end;
            end = end.max(hit.end);
            is_apart
        });
        found
    }
}

#[cfg(test)]
mod tests;
