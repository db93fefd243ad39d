//! What an answer of the Bot API says.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{ApiError, refused};

#[derive(Debug, Deserialize)]
struct Answer<T> {
    ok: bool,
    #[serde(default = "none")]
    result: Option<T>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Parameters>,
}

#[derive(Debug, Deserialize)]
struct Parameters {
    /// Seconds.
    #[serde(default)]
    retry_after: Option<u64>,
    #[serde(default)]
    migrate_to_chat_id: Option<i64>,
}

/// The usual default wants one of `T`, too.
fn none<T>() -> Option<T> {
    None
}

/// Reads the result, or why there is none.
pub(super) fn read_answer<T: DeserializeOwned>(answer: &[u8]) -> Result<T, ApiError> {
    // An error page of something on the way, maybe; the raw text may hold what people wrote.
    let unreadable = || ApiError::Unknown("the answer cannot be read".to_owned());
    let answer: Answer<T> = serde_json::from_slice(answer).map_err(|_| unreadable())?;
    match answer {
        Answer { ok: true, result: Some(result), .. } => Ok(result),
        Answer { parameters: Some(Parameters { retry_after: Some(seconds), .. }), .. } => {
            Err(ApiError::RateLimited(Duration::from_secs(seconds)))
        }
        Answer { parameters: Some(Parameters { migrate_to_chat_id: Some(_), .. }), .. } => {
            Err(ApiError::Closed("the group has moved".to_owned()))
        }
        Answer { ok: false, description: Some(text), .. } => {
            // Every text is one of its refusals, the last of which is an unknown one.
            Err(serde_json::from_value(Value::String(text)).map_or_else(|_| unreadable(), refused))
        }
        Answer { .. } => Err(unreadable()),
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;

    #[track_caller]
    fn check(answer: &str, wanted: &ApiError) {
        assert_eq!(read_answer::<IgnoredAny>(answer.as_bytes()).unwrap_err(), *wanted, "{answer}");
    }

    #[test]
    fn refusals_are_told_from_what_cannot_be_read() {
        let unreadable = ApiError::Unknown("the answer cannot be read".to_owned());
        for answer in ["", "<html>", "[]", "{}", r#"{"ok":true}"#, r#"{"ok":false}"#] {
            check(answer, &unreadable);
        }
        check(
            r#"{"ok":false,"error_code":429,"description":"x","parameters":{"retry_after":7}}"#,
            &ApiError::RateLimited(Duration::from_secs(7)),
        );
        check(r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#, &ApiError::Token);
        check(
            r#"{"ok":false,"description":"Bad Request: of tomorrow","new":[1]}"#,
            &ApiError::Refused("Bad Request: of tomorrow".to_owned()),
        );
    }

    #[test]
    fn result_may_hold_what_nobody_knows_yet() {
        assert_eq!(
            read_answer::<Vec<u8>>(br#"{"ok":true,"result":[1],"of":"tomorrow"}"#),
            Ok(vec![1])
        );
        assert!(read_answer::<IgnoredAny>(br#"{"ok":true,"result":{"a":{"b":[{}]}}}"#).is_ok());
    }
}
