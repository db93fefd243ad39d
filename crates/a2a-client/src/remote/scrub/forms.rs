//! How a secret may be written, and what is put in its place.

use std::ops::Range;

use aho_corasick::packed;
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use memchr::memmem::Finder;

/// What stands in place of a secret.
const MASK: &[u8] = b"***";
/// The same in base64, over and over: in its place base64 stays base64, of stars.
const MASK_IN_BASE64: &[u8] = b"Kioq";
/// How values of headers begin that name their kind before the secret.
const SCHEMES: [&str; 5] = ["bearer", "basic", "token", "apikey", "key"];

/// A way to write a secret.
pub(super) struct Form {
    finder: Finder<'static>,
    mask: Vec<u8>,
    /// As long as the secret.
    long_mask: Vec<u8>,
}

impl Form {
    /// A secret as it is, and in base64 at each of the three places where it may begin there.
    pub(super) fn all(secret: &str) -> impl Iterator<Item = Self> + use<> {
        let plain = Self::new(secret.as_bytes(), MASK.to_vec(), b"*".repeat(secret.len()));
        let encoded = (0..3).flat_map(|shift| {
            let (core, phase) = base64_core(secret.as_bytes(), shift);
            let mask: Vec<u8> =
                MASK_IN_BASE64.iter().cycle().skip(phase).take(core.len()).copied().collect();
            let for_urls = core.replace('+', "-").replace('/', "_");
            let is_other = for_urls != core;
            std::iter::once(core)
                .chain(is_other.then_some(for_urls))
                .map(move |core| Self::new(core.as_bytes(), mask.clone(), mask.clone()))
        });
        let encoded: Vec<Self> = encoded.collect();
        std::iter::once(plain).chain(encoded)
    }

    fn new(needle: &[u8], mask: Vec<u8>, long_mask: Vec<u8>) -> Self {
        Self { finder: Finder::new(needle).into_owned(), mask, long_mask }
    }

    pub(super) fn len(&self) -> usize {
        self.finder.needle().len()
    }

    /// Whether it cannot stand in a string of JSON as it is.
    pub(super) fn needs_escapes(&self) -> bool {
        self.finder.needle().iter().any(|byte| matches!(byte, b'"' | b'\\'))
    }

    pub(super) fn mask(&self) -> &[u8] {
        &self.mask
    }

    /// One that is as long as the form.
    pub(super) fn long_mask(&self) -> &[u8] {
        &self.long_mask
    }

    pub(super) fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        self.finder.find(text).map(|start| start..start + self.len())
    }

    pub(super) fn find_all<'t>(
        &'t self,
        text: &'t [u8],
    ) -> impl Iterator<Item = Range<usize>> + 't {
        self.finder.find_iter(text).map(|start| start..start + self.len())
    }
}

/// Says in one go whether any of many forms is there.
pub(super) struct AnyForm {
    /// `None` if there can be no such search; then any may be there.
    searchers: Option<Vec<packed::Searcher>>,
}

impl AnyForm {
    /// How many forms the search takes at once.
    const AT_ONCE: usize = 32;

    pub(super) fn of<'f>(forms: impl Iterator<Item = &'f Form>) -> Self {
        let needles: Vec<&[u8]> = forms.map(|form| form.finder.needle()).collect();
        let searchers = needles.chunks(Self::AT_ONCE).map(packed::Searcher::new);
        Self { searchers: searchers.collect() }
    }

    /// Whether one of the forms may be in the text.
    pub(super) fn may_be_in(&self, text: &[u8]) -> bool {
        let finds = |searcher: &packed::Searcher| searcher.find(text).is_some();
        self.searchers.as_ref().is_none_or(|searchers| searchers.iter().any(finds))
    }
}

impl Default for AnyForm {
    fn default() -> Self {
        Self::of(std::iter::empty())
    }
}

/// A value and what in it is secret by itself: what follows the kind in `Bearer …`, and the password in `Basic …`.
pub(super) fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![value.to_owned()];
    let Some((scheme, rest)) = value.split_once(' ') else { return parts };
    if !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return parts;
    }
    let rest = rest.trim();
    let pair = STANDARD.decode(rest).ok().and_then(|pair| String::from_utf8(pair).ok());
    if let (true, Some(pair)) = (scheme.eq_ignore_ascii_case("basic"), pair) {
        parts.extend(pair.split_once(':').map(|(_, password)| password.to_owned()));
        parts.push(pair);
    }
    parts.push(rest.to_owned());
    parts
}

/// What base64 makes of the secret whatever stands around it, when it begins `shift` bytes into a group of three; and at
/// which place of a group of four that begins. The characters at either end that hold bits of others are left out.
fn base64_core(secret: &[u8], shift: usize) -> (String, usize) {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(secret);
    let encoded = STANDARD_NO_PAD.encode(&bytes);
    let first = (shift * 8).div_ceil(6);
    let end = bytes.len() * 8 / 6;
    (encoded.get(first..end).unwrap_or_default().to_owned(), first % 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_a_secret_is_found_wherever_it_begins_and_stays_base64() {
        let secret = "k_planted+/3f9c2a";
        for before in 0..7 {
            for after in 0..7 {
                let text = format!("{}{secret}{}", "x".repeat(before), "y".repeat(after));
                let mut encoded = STANDARD.encode(&text);
                let found = Form::all(secret).find_map(|form| {
                    form.find(encoded.as_bytes()).map(|hit| (hit, form.mask().to_vec()))
                });
                let (hit, mask) = found.expect(&text);
                encoded.replace_range(hit, str::from_utf8(&mask).unwrap());
                let decoded = STANDARD.decode(&encoded).unwrap();
                assert_eq!(decoded.len(), text.len());
                assert!(decoded.starts_with("x".repeat(before).as_bytes()), "{decoded:?}");
                assert!(decoded.ends_with("y".repeat(after).as_bytes()), "{decoded:?}");
                let stars = String::from_utf8_lossy(&decoded).matches('*').count();
                assert!(stars >= secret.len() - 2, "{decoded:?}");
            }
        }
    }

    #[test]
    fn secret_is_told_from_the_kind_before_it() {
        assert_eq!(parts("k_planted"), ["k_planted"]);
        assert_eq!(parts("Bearer k_planted"), ["Bearer k_planted", "k_planted"]);
        assert_eq!(parts("de, en"), ["de, en"]);
        let basic = format!("Basic {}", STANDARD.encode("ann:pass:word"));
        let blob = STANDARD.encode("ann:pass:word");
        assert_eq!(parts(&basic), [&*basic, "pass:word", "ann:pass:word", &blob]);
    }
}
