//! The paths of HTTP+JSON: how they are written, and which call one asks for.

use std::fmt::{self, Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{PushConfigId, TaskId};

/// Everything but RFC 3986's unreserved characters, so that an id of any content stays one segment.
pub(crate) const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const MESSAGE_SEND: &str = "message:send";
const MESSAGE_STREAM: &str = "message:stream";
const TASKS: &str = "tasks";
const PUSH_CONFIGS: &str = "pushNotificationConfigs";
const EXTENDED_CARD: &str = "extendedAgentCard";
const CANCEL_SUFFIX: &str = ":cancel";
const SUBSCRIBE_SUFFIX: &str = ":subscribe";

/// The verb of a call over HTTP+JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HttpVerb {
    /// Reads.
    Get,
    /// Sends or changes.
    Post,
    /// Removes.
    Delete,
}

impl HttpVerb {
    /// The verb as it stands in a request.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    /// The verb of this name, if a call may have it.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Get, Self::Post, Self::Delete].into_iter().find(|verb| verb.as_str() == name)
    }
}

impl fmt::Display for HttpVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A call over HTTP+JSON, as its verb and path name it (specification: section 11.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Route {
    /// `POST /message:send`
    SendMessage,
    /// `POST /message:stream`
    SendStreamingMessage,
    /// `GET /tasks/{id}`
    GetTask(TaskId),
    /// `GET /tasks`
    ListTasks,
    /// `POST /tasks/{id}:cancel`
    CancelTask(TaskId),
    /// `POST /tasks/{id}:subscribe`; the specification also shows `GET`, and [`Route::parse`] takes both.
    SubscribeToTask(TaskId),
    /// `POST /tasks/{id}/pushNotificationConfigs`
    CreatePushConfig(TaskId),
    /// `GET /tasks/{id}/pushNotificationConfigs/{configId}`
    GetPushConfig(TaskId, PushConfigId),
    /// `GET /tasks/{id}/pushNotificationConfigs`
    ListPushConfigs(TaskId),
    /// `DELETE /tasks/{id}/pushNotificationConfigs/{configId}`
    DeletePushConfig(TaskId, PushConfigId),
    /// `GET /extendedAgentCard`
    GetExtendedCard,
}

/// Why a verb and a path are no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// No call has this path.
    #[error("there is no such path")]
    NoSuchPath,
    /// Calls have this path, with other verbs.
    #[error("this path has another verb")]
    OtherVerb {
        /// The verbs it has.
        allowed: &'static [HttpVerb],
    },
}

impl Route {
    /// The verb of the call.
    pub const fn verb(&self) -> HttpVerb {
        match self {
            Self::SendMessage
            | Self::SendStreamingMessage
            | Self::CancelTask(_)
            | Self::SubscribeToTask(_)
            | Self::CreatePushConfig(_) => HttpVerb::Post,
            Self::GetTask(_)
            | Self::ListTasks
            | Self::GetPushConfig(..)
            | Self::ListPushConfigs(_)
            | Self::GetExtendedCard => HttpVerb::Get,
            Self::DeletePushConfig(..) => HttpVerb::Delete,
        }
    }

    /// The path below the interface's URL, which is to have no slash at its end; the tenant goes first.
    pub fn path(&self, tenant: Option<&str>) -> String {
        let mut path = String::new();
        if let Some(tenant) = tenant.filter(|tenant| !tenant.is_empty()) {
            push_segment(&mut path, tenant);
        }
        let mut literal = |name: &str| {
            path.push('/');
            path.push_str(name);
        };
        match self {
            Self::SendMessage => literal(MESSAGE_SEND),
            Self::SendStreamingMessage => literal(MESSAGE_STREAM),
            Self::GetExtendedCard => literal(EXTENDED_CARD),
            Self::ListTasks
            | Self::GetTask(_)
            | Self::CancelTask(_)
            | Self::SubscribeToTask(_)
            | Self::CreatePushConfig(_)
            | Self::GetPushConfig(..)
            | Self::ListPushConfigs(_)
            | Self::DeletePushConfig(..) => literal(TASKS),
        }
        match self {
            Self::SendMessage
            | Self::SendStreamingMessage
            | Self::GetExtendedCard
            | Self::ListTasks => {}
            Self::GetTask(task) => push_segment(&mut path, task.as_str()),
            Self::CancelTask(task) => {
                push_segment(&mut path, task.as_str());
                path.push_str(CANCEL_SUFFIX);
            }
            Self::SubscribeToTask(task) => {
                push_segment(&mut path, task.as_str());
                path.push_str(SUBSCRIBE_SUFFIX);
            }
            Self::CreatePushConfig(task) | Self::ListPushConfigs(task) => {
                push_segment(&mut path, task.as_str());
                push_segment(&mut path, PUSH_CONFIGS);
            }
            Self::GetPushConfig(task, config) | Self::DeletePushConfig(task, config) => {
                push_segment(&mut path, task.as_str());
                push_segment(&mut path, PUSH_CONFIGS);
                push_segment(&mut path, config.as_str());
            }
        }
        path
    }

