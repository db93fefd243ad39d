//! Which agent is meant: an entry of agents.json, an address, or a card at hand.

use std::{
    io::{self, Read as _},
    net::IpAddr,
};

use anyhow::{Context as _, Result};
use url::{Host, Url};
use volcanic_a2a_client::{
    AGENTS_FILE, AgentBinding, AgentEntry, AgentName, AgentProtocol, ClientError, KeyMask,
    KeyResolver, RemoteAgent, read_agents,
};
use volcanic_a2a_types::{
    AgentCard, AgentInterface, BINDING_HTTP_JSON, BINDING_JSONRPC, nearest_name, v03,
};
use volcanic_base::read_text_to_limit;

use super::{Caller, secrets};
use crate::{
    args::AgentArgs,
    exit::{OrUsage as _, UsageError},
};

/// What an agent is called that has no name here.
const NAMELESS: &str = "agent";

/// The largest card that is read from a file, in bytes: no agent's card is larger.
const MAX_CARD: u64 = 1 << 20;

/// An agent, and how it is reached.
pub(super) struct Target {
    entry: AgentEntry,
    /// A card that need not be read from the agent.
    pub(super) card: Option<AgentCard>,
    /// The bindings that are wanted, the preferred first; none leaves it to entry and card.
    bindings: Vec<AgentBinding>,
}

impl Target {
    /// Finds the agent that was named.
    pub(super) fn find(args: &AgentArgs) -> Result<Self> {
        let target = if args.no_card {
            Self::interface(args)?
        } else {
            match Named::of(&args.agent) {
                Named::Entry => Self::of_entry(entry(args)?),
                Named::Url => Self::of_entry(AgentEntry::new(nameless()?, url(&args.agent)?)),
                Named::Host => Self::of_entry(AgentEntry::new(nameless()?, of_host(&args.agent)?)),
                Named::Card(path) => Self::of_card(&read_card(path)?, path)?,
            }
        };
        target.told(args)
    }

    /// The agent of a card whose text is at hand.
    pub(super) fn of_card_text(args: &AgentArgs, text: &str) -> Result<Self> {
        Self::of_card(text, &args.agent)?.told(args)
    }

    /// The same with what the command line says about it.
    fn told(self, args: &AgentArgs) -> Result<Self> {
        let mut target = self;
        let entry = &mut target.entry;
        let given = args.key_file.as_ref().map(|_| "--key-file");
        let given = given.or(args.key_env.as_ref().map(|_| "--key-env"));
        if let Some(option) = given.filter(|_| entry.name.as_str() == args.agent) {
            return Err(UsageError::new(format!(
                "{option} is for an agent given by URL; the key of \"{}\" stands in its entry in agents.json",
                entry.name
            ))
            .into());
        }
        if let Some(key) = secrets::source(args.key_file.as_deref(), args.key_env.as_deref())? {
            entry.key = Some(key);
        }
        let given = args.headers.iter().map(|header| secrets::header(header));
        let given: Vec<_> = given.collect::<Result<_>>()?;
        entry.headers.retain(|(known, _)| given.iter().all(|(name, _)| name != known));
        for (name, value) in given {
            entry
                .add_header(name, value)
                .map_err(|reason| UsageError::new(format!("--header: {reason}")))?;
        }
        if let Some(protocol) = args.protocol {
            entry.protocol = Some(protocol.into());
        }
        if args.tenant.is_some() {
            entry.tenant.clone_from(&args.tenant);
        }
        target.bindings = args.bindings.iter().map(|name| (*name).into()).collect();
        Ok(target)
    }

    fn of_entry(entry: AgentEntry) -> Self {
        Self { entry, card: None, bindings: Vec::new() }
    }

    /// The agent behind a card in a file: its addresses are the user's own word.
    fn of_card(text: &str, path: &str) -> Result<Self> {
        let unusable = || unusable(path);
        let card = v03::read_card(text);
        let card = card.with_context(unusable).or_usage()?;
        let urls: Vec<Url> = card
            .supported_interfaces
            .iter()
            .filter_map(|interface| Url::parse(&interface.url).ok())
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .collect();
        let Some(first) = urls.first() else {
            let text = format!("{}: it names no http(s) address of the agent", unusable());
            return Err(UsageError::new(text).into());
        };
        let mut entry = AgentEntry::new(nameless()?, first.clone());
        entry.trusted_origins = urls.iter().map(|url| url.origin().ascii_serialization()).collect();
        Ok(Self { card: Some(card), ..Self::of_entry(entry) })
    }

