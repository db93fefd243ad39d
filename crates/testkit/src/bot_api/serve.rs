//! The HTTP side: paths, bodies, faults and the long poll.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{
    DefaultBodyLimit, FromRequest, Multipart, Path, Request as HttpRequest, State as AppState,
};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::call::BotOutcome;
use super::fault::BotFault;
use super::methods::{Answer, Refusal, Request, dispatch, integer, structured};

/// The longest poll, as at Telegram.
const MAX_POLL: u64 = 50;

/// Serves until `stop`. Whatever still waits then is dropped with its connection.
pub(crate) async fn run(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let app = router(shared);
    tokio::select! {
        () = stop.cancelled() => {}
        _ = axum::serve(listener, app) => {}
    }
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/{bot}/{method}", any(call))
        .route("/file/{bot}/{*path}", get(download))
        .layer(DefaultBodyLimit::max(64 * 1024 * 1024))
        .with_state(shared)
}

async fn call(
    AppState(shared): AppState<Arc<Shared>>,
    Path((bot, method)): Path<(String, String)>,
    request: HttpRequest,
) -> Response {
    if !allowed(&shared, &bot) {
        return refuse(&Refusal::new(401, "Unauthorized"));
    }
    let request = match read(request).await {
        Ok(request) => request,
        Err(reason) => {
            shared.lock().violation(format!("{method}: {reason}"));
            return refuse(&Refusal::new(400, format!("Bad Request: {reason}")));
        }
    };
    let open = OpenCall::new(&shared, &method, &request.params);
    let fault = shared.lock().take_fault(&method);
    match fault {
        None => open.end(work(&shared, &method, &request).await),
        Some(BotFault::TooManyRequests { retry_after }) => {
            let description = format!("Too Many Requests: retry after {retry_after}");
            open.end(Err(Refusal { code: 429, description, retry_after: Some(retry_after) }))
        }
        Some(BotFault::Refuse { code, description }) => {
            open.end(Err(Refusal::new(code, description)))
        }
        Some(BotFault::ServerError(code)) => {
            open.close(BotOutcome::Refused { code, description: String::new() });
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY);
            (status, "<html><body>bad gateway</body></html>").into_response()
        }
        Some(BotFault::Say(text)) => {
            open.close(BotOutcome::Refused { code: 200, description: String::new() });
            text.into_response()
        }
        Some(BotFault::CutBefore) => {
            open.close(BotOutcome::Cut);
            cut()
        }
        Some(BotFault::CutAfter) => {
            let done = work(&shared, &method, &request).await.is_ok();
            open.close(if done { BotOutcome::DoneAndCut } else { BotOutcome::Cut });
            cut()
        }
        Some(BotFault::Hang) => {
            hang(&shared).await;
            open.close(BotOutcome::Cut);
            cut()
        }
    }
}

async fn work(shared: &Shared, method: &str, request: &Request) -> Answer {
    let method = method.to_ascii_lowercase();
    if method == "getupdates" {
        return get_updates(shared, &request.params).await;
    }
    let answer = dispatch(&mut shared.lock(), &method, request);
    shared.changed();
    answer
}