    /// Which call a verb and a path below the interface's URL ask for, and with which tenant. The path is as it came,
    /// percent-encoded and without the query.
    ///
    /// A path that reads as a call without a tenant is one: a tenant named `tasks` cannot be told from it.
    ///
    /// # Errors
    ///
    /// [`RouteError`] if there is no such call.
    pub fn parse(verb: &str, path: &str) -> Result<(Option<String>, Self), RouteError> {
        let segments: Vec<&str> =
            path.strip_prefix('/').ok_or(RouteError::NoSuchPath)?.split('/').collect();
        let verb = HttpVerb::from_name(verb);
        match Self::parse_segments(verb, &segments) {
            Err(RouteError::NoSuchPath) => {}
            found => return found.map(|route| (None, route)),
        }
        let (tenant, rest) = segments.split_first().ok_or(RouteError::NoSuchPath)?;
        let tenant = decode(tenant).ok_or(RouteError::NoSuchPath)?;
        Self::parse_segments(verb, rest).map(|route| (Some(tenant), route))
    }

    fn parse_segments(verb: Option<HttpVerb>, segments: &[&str]) -> Result<Self, RouteError> {
        use HttpVerb::{Delete, Get, Post};

        let id = |segment: &str| decode(segment).ok_or(RouteError::NoSuchPath);
        match *segments {
            [MESSAGE_SEND] => only(verb, &[Post], |_| Self::SendMessage),
            [MESSAGE_STREAM] => only(verb, &[Post], |_| Self::SendStreamingMessage),
            [EXTENDED_CARD] => only(verb, &[Get], |_| Self::GetExtendedCard),
            [TASKS] => only(verb, &[Get], |_| Self::ListTasks),
            [TASKS, task] => {
                // The suffix is looked for before decoding: an encoded colon belongs to the id.
                if let Some(task) = task.strip_suffix(CANCEL_SUFFIX) {
                    let task = id(task)?.into();
                    only(verb, &[Post], |_| Self::CancelTask(task))
                } else if let Some(task) = task.strip_suffix(SUBSCRIBE_SUFFIX) {
                    let task = id(task)?.into();
                    only(verb, &[Post, Get], |_| Self::SubscribeToTask(task))
                } else {
                    let task = id(task)?.into();
                    only(verb, &[Get], |_| Self::GetTask(task))
                }
            }
            [TASKS, task, PUSH_CONFIGS] => {
                let task = id(task)?.into();
                only(verb, &[Post, Get], |verb| match verb {
                    Post => Self::CreatePushConfig(task),
                    Get | Delete => Self::ListPushConfigs(task),
                })
            }
            [TASKS, task, PUSH_CONFIGS, config] => {
                let (task, config) = (id(task)?.into(), id(config)?.into());
                only(verb, &[Get, Delete], |verb| match verb {
                    Delete => Self::DeletePushConfig(task, config),
                    Get | Post => Self::GetPushConfig(task, config),
                })
            }
            _ => Err(RouteError::NoSuchPath),
        }
    }
}

/// The route, if the verb is one that its path has.
fn only(
    verb: Option<HttpVerb>,
    allowed: &'static [HttpVerb],
    route: impl FnOnce(HttpVerb) -> Route,
) -> Result<Route, RouteError> {
    match verb.filter(|verb| allowed.contains(verb)) {
        Some(verb) => Ok(route(verb)),
        None => Err(RouteError::OtherVerb { allowed }),
    }
}

fn push_segment(path: &mut String, segment: &str) {
    path.push('/');
    // Whoever handles the path on its way would resolve these two away.
    let dots = matches!(segment, "." | "..");
    if dots {
        path.push_str(&segment.replace('.', "%2E"));
    } else {
        // Writing to a string cannot fail.
        let _ = write!(path, "{}", utf8_percent_encode(segment, ENCODED));
    }
}

