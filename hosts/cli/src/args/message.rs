//! What a message is made of, in the order in which it was said.

use std::time::Duration;

use clap::{
    ArgMatches, Args, Command, Error, FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{AgentArgs, duration, id, pause};

/// `volcanic send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub to: AgentArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "described where it is defined")]
    pub message: MessageParts,
    /// Continue this conversation with the agent.
    #[arg(long, value_name = "ID", value_parser = id)]
    pub context: Option<String>,
    /// Answer the question of this task; its conversation is looked up.
    #[arg(long, value_name = "ID", value_parser = id)]
    pub task: Option<String>,
    /// How long to wait for the outcome, e.g. 90s or 10m; the task goes on afterwards. 0s asks for the task alone.
    #[arg(long, visible_alias = "timeout", default_value = "60s", value_name = "TIME", value_parser = duration)]
    pub wait: Duration,
    /// Do not wait: print the task as soon as the agent has it.
    #[arg(long = "async", visible_alias = "no-wait", conflicts_with_all = ["wait", "stream"])]
    pub is_async: bool,
    /// Print what the agent reports while it works, as it comes.
    #[arg(long)]
    pub stream: bool,
    /// Also ask for this many messages of the task's history, and show them.
    #[arg(long, value_name = "COUNT")]
    pub history: Option<u32>,
    /// A media type that the answer may have; may be given several times.
    #[arg(long = "accept", value_name = "TYPE")]
    pub accepted: Vec<String>,
    /// The pause between two questions where the agent does not stream [default: from 1s, growing].
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub poll_interval: Option<Duration>,
}

/// The parts of a message, as they were said.
#[derive(Debug, Clone)]
pub struct MessageParts {
    /// In the order of the command line; at least one.
    pub parts: Vec<PartArg>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartArg {
    /// What it holds.
    pub value: PartValue,
    /// Its media type, instead of what it would be.
    pub media_type: Option<String>,
}

/// What a part is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartValue {
    /// A text; `-` is standard input.
    Text(String),
    /// A file of the workspace.
    File(String),
    /// JSON; `@FILE` is a file, and `@-` or `-` standard input.
    Data(String),
    /// An address where the agent finds more; it is not fetched here.
    Url(String),
}

/// The same, each kind for itself.
#[derive(Debug, Args)]
#[group(id = "said", required = true, multiple = true)]
struct RawParts {
    /// The message; `-` reads it from standard input.
    #[arg(value_name = "TEXT")]
    message: Option<String>,
    /// A further text. This and the next three may be given several times; their order is kept.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Vec<String>,
    /// A file of the workspace to attach, as a path in it.
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
    /// JSON: a value, `@FILE`, or `@-` for standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    data: Vec<String>,
    /// An address where the agent finds more.
    #[arg(long, value_name = "URL")]
    url: Vec<String>,
    /// The media type of the part right before it.
    #[arg(long, value_name = "TYPE")]
    media_type: Vec<String>,
}

impl RawParts {
    fn in_order(self, matches: &ArgMatches) -> Result<MessageParts, Error> {
        let mut placed: Vec<(usize, PartArg)> = Vec::new();
        let mut place =
            |name: &str, values: Vec<String>, kind: fn(String) -> PartValue| {
                let indices = matches.indices_of(name).into_iter().flatten();
                placed.extend(indices.zip(values).map(|(index, value)| {
                    (index, PartArg { value: kind(value), media_type: None })
                }));
            };
        place("message", self.message.into_iter().collect(), PartValue::Text);
        place("text", self.text, PartValue::Text);
        place("file", self.file, PartValue::File);
        place("data", self.data, PartValue::Data);
        place("url", self.url, PartValue::Url);
        placed.sort_by_key(|(index, _)| *index);
        let types = matches.indices_of("media_type").into_iter().flatten();
        for (at, media_type) in types.zip(self.media_type) {
            let before = placed.iter_mut().rev().find(|(index, _)| *index < at);
            let free = before.filter(|(_, part)| part.media_type.is_none());
            let Some((_, part)) = free else { return Err(stray(&media_type)) };
            part.media_type = Some(media_type);
        }
        Ok(MessageParts { parts: placed.into_iter().map(|(_, part)| part).collect() })
    }
}

/// A media type that belongs to no part.
fn stray(media_type: &str) -> Error {
    let mut error = Error::new(ErrorKind::ValueValidation);
    error.insert(ContextKind::InvalidArg, ContextValue::String("--media-type <TYPE>".to_owned()));
    error.insert(ContextKind::InvalidValue, ContextValue::String(media_type.to_owned()));
    let usage = "it belongs to the part right before it, and a part has one";
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![usage.into()]));
    error
}

impl FromArgMatches for MessageParts {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        RawParts::from_arg_matches(matches)?.in_order(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for MessageParts {
    fn augment_args(command: Command) -> Command {
        RawParts::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        RawParts::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command as Said};

    fn parts(arguments: &[&str]) -> Result<Vec<PartArg>, Error> {
        let arguments = [&["volcanic", "send", "demo"], arguments].concat();
        let Said::Send(args) = Cli::try_parse_from(arguments)?.command else { unreachable!() };
        Ok(args.message.parts)
    }

    fn part(value: PartValue, media_type: Option<&str>) -> PartArg {
        PartArg { value, media_type: media_type.map(str::to_owned) }
    }

    #[test]
    fn parts_are_in_the_order_of_the_command_line() {
        let text = |text: &str| PartValue::Text(text.to_owned());
        let file = |file: &str| PartValue::File(file.to_owned());
        let said = [
            "--file",
            "a.bin",
            "--media-type",
            "image/x",
            "first",
            "--data",
            "-1",
            "--file",
            "b",
            "--text",
            "-- last",
            "--url",
            "https://x/",
        ];
        let wanted = [
            part(file("a.bin"), Some("image/x")),
            part(text("first"), None),
            part(PartValue::Data("-1".to_owned()), None),
            part(file("b"), None),
            part(text("-- last"), None),
            part(PartValue::Url("https://x/".to_owned()), None),
        ];
        assert_eq!(parts(&said).unwrap(), wanted);
    }

    #[test]
    fn a_media_type_belongs_to_the_one_part_before_it() {
        for said in [
            &["--media-type", "a/b", "--file", "x"][..],
            &["--file", "x", "--media-type", "a/b", "--media-type", "c/d"],
        ] {
            let error = parts(said).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{said:?}");
            assert!(error.to_string().contains("right before it"), "{error}");
        }
    }

    #[test]
    fn a_message_without_parts_is_none() {
        let error = parts(&["--wait", "5s"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument);
    }
}