    /// The agent whose interface, not card, is at the URL.
    fn interface(args: &AgentArgs) -> Result<Self> {
        let [name] = args.bindings[..] else {
            let text = "--no-card needs one --binding: there is no card to choose by";
            return Err(UsageError::new(text).into());
        };
        let url = match Named::of(&args.agent) {
            Named::Host => of_host(&args.agent)?,
            Named::Url => url(&args.agent)?,
            Named::Entry | Named::Card(_) => {
                let text = format!("--no-card: `{}` is no URL of an interface", args.agent);
                return Err(UsageError::new(text).into());
            }
        };
        let binding = match name.into() {
            AgentBinding::JsonRpc => BINDING_JSONRPC,
            AgentBinding::HttpJson => BINDING_HTTP_JSON,
        };
        let version = match args.protocol.map(Into::into) {
            Some(AgentProtocol::V03) => "0.3",
            Some(AgentProtocol::V1) | None => "1.0",
        };
        let mut card = AgentCard::new(NAMELESS, "", "");
        card.supported_interfaces.push(AgentInterface::new(url.as_str(), binding, version));
        // Nobody said what it can do, so it is asked and may refuse.
        card.capabilities.streaming = Some(true);
        card.capabilities.push_notifications = Some(true);
        let entry = AgentEntry::new(nameless()?, url);
        Ok(Self { card: Some(card), ..Self::of_entry(entry) })
    }

    /// What the agent is called.
    pub(super) fn name(&self) -> &str {
        self.entry.name.as_str()
    }

    /// Its entry, or what stands in for one.
    pub(super) fn entry(&self) -> &AgentEntry {
        &self.entry
    }

    /// Whether not the order of the card decides how it is called.
    pub(super) fn is_particular(&self) -> bool {
        self.entry.binding.is_some() || self.entry.protocol.is_some()
    }

    /// What keeps its secrets out of what is shown.
    pub(super) fn mask(&self, keys: &KeyResolver) -> KeyMask {
        KeyMask::of(&self.entry, keys)
    }

    /// Whether the queries of addresses may be shown: its own one could hold a secret.
    pub(super) fn shows_queries(&self) -> bool {
        self.entry.url.query().is_none()
    }

    /// Reads the card, if there is none at hand, and chooses how to speak to the agent.
    pub(super) async fn connect(&self, caller: &Caller) -> Result<RemoteAgent, ClientError> {
        let mut wanted = self.bindings.iter().copied();
        let mut entry = self.entry.clone();
        entry.binding = wanted.next().or(entry.binding);
        loop {
            match (self.reach(&entry, caller).await, wanted.next()) {
                // The card may offer the next one.
                (Err(ClientError::Card { .. }), Some(next)) => entry.binding = Some(next),
                (reached, _) => return reached,
            }
        }
    }

    async fn reach(&self, entry: &AgentEntry, caller: &Caller) -> Result<RemoteAgent, ClientError> {
        match &self.card {
            Some(card) => RemoteAgent::with_card(
                entry,
                card.clone(),
                caller.transport.clone(),
                &caller.keys,
                &caller.config,
            ),
            None => caller.connect(entry).await,
        }
    }
}

/// What kind of thing an agent is named by.
#[derive(Debug, PartialEq, Eq)]
enum Named<'a> {
    /// The name of an entry.
    Entry,
    /// A URL.
    Url,
    /// A host, with or without a port.
    Host,
    /// The path of a card.
    Card(&'a str),
}

impl<'a> Named<'a> {
    fn of(text: &'a str) -> Self {
        if let Some(path) = text.strip_prefix("file://") {
            Self::Card(path)
        } else if text == "-" {
            Self::Card(text)
        } else if text.contains("://") {
            Self::Url
        } else if text.starts_with(['/', '.']) || text.to_ascii_lowercase().ends_with(".json") {
            Self::Card(text)
        } else if text.contains(['.', ':']) && !text.contains(char::is_whitespace) {
            Self::Host
        } else {
            Self::Entry
        }
    }
}

/// The text of the card that is named, if it is one at hand.
pub(super) fn card_at_hand(agent: &str) -> Result<Option<String>> {
    match Named::of(agent) {
        Named::Card(path) => read_card(path).map(Some),
        Named::Entry | Named::Url | Named::Host => Ok(None),
    }
}

