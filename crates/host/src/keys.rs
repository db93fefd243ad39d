//! The one table of keys: what exists, how it is spelt, what it does, and which host reads it.

/// A setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// The name people see; `Section__Name`, or a flat name of its own.
    pub name: &'static str,
    /// A second, flat name.
    pub flat: Option<&'static str>,
    /// Whether its value is shown to nobody.
    pub secret: bool,
    /// The value when nothing is said.
    pub default: Option<&'static str>,
    /// What it does.
    pub doc: &'static str,
}

const fn key(name: &'static str, default: Option<&'static str>, doc: &'static str) -> Key {
    Key { name, flat: None, secret: false, default, doc }
}

impl Key {
    const fn flat(self, flat: &'static str) -> Self {
        Self { flat: Some(flat), ..self }
    }

    const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// Its name within the merged configuration.
    pub(crate) fn id(&self) -> String {
        self.name.to_ascii_lowercase().replace("__", ".")
    }

    /// Whether its name has a section, so that its case does not matter.
    pub(crate) fn has_section(&self) -> bool {
        self.name.contains("__")
    }

    /// Whether it is in this section, given in lower case.
    pub(crate) fn is_in(&self, section: &str) -> bool {
        let own = self.name.split_once("__").map(|(own, _)| own);
        own.is_some_and(|own| own.eq_ignore_ascii_case(section))
    }
}

/// The sections whose names belong to us: an unknown key below one of them is an error.
pub(crate) const SECTIONS: [&str; 4] = ["a2aclient", "a2a", "telegram", "ops"];

/// The folder of everything; read before the file that may lie in it.
pub(crate) const HOME: &str = "VOLCANIC_HOME";

/// The bot's token.
pub const BOT_TOKEN: Key =
    key("Telegram__BotToken", None, "the bot's token from BotFather; required")
        .flat("TELEGRAM_BOT_TOKEN")
        .secret();
/// Who may talk to the bot.
pub const ALLOWED_USERS: Key = key(
    "Telegram__AllowedUserIds",
    None,
    "the numeric ids of the people who may talk to the bot, with commas between them; required",
)
.flat("TELEGRAM_ALLOWED_USER_IDS");
/// The bot's model.
pub const MODEL: Key = key(
    "Telegram__Model",
    None,
    "the model that answers: `openai:MODEL`, `scripted` or `scripted:RULES.toml`; required",
);
/// Where the Bot API is.
pub const API_URL: Key = key(
    "Telegram__ApiUrl",
    Some("https://api.telegram.org"),
    "the Bot API, for a server of one's own",
);
/// The zone of timestamp headers.
pub const TIME_ZONE: Key = key(
    "Telegram__TimeZone",
    Some("UTC"),
    "the time zone of the header before each message, e.g. `Europe/Berlin`",
);
/// Whether the bot calls other agents.
pub const CLIENT_ENABLED: Key = key(
    "A2AClient__Enabled",
    Some("false"),
    "gives the chats the `a2a` tool and follows their tasks",
)
.flat("A2A_CLIENT_ENABLED");
/// How long the tool waits.
pub const WAIT_SECONDS: Key = key(
    "A2AClient__WaitSeconds",
    Some("60"),
    "how many seconds the tool waits for an outcome before a watch takes over; 0 hands over at once",
);
/// When a watch gives up.
pub const WATCH_TIMEOUT: Key =
    key("A2AClient__WatchTimeout", Some("1d"), "when a watch gives up, counted from its start");
/// How long a card may take.
pub const CARD_TIMEOUT: Key = key(
    "A2AClient__CardTimeoutSeconds",
    Some("10"),
    "how many seconds fetching an agent's card may take",
);
/// The largest file.
pub const MAX_FILE_BYTES: Key = key(
    "A2AClient__MaxFileBytes",
    Some("10MB"),
    "the largest size of the files of one send together, and of each received file",
);
/// Whether the bot can be called.
pub const SERVER_ENABLED: Key =
    key("A2A__Enabled", Some("false"), "opens the HTTP listener that agents push to")
        .flat("A2A_ENABLED");
/// How others reach the assistant.
pub const PUBLIC_URL: Key =
    key("A2A__PublicUrl", None, "how others reach the listener; pushes need it")
        .flat("A2A_PUBLIC_URL");
