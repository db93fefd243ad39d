//! `volcanic send`: one message, and what comes of it.

use std::{cell::Cell, time::Duration};

use anyhow::Result;
use futures::StreamExt as _;
use serde_json::json;
use tokio::time::timeout;
use volcanic_a2a_client::{ClientError, EventStream, RemoteAgent, sanitize_remote_line};
use volcanic_a2a_types::{
    HOPS_METADATA, Message, MessageId, Part, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, StreamResponse, Task, TaskId, TaskState, TaskStatus,
};
use volcanic_base::Chance;

use super::{
    Contact, Waited,
    events::{Reporter, Told},
    following::Following,
    parts,
    told::Text,
    waiting::after,
};
use crate::{
    args::SendArgs,
    config::CliConfig,
    exit::Exit,
    output::{Format, is_gone, note},
};

/// What a message was answered with.
enum Answer {
    Message(Message),
    Task(Task),
    /// The task as the first event told of it, and the events after that.
    Stream(Task, EventStream),
}

/// Sends a message and waits for the outcome.
///
/// # Errors
/// What became of the call, if it failed; when the command line or a file of the user's is wrong, a usage error.
pub(crate) async fn send(args: &SendArgs, config: &CliConfig, format: Format) -> Result<Exit> {
    let contact = Contact::open(&args.to, config, format)?;
    let parts = parts::read(&args.message, &contact)?;
    // Who does not wait for the outcome still wants to know which task it is.
    let waits = !args.is_async && !args.wait.is_zero();
    let deadline = waits.then_some(args.wait).and_then(after);
    let told = if args.stream { Told::Everything } else { Told::Nothing };
    let mut reporter = Reporter::new(&contact.live, format, told);

    let has_left = Cell::new(false);
    let sending = async {
        let remote = contact.connect().await?;
        let (request, answered) = request(args, parts, &remote).await?;
        contact.live.says("sending");
        has_left.set(true);
        let answer = if !is_streamed(args, &remote) {
            if args.stream {
                contact.live.clear();
                note("(The agent does not stream, so it is asked how far it is.)");
            }
            call(&remote, request).await?
        } else if waits {
            stream(&remote, request, &mut reporter).await?
        } else {
            let limit = contact.caller.config.call_timeout;
            stream_at_once(&remote, request, &mut reporter, limit).await?
        };
        Ok::<_, anyhow::Error>((remote, answer, answered))
    };
    let sent = contact.leave.bounded(&contact.live, deadline, sending).await;
    let (remote, answer, answered) = match sent {
        Waited::Done(sent) => sent.map_err(|error| contact.not_sent(error, has_left.get()))?,
        Waited::TimeIsUp => {
            return Err(contact.not_sent(contact.timed_out().into(), has_left.get()));
        }
        Waited::Interrupted => {
            return Err(contact.not_sent(contact.interrupted().into(), has_left.get()));
        }
    };
    let (task, events) = match answer {
        // As an event it is told already.
        Answer::Message(_) if format == Format::Json && is_streamed(args, &remote) => {
            return Ok(Exit::Done);
        }
        Answer::Message(message) => return contact.tell_message(&remote, message),
        Answer::Task(task) => (task, None),
        Answer::Stream(task, events) => (task, Some(events)),
    };
    let mut following = Following {
        remote: &remote,
        reporter,
        events,
        pause: args.poll_interval,
        history: args.history.unwrap_or_default(),
        task,
        answered,
    };
    if waits {
        contact.follow(&mut following, deadline).await?;
    }
    let exit = if following.is_unheard() {
        contact.tell_unheard(&remote, &following.task)?
    } else {
        let is_told = following.reporter.has_told(&following.task);
        let text = if is_told { Text::Told } else { Text::New };
        contact.tell_rest(&remote, following.task, following.history, text)?
    };
    // The agent has it, which is all that was wanted.
    Ok(if args.is_async && exit == Exit::TimedOut { Exit::Done } else { exit })
}

/// Whether the message is sent by the streaming operation.
fn is_streamed(args: &SendArgs, remote: &RemoteAgent) -> bool {
    args.stream && remote.streams()
}

/// The message, and the note of the question that it answers.
async fn request(
    args: &SendArgs,
    parts: Vec<Part>,
    remote: &RemoteAgent,
) -> Result<(SendMessageRequest, Option<String>), ClientError> {
    let mut message = Message::user(MessageId::from(Chance::from_os().uuid().to_string()), parts);
    message.context_id = args.context.clone().map(Into::into);
    let mut answered = None;
    if let Some(task) = &args.task {
        let task_id = TaskId::from(task.clone());
        // Some agents lose the context of a follow-up that names only its task, and some show the question until they go on.
        let asked = remote.get_task(&task_id, Some(0)).await?;
        message.context_id = message.context_id.or(asked.context_id);
        message.task_id = Some(task_id);
        answered = asked.status.question_note();
    }
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = !is_streamed(args, remote);
    configuration.accepted_output_modes.clone_from(&args.accepted);
    configuration.history_length =
        args.history.map(|length| i32::try_from(length).unwrap_or(i32::MAX));
    let mut request = SendMessageRequest::new(message);
    request.configuration = Some(configuration);
    request.metadata.get_or_insert_default().insert(HOPS_METADATA.to_owned(), json!(1));
    Ok((request, answered))
}

