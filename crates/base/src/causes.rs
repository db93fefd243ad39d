//! Errors in one line.

use std::error::Error;

/// An error and its causes as one line, outermost first: `failed to save: the disk is full`.
pub fn with_causes(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        let text = current.to_string();
        // Some wrappers repeat what they wrap.
        if !line.ends_with(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = current.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        #[source]
        inner: Option<Box<Self>>,
    }

    fn layers(texts: &[&'static str]) -> Layer {
        let inner = (texts.len() > 1).then(|| Box::new(layers(&texts[1..])));
        Layer { text: texts[0], inner }
    }

    #[test]
    fn causes_follow_in_order_and_repeats_are_left_out() {
        assert_eq!(with_causes(&layers(&["a"])), "a");
        assert_eq!(with_causes(&layers(&["a", "b: c", "c", "d"])), "a: b: c: d");
    }
}
