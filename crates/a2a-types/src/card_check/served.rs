//! How a card is served.

use super::{CardHeaders, Findings, walk::quoted};
use crate::is_json_media_type;

const MEDIA_TYPE: &str = "8.2: a card is served as application/json";
const CACHING: &str = "8.6.1: a card is served with Cache-Control, with a max-age, and an ETag";

pub(super) fn check(headers: &CardHeaders, found: &mut Findings) {
    match &headers.content_type {
        None => found.warning("", "it is served without a Content-Type", MEDIA_TYPE),
        Some(said) if !is_json_media_type(said) => {
            found.warning("", format!("it is served as {}", quoted(said)), MEDIA_TYPE);
        }
        Some(_) => {}
    }
    // An agent whose card is never the same twice says just that.
    let says_how_long = |said: &String| {
        said.split(',').any(|directive| {
            let name = directive.split('=').next().unwrap_or_default().trim();
            ["max-age", "no-cache", "no-store"].iter().any(|known| name.eq_ignore_ascii_case(known))
        })
    };
    if !headers.cache_control.as_ref().is_some_and(says_how_long) {
        let problem = "its Cache-Control has no max-age: callers guess how long it counts";
        found.warning("", problem, CACHING);
    }
    if headers.etag.is_none() {
        let problem = "it has no ETag: callers fetch all of it to learn that it is the same";
        found.warning("", problem, CACHING);
    }
}