/// Sends a message, and returns as soon as the agent has said which task it is.
async fn stream(
    remote: &RemoteAgent,
    request: SendMessageRequest,
    reporter: &mut Reporter<'_>,
) -> Result<Answer> {
    let mut events = remote.send_streaming_message(request).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        reporter.event(&event)?;
        let task = match event {
            StreamResponse::Message(message) => return Ok(Answer::Message(message)),
            StreamResponse::Task(task) => task,
            // What it came to is not in that event, and nothing may come after it.
            StreamResponse::StatusUpdate(event) if event.status.state.is_terminal() => {
                let unread = TaskStatus::new(TaskState::default());
                let told = remote.get_task(&event.task_id, Some(0)).await;
                let task =
                    told.unwrap_or_else(|_| Task::new(event.task_id, event.context_id, unread));
                return Ok(Answer::Task(task));
            }
            StreamResponse::StatusUpdate(event) => {
                Task::new(event.task_id, event.context_id, event.status)
            }
            // Which task it belongs to is said, how that one stands is not.
            StreamResponse::ArtifactUpdate(event) => {
                Task::new(event.task_id, event.context_id, TaskStatus::new(TaskState::default()))
            }
            _ => continue,
        };
        return Ok(Answer::Stream(task, events));
    }
    Err(unexpected(remote, "the stream ended before it said anything"))
}

/// The same in the time of a call, for who does not wait for what comes of the message.
async fn stream_at_once(
    remote: &RemoteAgent,
    request: SendMessageRequest,
    reporter: &mut Reporter<'_>,
    limit: Duration,
) -> Result<Answer> {
    let sent = timeout(limit, stream(remote, request, reporter)).await;
    sent.unwrap_or_else(|_| {
        let agent = remote.name().to_owned();
        Err(ClientError::TimedOut { agent }.into())
    })
}

/// Sends a message, and returns what it is answered with.
async fn call(remote: &RemoteAgent, request: SendMessageRequest) -> Result<Answer> {
    match remote.send_message(request).await {
        Ok(SendMessageResponse::Message(message)) => Ok(Answer::Message(message)),
        Ok(SendMessageResponse::Task(task)) => Ok(Answer::Task(task)),
        Ok(_) => Err(unexpected(remote, "it is neither a task nor a message")),
        Err(ClientError::UnreadableAnswer { agent, task, reason }) => {
            // Asked for by its id it may be told in another way.
            match remote.get_task(&task.id, Some(0)).await {
                Ok(task) => Ok(Answer::Task(task)),
                Err(_) if !task.status.state.is_settled() => Ok(Answer::Task(*task)),
                Err(_) => Err(ClientError::UnreadableAnswer { agent, task, reason }.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

fn unexpected(remote: &RemoteAgent, reason: &str) -> anyhow::Error {
    ClientError::Unexpected { agent: remote.name().to_owned(), reason: reason.to_owned() }.into()
}

impl Contact<'_> {
    /// A failure to send, with what is known of the message.
    fn not_sent(&self, error: anyhow::Error, has_left: bool) -> anyhow::Error {
        if is_gone(&error) {
            return error;
        }
        // An answer that was read, as any other word of the agent's, settles it.
        let may_have_arrived = has_left
            && error.downcast_ref::<ClientError>().is_none_or(ClientError::may_have_arrived);
        let failure = self.failure(&error).with("mayHaveArrived", may_have_arrived);
        if !may_have_arrived {
            return failure.into();
        }
        let advice = if let Some(ClientError::UnreadableAnswer { task, .. }) = error.downcast_ref()
        {
            let id = sanitize_remote_line(task.id.as_str(), 200);
            format!("To ask again: {}", self.command("status", &[&id]))
        } else {
            let look = self.command("tasks", &[]);
            format!("The message may have arrived. To look for its task: {look}")
        };
        failure.advising(&advice).into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use bytes::Bytes;
    use futures::stream::pending;
    use http::{Request, Response, header};
    use http_body::Frame;
    use http_body_util::StreamBody;
    use tokio::time::Instant;
    use volcanic_a2a_client::{AgentEntry, AgentName, ClientConfig, plain_keys};
    use volcanic_a2a_types::{AgentCard, AgentInterface, BINDING_JSONRPC};
    use volcanic_net::{CallKind, NetBody, NetError, Transport};

    use super::*;
    use crate::remote::Live;

    /// Leads to an agent that opens each stream and says nothing in it.
    #[derive(Debug)]
    struct Silent;

    #[async_trait]
    impl Transport for Silent {
        async fn send(
            &self,
            _: Request<Bytes>,
            _: CallKind,
        ) -> Result<Response<NetBody>, NetError> {
            let nothing = pending::<Result<Frame<Bytes>, NetError>>();
            let mut response = Response::new(NetBody::new(StreamBody::new(nothing)));
            let sse = header::HeaderValue::from_static("text/event-stream");
            response.headers_mut().insert(header::CONTENT_TYPE, sse);
            Ok(response)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_says_nothing_has_the_time_of_a_call_if_nobody_waits() {
        let url = "https://a.example/";
        let mut card = AgentCard::new("a", "", "");
        card.supported_interfaces.push(AgentInterface::new(url, BINDING_JSONRPC, "1.0"));
        card.capabilities.streaming = Some(true);
        let entry = AgentEntry::new(AgentName::new("a").unwrap(), url.parse().unwrap());
        let config = ClientConfig::default();
        let remote =
            RemoteAgent::with_card(&entry, card, Arc::new(Silent), &plain_keys(), &config).unwrap();
        let request = SendMessageRequest::new(Message::user("m", vec![Part::text("hello")]));
        let live = Live::closed();
        let mut reporter = Reporter::new(&live, Format::Text, Told::Everything);
        let began = Instant::now();
        let sent = stream_at_once(&remote, request, &mut reporter, config.call_timeout);
        let sent = timeout(config.call_timeout * 2, sent).await.expect("it has no end");
        let error = sent.err().and_then(|error| error.downcast::<ClientError>().ok());
        assert!(matches!(error, Some(ClientError::TimedOut { .. })), "{error:?}");
        assert_eq!(began.elapsed(), config.call_timeout);
    }
}
