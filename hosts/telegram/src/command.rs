//! The commands: how they are spelt.

use crate::api::MenuCommand;

/// A command that a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChatCommand {
    /// `/start`.
    Start,
    /// `/help`.
    Help,
    /// `/new`.
    New,
    /// `/stop`.
    Stop,
    /// `/status`.
    Status,
    /// `/a2a`.
    A2a,
    /// One that does not exist.
    Unknown(String),
}

/// The commands of the menu.
pub(crate) const MENU: [MenuCommand; 5] = [
    MenuCommand { command: "new", description: "Begin a new conversation" },
    MenuCommand { command: "stop", description: "Stop what is being worked on" },
    MenuCommand { command: "status", description: "Say what is being worked on" },
    MenuCommand { command: "a2a", description: "List remote agents and watched tasks" },
    MenuCommand { command: "help", description: "Say what can be done here" },
];

/// The longest name Telegram allows.
const MAX_NAME: usize = 32;

impl ChatCommand {
    /// Reads `/name` or `/name@bot` at the beginning of `text`, whatever follows it. Anything else is no command, also
    /// when it begins with a slash, like a path.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let word = text.strip_prefix('/')?.split_whitespace().next()?;
        let (name, bot) = word.split_once('@').unwrap_or((word, "bot"));
        let plain = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !plain(name)
            || !plain(bot)
            || name.len() > MAX_NAME
            || text[1..].starts_with(char::is_whitespace)
        {
            return None;
        }
        Some(match name.to_ascii_lowercase().as_str() {
            "start" => Self::Start,
            "help" => Self::Help,
            "new" => Self::New,
            "stop" => Self::Stop,
            "status" => Self::Status,
            "a2a" => Self::A2a,
            other => Self::Unknown(other.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_in_any_case_and_with_the_bots_name() {
        assert_eq!(ChatCommand::parse("/stop"), Some(ChatCommand::Stop));
        assert_eq!(ChatCommand::parse("/A2A@some_bot now"), Some(ChatCommand::A2a));
        assert_eq!(ChatCommand::parse("/start deep_link"), Some(ChatCommand::Start));
        assert_eq!(ChatCommand::parse("/dance"), Some(ChatCommand::Unknown("dance".to_owned())));
    }

    #[test]
    fn text_that_only_looks_like_a_command_is_text() {
        for text in
            ["/etc/passwd is gone", "stop", "/", "/ stop", "/st-op", "/stop@", "say /stop", "/ä"]
        {
            assert_eq!(ChatCommand::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_command_of_the_menu_exists() {
        for entry in MENU {
            let parsed = ChatCommand::parse(&format!("/{}", entry.command)).expect("a command");
            assert!(!matches!(parsed, ChatCommand::Unknown(_)), "{}", entry.command);
        }
    }
}
