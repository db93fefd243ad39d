//! Which failure is which, over bodies as providers send them.

use super::*;

#[track_caller]
fn check(status: u16, body: &str, expected: ModelErrorKind) {
    let error = ProviderError::from_http_response(
        rig_core::http_client::StatusCode::from_u16(status).unwrap(),
        body,
    );
    assert_eq!(Classifier::new(None).provider(&error).kind, expected, "{status} {body}");
}

#[track_caller]
fn check_in_stream(body: &str, expected: ModelErrorKind, status: Option<u16>) {
    let error = Classifier::new(None).provider(&ProviderError::from_provider_body(body));
    assert_eq!((error.kind, error.status), (expected, status), "{body}");
}

#[test]
fn statuses_decide_first() {
    check(401, r#"{"error":{"type":"server_error"}}"#, ModelErrorKind::Auth);
    check(402, "", ModelErrorKind::Quota);
    check(403, "no", ModelErrorKind::Auth);
    check(404, r#"{"error":{"code":"model_not_found"}}"#, ModelErrorKind::BadRequest);
    check(408, "", ModelErrorKind::Overloaded);
    check(413, "", ModelErrorKind::ContextOverflow);
    check(
        429,
        r#"{"error":{"type":"requests","message":"slow down"}}"#,
        ModelErrorKind::RateLimited,
    );
    check(500, "<html>", ModelErrorKind::Overloaded);
    check(503, r#"{"error":"loading model"}"#, ModelErrorKind::Overloaded);
    check(529, "", ModelErrorKind::Overloaded);
    check(302, "", ModelErrorKind::BadRequest);
}

#[test]
fn spent_quota_is_no_rate_limit() {
    let spent = r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota"}}"#;
    check(429, spent, ModelErrorKind::Quota);
    check(
        429,
        r#"{"error":{"message":"Insufficient balance, check billing"}}"#,
        ModelErrorKind::Quota,
    );
    assert!(!ModelErrorKind::Quota.is_transient());
}

#[test]
fn overflow_is_found_under_any_name() {
    check(400, r#"{"error":{"code":"context_length_exceeded"}}"#, ModelErrorKind::ContextOverflow);
    check(
        400,
        r#"{"error":{"type":"exceed_context_size_error"}}"#,
        ModelErrorKind::ContextOverflow,
    );
    check(
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens"}"#,
        ModelErrorKind::ContextOverflow,
    );
    check(
        500,
        r#"{"error":{"code":500,"message":"the request exceeds the available context size"}}"#,
        ModelErrorKind::ContextOverflow,
    );
    check(400, r#"{"error":{"message":"bad temperature"}}"#, ModelErrorKind::BadRequest);
}

#[test]
fn refused_content_is_told_from_a_bad_request() {
    check(400, r#"{"error":{"code":"content_filter"}}"#, ModelErrorKind::Refused);
    check(
        400,
        r#"[{"error":{"status":"INVALID_ARGUMENT","code":400}}]"#,
        ModelErrorKind::BadRequest,
    );
}

#[test]
fn errors_inside_a_stream_go_by_their_names() {
    check_in_stream(r#"{"error":{"type":"overloaded_error"}}"#, ModelErrorKind::Overloaded, None);
    check_in_stream(r#"{"error":{"type":"rate_limit_error"}}"#, ModelErrorKind::RateLimited, None);
    check_in_stream(
        r#"{"error":{"code":429,"message":"x"}}"#,
        ModelErrorKind::RateLimited,
        Some(429),
    );
    check_in_stream(r#"{"error":{"code":502}}"#, ModelErrorKind::Overloaded, Some(502));
    check_in_stream(r#"{"error":{"type":"insufficient_quota"}}"#, ModelErrorKind::Quota, None);
    check_in_stream(
        r#"{"error":{"type":"invalid_request_error"}}"#,
        ModelErrorKind::BadRequest,
        None,
    );
    check_in_stream(r#"{"error":{"message":"hm"}}"#, ModelErrorKind::Overloaded, None);
}

#[test]
fn digits_inside_ids_mean_nothing() {
    let body = r#"{"error":{"type":"invalid_request_error","message":"unknown parameter (request req_429503)"}}"#;
    check(400, body, ModelErrorKind::BadRequest);
    check_in_stream(body, ModelErrorKind::BadRequest, None);
}

#[test]
fn texts_are_one_short_line_without_key_and_addresses() {
    let classifier = Classifier::new(Some(Secret::new("sk-secret")));
    let error = ProviderError::from_http_response(
        rig_core::http_client::StatusCode::BAD_REQUEST,
        r#"{"error":{"message":"no\n\u001b[31m sk-secret, see https://x.example/?key=1"}}"#,
    );
    assert_eq!(
        classifier.provider(&error).message,
        "the provider refused the request (400): no [31m ***, see (address)"
    );
    let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "ä".repeat(5000));
    let error = ProviderError::from_provider_body(long);
    assert!(classifier.provider(&error).message.chars().count() < TEXT_MAX + 100);
}

#[test]
fn refused_key_is_not_repeated_even_in_part() {
    let error = ProviderError::from_http_response(
        rig_core::http_client::StatusCode::UNAUTHORIZED,
        r#"{"error":{"message":"Incorrect API key provided: sk-se**et"}}"#,
    );
    let message = Classifier::new(Some(Secret::new("sk-secret"))).provider(&error).message;
    assert_eq!(message, "the provider refused the key (401)");
}

#[track_caller]
fn check_wait(headers: &[(&'static str, &'static str)], expected: Option<Duration>) {
    let headers = headers
        .iter()
        .map(|(name, value)| {
            let name = reqwest::header::HeaderName::from_static(name);
            (name, rig_core::http_client::HeaderValue::from_static(value))
        })
        .collect();
    assert_eq!(retry_after(&headers), expected);
}

#[test]
fn wait_is_read_in_every_spelling() {
    check_wait(&[("retry-after", "7")], Some(Duration::from_secs(7)));
    check_wait(&[("retry-after", "0.5")], Some(Duration::from_millis(500)));
    check_wait(
        &[("retry-after-ms", "250"), ("retry-after", "1")],
        Some(Duration::from_millis(250)),
    );
    check_wait(
        &[
            ("date", "Mon, 30 Nov 2026 12:00:00 GMT"),
            ("retry-after", "Mon, 30 Nov 2026 12:01:30 GMT"),
        ],
        Some(Duration::from_secs(90)),
    );
    check_wait(
        &[
            ("date", "Mon, 30 Nov 2026 12:00:00 GMT"),
            ("retry-after", "Mon, 30 Nov 2026 11:00:00 GMT"),
        ],
        Some(Duration::ZERO),
    );
    check_wait(&[("retry-after", "soon")], None);
    check_wait(&[("retry-after", "-3")], None);
    check_wait(&[], None);
}
