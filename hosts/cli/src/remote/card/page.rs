//! A card for people to read. Every word of it is the agent's, and made harmless.

use std::fmt;

use volcanic_a2a_client::sanitize_remote_line;
use volcanic_a2a_types::{AgentCard, OAuthFlows, SecurityRequirement, SecurityScheme};

/// The longest text of a card on a line, in characters.
const LINE: usize = 300;

/// The interface that would be called.
pub(super) struct Used {
    /// Where it stands in the card, from 0.
    pub(super) index: usize,
    /// Whether somebody asked for a binding or version.
    pub(super) is_wanted: bool,
}

/// A card, and how its agent would be called, or why not.
pub(super) struct Page<'a> {
    pub(super) card: &'a AgentCard,
    pub(super) used: &'a Result<Used, String>,
}

impl fmt::Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let card = self.card;
        write!(f, "{}", line(&card.name))?;
        if !card.version.is_empty() {
            write!(f, ", version {}", line(&card.version))?;
        }
        if !card.description.is_empty() {
            write!(f, "\n  {}", line(&card.description))?;
        }
        if let Some(provider) = &card.provider {
            write!(
                f,
                "\n  provided by {} ({})",
                line(&provider.organization),
                line(&provider.url)
            )?;
        }
        if let Some(url) = &card.documentation_url {
            write!(f, "\n  documentation: {}", line(url))?;
        }
        self.interfaces(f)?;
        capabilities(card, f)?;
        skills(card, f)?;
        security(card, f)
    }
}

impl Page<'_> {
    fn interfaces(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\nInterfaces:")?;
        for (at, interface) in self.card.supported_interfaces.iter().enumerate() {
            let used = self.used.as_ref().ok().filter(|used| used.index == at);
            let mark = if used.is_some() { '*' } else { '-' };
            let (binding, version) =
                (line(&interface.protocol_binding), line(&interface.protocol_version));
            write!(f, "\n  {mark} {binding} {version} at {}", line(&interface.url))?;
            if let Some(tenant) = &interface.tenant {
                write!(f, ", tenant {}", line(tenant))?;
            }
            match used {
                Some(Used { is_wanted: true, .. }) => {
                    f.write_str(" (used: the first that is what was asked for)")?;
                }
                Some(Used { index: 0, .. }) => f.write_str(" (used: the first)")?,
                Some(_) => {
                    f.write_str(" (used: the first that is spoken here, 1.0 before 0.3)")?;
                }
                None => {}
            }
        }
        match self.used {
            Err(reason) => write!(f, "\n  None is used: {}", line(reason)),
            Ok(_) => Ok(()),
        }
    }
}

fn capabilities(card: &AgentCard, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let can = &card.capabilities;
    let named = [
        (can.can_stream(), "streams"),
        (can.can_push(), "pushes"),
        (can.has_extended_card(), "has an extended card"),
    ];
    let named: Vec<&str> = named.iter().filter(|(can, _)| *can).map(|(_, name)| *name).collect();
    let named =
        if named.is_empty() { "nothing beyond the core".to_owned() } else { named.join(", ") };
    write!(f, "\nCapabilities: {named}")?;
    for extension in &can.extensions {
        let needed = if extension.required { " (required)" } else { "" };
        write!(f, "\n  - extension {}{needed}", line(&extension.uri))?;
        if !extension.description.is_empty() {
            write!(f, ": {}", line(&extension.description))?;
        }
    }
    for (what, modes) in
        [("Takes", &card.default_input_modes), ("Gives", &card.default_output_modes)]
    {
        if !modes.is_empty() {
            write!(f, "\n{what}: {}", line(&modes.join(", ")))?;
        }
    }
    Ok(())
}

fn skills(card: &AgentCard, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(if card.skills.is_empty() { "\nSkills: none" } else { "\nSkills:" })?;
    for skill in &card.skills {
        write!(f, "\n  - {}: {}", line(&skill.id), line(&skill.name))?;
        if !skill.description.is_empty() {
            write!(f, "\n    {}", line(&skill.description))?;
        }
        for (what, words) in
            [("tags", &skill.tags), ("takes", &skill.input_modes), ("gives", &skill.output_modes)]
        {
            if !words.is_empty() {
                write!(f, "\n    {what}: {}", line(&words.join(", ")))?;
            }
        }
        for example in &skill.examples {
            write!(f, "\n    for example: {}", line(example))?;
        }
        if !skill.security_requirements.is_empty() {
            write!(f, "\n    needs {}", needed(&skill.security_requirements))?;
        }
    }
    Ok(())
}

fn security(card: &AgentCard, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if card.security_schemes.is_empty() && card.security_requirements.is_empty() {
        f.write_str("\nSecurity: no key is asked for")?;
    } else {
        f.write_str("\nSecurity:")?;
    }
    for (name, scheme) in &card.security_schemes {
        write!(f, "\n  - {}: {}", line(name), scheme_line(scheme))?;
    }
    if !card.security_requirements.is_empty() {
        write!(f, "\n  needs {}", needed(&card.security_requirements))?;
    }
    match card.signatures.len() {
        0 => Ok(()),
        1 => f.write_str("\nSigned once; the signature was not checked"),
        count => write!(f, "\nSigned {count} times; the signatures were not checked"),
    }
}

fn scheme_line(scheme: &SecurityScheme) -> String {
    match scheme {
        SecurityScheme::ApiKey(key) => line(&format!("a key in the {} {}", key.location, key.name)),
        SecurityScheme::HttpAuth(http) => line(&format!("Authorization: {}", http.scheme)),
        SecurityScheme::OAuth2(oauth) => {
            let (flow, url) = match &oauth.flows {
                OAuthFlows::AuthorizationCode(flow) => ("authorization code", &*flow.token_url),
                OAuthFlows::ClientCredentials(flow) => ("client credentials", &*flow.token_url),
                OAuthFlows::DeviceCode(flow) => ("device code", &*flow.token_url),
                OAuthFlows::Implicit(flow) => ("implicit", &*flow.authorization_url),
                OAuthFlows::Password(flow) => ("password", &*flow.token_url),
                _ => return "OAuth 2.0".to_owned(),
            };
            line(&format!("OAuth 2.0, {flow} at {url}"))
        }
        SecurityScheme::OpenIdConnect(provider) => {
            line(&format!("OpenID Connect at {}", provider.open_id_connect_url))
        }
        SecurityScheme::MutualTls(_) => "a client certificate".to_owned(),
        _ => "of a kind that is not known".to_owned(),
    }
}

/// What is needed together, and what instead of it.
fn needed(requirements: &[SecurityRequirement]) -> String {
    let choices: Vec<String> = requirements
        .iter()
        .map(|requirement| {
            let schemes: Vec<String> = requirement
                .schemes
                .iter()
                .map(|(name, scopes)| match scopes.list.join(", ") {
                    scopes if scopes.is_empty() => name.clone(),
                    scopes => format!("{name} ({scopes})"),
                })
                .collect();
            if schemes.is_empty() { "nothing".to_owned() } else { schemes.join(" and ") }
        })
        .collect();
    line(&choices.join(", or "))
}

fn line(text: &str) -> String {
    sanitize_remote_line(text, LINE)
}