/// A segment's text; none if it is empty or no UTF-8.
fn decode(segment: &str) -> Option<String> {
    let text = percent_decode_str(segment).decode_utf8().ok()?;
    (!text.is_empty()).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(route: &Route, verb: &str, path: &str) {
        assert_eq!((route.verb().as_str(), route.path(None).as_str()), (verb, path));
        assert_eq!(Route::parse(verb, path), Ok((None, route.clone())));
    }

    #[test]
    fn every_call_has_its_verb_and_path() {
        let task = || TaskId::from("t1");
        check(&Route::SendMessage, "POST", "/message:send");
        check(&Route::SendStreamingMessage, "POST", "/message:stream");
        check(&Route::GetTask(task()), "GET", "/tasks/t1");
        check(&Route::ListTasks, "GET", "/tasks");
        check(&Route::CancelTask(task()), "POST", "/tasks/t1:cancel");
        check(&Route::SubscribeToTask(task()), "POST", "/tasks/t1:subscribe");
        check(&Route::CreatePushConfig(task()), "POST", "/tasks/t1/pushNotificationConfigs");
        check(&Route::ListPushConfigs(task()), "GET", "/tasks/t1/pushNotificationConfigs");
        let config = "/tasks/t1/pushNotificationConfigs/p1";
        check(&Route::GetPushConfig(task(), "p1".into()), "GET", config);
        check(&Route::DeletePushConfig(task(), "p1".into()), "DELETE", config);
        check(&Route::GetExtendedCard, "GET", "/extendedAgentCard");
    }

    #[test]
    fn subscribing_is_understood_with_both_verbs() {
        let route = Route::SubscribeToTask("t1".into());
        assert_eq!(Route::parse("GET", "/tasks/t1:subscribe"), Ok((None, route)));
    }

    #[test]
    fn ids_with_odd_characters_stay_one_segment() {
        check(&Route::GetTask("a/b c%é:x".into()), "GET", "/tasks/a%2Fb%20c%25%C3%A9%3Ax");
        check(&Route::GetTask("x:cancel".into()), "GET", "/tasks/x%3Acancel");
        check(&Route::CancelTask("x:cancel".into()), "POST", "/tasks/x%3Acancel:cancel");
        check(&Route::GetTask("..".into()), "GET", "/tasks/%2E%2E");
        check(&Route::GetTask("a.b".into()), "GET", "/tasks/a.b");
    }

    #[test]
    fn tenant_stands_before_the_path_and_literal_paths_win() {
        assert_eq!(Route::SendMessage.path(Some("acme/1")), "/acme%2F1/message:send");
        assert_eq!(Route::ListTasks.path(Some("")), "/tasks");
        let parse = |verb: &str, path: &str| Route::parse(verb, path).unwrap();
        assert_eq!(
            parse("POST", "/acme%2F1/message:send"),
            (Some("acme/1".to_owned()), Route::SendMessage)
        );
        assert_eq!(parse("GET", "/acme/tasks"), (Some("acme".to_owned()), Route::ListTasks));
        assert_eq!(parse("GET", "/tasks/tasks"), (None, Route::GetTask("tasks".into())));
    }

    #[test]
    fn what_is_no_call_is_told_apart_from_a_wrong_verb() {
        for path in
            ["", "/", "tasks", "/no/such/route", "/tasks/", "/tasks/t/x", "/tasks/%ff", "//tasks"]
        {
            assert_eq!(Route::parse("GET", path), Err(RouteError::NoSuchPath), "{path}");
        }
        let other = |verb: &str, path: &str| match Route::parse(verb, path) {
            Err(RouteError::OtherVerb { allowed }) => allowed,
            found => panic!("{found:?}"),
        };
        assert_eq!(other("PUT", "/tasks/t1"), [HttpVerb::Get]);
        assert_eq!(other("GET", "/message:send"), [HttpVerb::Post]);
        assert_eq!(other("DELETE", "/acme/tasks/t1:subscribe"), [HttpVerb::Post, HttpVerb::Get]);
    }

    proptest! {
        #[test]
        fn every_id_comes_back_from_its_path(task in "\\PC{1,20}", config in "\\PC{1,20}", tenant in "\\PC{1,20}") {
            prop_assume!(tenant != "tasks");
            let route = Route::DeletePushConfig(task.into(), config.into());
            let path = route.path(Some(&tenant));
            prop_assert!(path.is_ascii());
            prop_assert_eq!(Route::parse("DELETE", &path), Ok((Some(tenant), route)));
        }

        #[test]
        fn no_path_panics(verb in "GET|POST|DELETE|PUT", path in "\\PC{0,40}") {
            let _ = Route::parse(&verb, &path);
        }
    }
}