/// Where the assistant listens.
pub const LISTEN: Key = key("A2A__Listen", Some("127.0.0.1:8080"), "where it listens");
/// How a line of the log looks.
pub const LOG_FORMAT: Key = key("Ops__Log__Format", Some("text"), "`text` or `json`");
/// How much is logged.
pub const LOG_LEVEL: Key =
    key("Ops__Log__Level", Some("info"), "`error`, `warn`, `info`, `debug` or `trace`");
/// The key of `openai:` models.
pub const OPENAI_KEY: Key =
    key("OPENAI_API_KEY", None, "the key of `openai:` models; a server of one's own may need none")
        .secret();
/// Where `openai:` models are.
pub const OPENAI_URL: Key = key(
    "OPENAI_BASE_URL",
    Some("https://api.openai.com/v1"),
    "the base URL of `openai:` models: any server that speaks chat completions",
);
/// Certificates for calls to agents.
pub const CA_FILE: Key =
    key("SSL_CERT_FILE", None, "certificates that replace the system's in calls to agents");

/// All of them, in the order people read them: the bot reads every one.
pub static ALL: [&Key; 18] = [
    &BOT_TOKEN,
    &ALLOWED_USERS,
    &MODEL,
    &API_URL,
    &TIME_ZONE,
    &OPENAI_KEY,
    &OPENAI_URL,
    &CLIENT_ENABLED,
    &WAIT_SECONDS,
    &WATCH_TIMEOUT,
    &CARD_TIMEOUT,
    &MAX_FILE_BYTES,
    &SERVER_ENABLED,
    &PUBLIC_URL,
    &LISTEN,
    &LOG_FORMAT,
    &LOG_LEVEL,
    &CA_FILE,
];

/// Those that the command line reads. It calls agents always, and its model is named where it is started.
pub static COMMAND_LINE: [&Key; 10] = [
    &OPENAI_KEY,
    &OPENAI_URL,
    &WAIT_SECONDS,
    &WATCH_TIMEOUT,
    &CARD_TIMEOUT,
    &MAX_FILE_BYTES,
    &PUBLIC_URL,
    &LISTEN,
    &LOG_LEVEL,
    &CA_FILE,
];

/// Names that mean something in the papers but to nothing that is built yet, in lower case; a trailing `__` stands for
/// everything below it.
const LATER: [&str; 13] = [
    "a2aclient__proxy",
    "a2a__maxhops",
    "a2a__sessionidletimeout",
    "a2a__maxfilebytes",
    "a2a__allowprivatepushurls",
    "a2a__legacy",
    "a2a__card__",
    "a2a__limits__",
    "telegram__proxy",
    "telegram__webhookurl",
    "telegram__webhooksecret",
    "telegram__chats__",
    "ops__listen",
];

/// Why a name below one of our sections cannot be used.
pub(crate) fn refuse(lower: &str) -> String {
    if lower == "a2aclient__pushbaseurl" {
        return "there is no such setting: agents push to A2A__PublicUrl, while A2A__Enabled is true".to_owned();
    }
    let later =
        |name: &&str| if name.ends_with("__") { lower.starts_with(*name) } else { lower == *name };
    if LATER.iter().any(later) {
        return "this setting is not supported yet; leave it out".to_owned();
    }
    let section = lower.split("__").next().unwrap_or_default();
    let known: Vec<&str> =
        ALL.iter().filter(|key| key.is_in(section)).map(|key| key.name).collect();
    format!("there is no such setting; there are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_documented() {
        let docs = include_str!("../../../docs/configuration.md");
        let example = include_str!("../../../.env.example");
        for key in ALL {
            assert!(
                docs.contains(&format!("`{}`", key.name)),
                "docs/configuration.md lacks {}",
                key.name
            );
            assert!(
                example.contains(&format!("{}=", key.name))
                    || key.flat.is_some_and(|flat| example.contains(&format!("{flat}="))),
                ".env.example lacks {}",
                key.name
            );
            if let Some(flat) = key.flat {
                assert!(docs.contains(&format!("`{flat}`")), "docs/configuration.md lacks {flat}");
            }
        }
    }

    #[test]
    fn documentation_marks_what_the_command_line_reads() {
        let docs = include_str!("../../../docs/configuration.md");
        for key in ALL {
            let row = docs.lines().find(|line| line.starts_with(&format!("| `{}` ", key.name)));
            let row = row.unwrap_or_else(|| panic!("{} has no row", key.name));
            let wanted = if COMMAND_LINE.contains(&key) { "| both |" } else { "| bot |" };
            assert!(row.contains(wanted), "{wanted} is missing in {row}");
        }
    }
}