/// The text of a card in a file, or of standard input.
fn read_card(path: &str) -> Result<String> {
    let text = if path == "-" { read_input() } else { read_text_to_limit(path, MAX_CARD) };
    let text = text.with_context(|| unusable(path)).or_usage()?;
    // Some editors put one before everything.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

fn read_input() -> io::Result<String> {
    let mut text = String::new();
    io::stdin().lock().take(MAX_CARD + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_CARD {
        let text = format!("it is larger than {MAX_CARD} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(text)
}

fn unusable(path: &str) -> String {
    format!("the card `{path}` cannot be used")
}

fn nameless() -> Result<AgentName> {
    AgentName::new(NAMELESS).context("the name of a nameless agent is wrong")
}

/// The agent of that name in agents.json.
fn entry(args: &AgentArgs) -> Result<AgentEntry> {
    let named = args.agent.as_str();
    let file = read_agents(&args.at.workspace).or_usage()?;
    file.agent(named).cloned().ok_or_else(|| {
        if let Some(fault) = file.skipped_agent(named) {
            let text = format!("the entry of an agent in {AGENTS_FILE} cannot be used: {fault}");
            return UsageError::new(text).into();
        }
        let names: Vec<_> = file.agents.iter().map(|entry| entry.name.as_str()).collect();
        let path = args.at.workspace.join(AGENTS_FILE);
        let listed = if names.is_empty() { "no agents".to_owned() } else { names.join(", ") };
        let meant = nearest_name(named, names.iter().copied());
        let meant = meant.map_or_else(String::new, |meant| format!(" Did you mean \"{meant}\"?"));
        let mut text = format!(
            "there is no agent \"{named}\": {} lists {listed}.{meant} Add {{\"name\": \"{named}\", \"url\": \"https://…\"}} to it, name another folder with --workspace, or give the agent's URL instead",
            path.display()
        );
        for skipped in &file.skipped {
            text.push_str("\n  skipped in that file: ");
            text.push_str(skipped);
        }
        UsageError::new(text).into()
    })
}

fn url(text: &str) -> Result<Url> {
    let url = Url::parse(text).with_context(|| format!("`{text}` is no URL")).or_usage()?;
    if !matches!(url.scheme(), "http" | "https") {
        let text = format!("`{text}` is no http or https URL, and agents are reached by no other");
        return Err(UsageError::new(text).into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        // It is not repeated: it holds a secret.
        let text = "the URL holds a user name or a password, and keys are never given on the command line: use --key-file or --key-env";
        return Err(UsageError::new(text).into());
    }
    Ok(url)
}

/// The URL of a host: in the clear on this machine only.
fn of_host(text: &str) -> Result<Url> {
    let secured = url(&format!("https://{text}"))?;
    let is_here = match secured.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    };
    // A default port would be the other scheme's, so the text is read again.
    if is_here { url(&format!("http://{text}")) } else { Ok(secured) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_addresses_and_cards_are_told_apart() {
        for (text, wanted) in [
            ("travel-bot", Named::Entry),
            ("localhost", Named::Entry),
            ("two words.", Named::Entry),
            ("https://a.example/x.json", Named::Url),
            ("agent.example", Named::Host),
            ("localhost:3000", Named::Host),
            ("[::1]:80", Named::Host),
            ("-", Named::Card("-")),
            ("./card", Named::Card("./card")),
            ("cards/a.JSON", Named::Card("cards/a.JSON")),
            ("/etc/a2a/card", Named::Card("/etc/a2a/card")),
            ("file:///etc/a2a/card", Named::Card("/etc/a2a/card")),
        ] {
            assert_eq!(Named::of(text), wanted, "{text}");
        }
    }

    #[test]
    fn only_this_machine_is_reached_in_the_clear() {
        for (host, wanted) in [
            ("localhost:3000", "http://localhost:3000/"),
            ("127.0.0.1:443/base", "http://127.0.0.1:443/base"),
            ("[::1]", "http://[::1]/"),
            ("agent.example:80", "https://agent.example:80/"),
            ("10.0.0.1", "https://10.0.0.1/"),
        ] {
            assert_eq!(of_host(host).unwrap().as_str(), wanted);
        }
    }
}
