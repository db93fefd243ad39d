//! The one table of keys: what exists, how it is spelt, what it does.

/// A setting.
#[derive(Debug)]
pub(super) struct Key {
    /// The name people see; `Section__Name`, or a flat name of its own.
    pub(super) name: &'static str,
    /// A second, flat name.
    pub(super) flat: Option<&'static str>,
    /// Whether its value is shown to nobody.
    pub(super) secret: bool,
    /// The value when nothing is said.
    pub(super) default: Option<&'static str>,
    /// What it does.
    pub(super) doc: &'static str,
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
    pub(super) fn id(&self) -> String {
        self.name.to_ascii_lowercase().replace("__", ".")
    }

    /// Whether its name has a section, so that its case does not matter.
    pub(super) fn has_section(&self) -> bool {
        self.name.contains("__")
    }
}

/// The sections whose names belong to us: an unknown key below one of them is an error.
pub(super) const SECTIONS: [&str; 4] = ["a2aclient", "a2a", "telegram", "ops"];

/// The folder of everything; read before the file that may lie in it.
pub(super) const HOME: &str = "VOLCANIC_HOME";

pub(super) const BOT_TOKEN: Key =
    key("Telegram__BotToken", None, "the bot's token from BotFather; required")
        .flat("TELEGRAM_BOT_TOKEN")
        .secret();
pub(super) const ALLOWED_USERS: Key = key(
    "Telegram__AllowedUserIds",
    None,
    "the numeric ids of the people who may talk to the bot, with commas between them; required",
)
.flat("TELEGRAM_ALLOWED_USER_IDS");
pub(super) const MODEL: Key = key(
    "Telegram__Model",
    None,
    "the model that answers: `openai:MODEL`, `scripted` or `scripted:RULES.toml`; required",
);
pub(super) const API_URL: Key = key(
    "Telegram__ApiUrl",
    Some("https://api.telegram.org"),
    "the Bot API, for a server of one's own",
);
pub(super) const TIME_ZONE: Key = key(
    "Telegram__TimeZone",
    Some("UTC"),
    "the time zone of the header before each message, e.g. `Europe/Berlin`",
);
pub(super) const CLIENT_ENABLED: Key = key(
    "A2AClient__Enabled",
    Some("false"),
    "gives the chats the `a2a` tool and follows their tasks",
)
.flat("A2A_CLIENT_ENABLED");
pub(super) const WAIT_SECONDS: Key = key(
    "A2AClient__WaitSeconds",
    Some("60"),
    "how many seconds the tool waits for an outcome before a watch takes over; 0 hands over at once",
);
pub(super) const WATCH_TIMEOUT: Key =
    key("A2AClient__WatchTimeout", Some("1d"), "when a watch gives up, counted from its start");
pub(super) const CARD_TIMEOUT: Key = key(
    "A2AClient__CardTimeoutSeconds",
    Some("10"),
    "how many seconds fetching an agent's card may take",
);
pub(super) const MAX_FILE_BYTES: Key = key(
    "A2AClient__MaxFileBytes",
    Some("10MB"),
    "the largest size of the files of one send together, and of each received file",
);
pub(super) const SERVER_ENABLED: Key =
    key("A2A__Enabled", Some("false"), "opens the HTTP listener that agents push to")
        .flat("A2A_ENABLED");
pub(super) const PUBLIC_URL: Key =
    key("A2A__PublicUrl", None, "how others reach that listener; pushes need it")
        .flat("A2A_PUBLIC_URL");
pub(super) const LISTEN: Key = key("A2A__Listen", Some("127.0.0.1:8080"), "where it listens");
pub(super) const LOG_FORMAT: Key = key("Ops__Log__Format", Some("text"), "`text` or `json`");
pub(super) const LOG_LEVEL: Key =
    key("Ops__Log__Level", Some("info"), "`error`, `warn`, `info`, `debug` or `trace`");
pub(super) const OPENAI_KEY: Key =
    key("OPENAI_API_KEY", None, "the key of `openai:` models; a server of one's own may need none")
        .secret();
pub(super) const OPENAI_URL: Key = key(
    "OPENAI_BASE_URL",
    Some("https://api.openai.com/v1"),
    "the base URL of `openai:` models: any server that speaks chat completions",
);
pub(super) const CA_FILE: Key =
    key("SSL_CERT_FILE", None, "certificates that replace the system's in calls to agents");

/// All of them, in the order people read them.
pub(super) static KEYS: [&Key; 17] = [
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
];

/// A key that stands alone, outside [`KEYS`]' sections, and is read by more programs than ours.
pub(super) static SHARED_KEYS: [&Key; 1] = [&CA_FILE];

/// Every key there is.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().chain(&SHARED_KEYS).copied()
}

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
pub(super) fn refuse(lower: &str) -> String {
    if lower == "a2aclient__pushbaseurl" {
        return "there is no such setting: agents push to A2A__PublicUrl, while A2A__Enabled is true".to_owned();
    }
    let later =
        |name: &&str| if name.ends_with("__") { lower.starts_with(*name) } else { lower == *name };
    if LATER.iter().any(later) {
        return "this setting is not supported yet; leave it out".to_owned();
    }
    let section = lower.split("__").next().unwrap_or_default();
    let known: Vec<&str> = all()
        .map(|key| key.name)
        .filter(|name| name.to_ascii_lowercase().split("__").next() == Some(section))
        .collect();
    format!("there is no such setting; there are {}", known.join(", "))
}