async fn get_updates(shared: &Shared, params: &Value) -> Answer {
    let limit = integer(params, "limit").unwrap_or(100);
    let seconds = integer(params, "timeout").unwrap_or(0);
    if !(1..=100).contains(&limit) || seconds < 0 {
        return Err(Refusal::new(400, "Bad Request: wrong limit or timeout"));
    }
    let limit = usize::try_from(limit).unwrap_or(100);
    let mut changes = shared.subscribe();
    let poll = {
        let mut state = shared.lock();
        if let Some(Value::Array(kinds)) = structured(params, "allowed_updates") {
            state.allowed_updates =
                Some(kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        }
        state.acknowledge(integer(params, "offset").unwrap_or(0));
        state.poll += 1;
        state.poll
    };
    // Acknowledged updates and an ousted poller are news too.
    shared.changed();
    let seconds = u64::try_from(seconds).unwrap_or(0).min(MAX_POLL);
    let deadline = tokio::time::sleep(Duration::from_secs(seconds));
    tokio::pin!(deadline);
    loop {
        changes.borrow_and_update();
        {
            let state = shared.lock();
            if state.poll != poll {
                return Err(Refusal::new(
                    409,
                    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
                ));
            }
            let due = state.due_updates(limit);
            if !due.is_empty() {
                return Ok(Value::Array(due));
            }
        }
        tokio::select! {
            () = &mut deadline => return Ok(json!([])),
            changed = changes.changed() => if changed.is_err() { return Ok(json!([])) },
        }
    }
}

async fn hang(shared: &Shared) {
    let mut changes = shared.subscribe();
    let released = shared.lock().hang_release;
    while shared.lock().hang_release == released {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn download(
    AppState(shared): AppState<Arc<Shared>>,
    Path((bot, path)): Path<(String, String)>,
) -> Response {
    if !allowed(&shared, &bot) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let state = shared.lock();
    match path.strip_prefix("documents/").and_then(|id| state.file(id)) {
        Some((_, bytes)) => bytes.clone().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn allowed(shared: &Shared, bot: &str) -> bool {
    let mut state = shared.lock();
    let right = bot.strip_prefix("bot") == Some(state.token.as_str());
    if !right {
        state.violation("a request with a wrong token".to_owned());
    }
    right
}

async fn read(request: HttpRequest) -> Result<Request, String> {
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    if kind.starts_with("multipart/form-data") {
        let form =
            Multipart::from_request(request, &()).await.map_err(|error| error.to_string())?;
        return read_form(form).await;
    }
    let body = Bytes::from_request(request, &()).await.map_err(|error| error.to_string())?;
    if body.is_empty() {
        return Ok(Request { params: json!({}), ..Request::default() });
    }
    if !kind.starts_with("application/json") {
        return Err(format!("the fake reads JSON and multipart, not `{kind}`"));
    }
    let params: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    if !params.is_object() {
        return Err("the parameters are no object".to_owned());
    }
    Ok(Request { params, ..Request::default() })
}

async fn read_form(mut form: Multipart) -> Result<Request, String> {
    let mut params = Map::new();
    let mut request = Request::default();
    while let Some(field) = form.next_field().await.map_err(|error| error.to_string())? {
        let name = field.name().unwrap_or_default().to_owned();
        let file = field.file_name().map(str::to_owned);
        let bytes = field.bytes().await.map_err(|error| error.to_string())?;
        if let Some(file) = file {
            request.uploads.insert(name, (file, bytes));
        } else {
            params.insert(name, Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    request.params = Value::Object(params);
    Ok(request)
}

/// A call that is under way; when it is dropped without an end, the bot went away.
struct OpenCall<'a> {
    shared: &'a Shared,
    index: usize,
    ended: bool,
}

impl<'a> OpenCall<'a> {
    fn new(shared: &'a Shared, method: &str, params: &Value) -> Self {
        let index = shared.lock().open_call(method, params);
        shared.changed();
        Self { shared, index, ended: false }
    }

    fn close(mut self, outcome: BotOutcome) {
        self.write(outcome);
    }

    fn end(mut self, answer: Answer) -> Response {
        match answer {
            Ok(result) => {
                let response = axum::Json(json!({ "ok": true, "result": result })).into_response();
                self.write(BotOutcome::Done(result));
                response
            }
            Err(refusal) => {
                let Refusal { code, description, .. } = refusal.clone();
                self.write(BotOutcome::Refused { code, description });
                refuse(&refusal)
            }
        }
    }

    fn write(&mut self, outcome: BotOutcome) {
        self.ended = true;
        self.shared.lock().close_call(self.index, outcome);
        self.shared.changed();
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.write(BotOutcome::Abandoned);
        }
    }
}

fn refuse(refusal: &Refusal) -> Response {
    let mut body =
        json!({ "ok": false, "error_code": refusal.code, "description": refusal.description });
    if let Some(seconds) = refusal.retry_after {
        body["parameters"] = json!({ "retry_after": seconds });
    }
    let status = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::BAD_REQUEST);
    (status, axum::Json(body)).into_response()
}

/// An answer that promises a body and breaks off: the nearest thing to a cut connection a handler can do.
fn cut() -> Response {
    let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("cut")) });
    ([(header::CONTENT_LENGTH, "100")], Body::from_stream(broken)).into_response()
}
