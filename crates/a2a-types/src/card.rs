//! What an agent says about itself.

use std::collections::BTreeMap;

use crate::{JsonObject, SecurityRequirement, SecurityScheme, wire::wire_object};

/// The binding of A2A over JSON-RPC 2.0.
pub const BINDING_JSONRPC: &str = "JSONRPC";
/// The binding of A2A over plain HTTP with JSON bodies.
pub const BINDING_HTTP_JSON: &str = "HTTP+JSON";
/// The binding of A2A over gRPC.
pub const BINDING_GRPC: &str = "GRPC";

wire_object! {
    /// What an agent says about itself (specification: `AgentCard`).
    ///
    /// Reading forgives empty and missing lists: a card that can be used is better than one that is complete.
    pub struct AgentCard {
        /// The agent's name, for people.
        name: String = Required("name"),
        /// What it is for, for people.
        description: String = Always("description"),
        /// Where it can be reached, the preferred first.
        supported_interfaces: Vec<AgentInterface> = Array("supportedInterfaces" | "supported_interfaces"),
        /// Who runs it.
        provider: Option<AgentProvider> = Optional("provider"),
        /// The agent's own version, not the protocol's.
        version: String = Always("version"),
        /// Where people can read more.
        documentation_url: Option<String> = Optional("documentationUrl" | "documentation_url"),
        /// What it can do beyond the core.
        capabilities: AgentCapabilities = Always("capabilities"),
        /// The ways to authenticate, by name.
        security_schemes: BTreeMap<String, SecurityScheme> = Plain("securitySchemes" | "security_schemes"),
        /// Which of them are needed; any one entry suffices.
        security_requirements: Vec<SecurityRequirement> =
            List("securityRequirements" | "security_requirements"),
        /// The media types it takes.
        default_input_modes: Vec<String> = Array("defaultInputModes" | "default_input_modes"),
        /// The media types it answers with.
        default_output_modes: Vec<String> = Array("defaultOutputModes" | "default_output_modes"),
        /// What it is good at.
        skills: Vec<AgentSkill> = Skills("skills"),
        /// Signatures over the card.
        signatures: Vec<AgentCardSignature> = List("signatures"),
        /// A picture of it.
        icon_url: Option<String> = Optional("iconUrl" | "icon_url"),
    }
}

wire_object! {
    /// One way to reach an agent (specification: `AgentInterface`).
    pub struct AgentInterface {
        /// Where; some cards give a path relative to their own address.
        url: String = Required("url"),
        /// Which binding: [`BINDING_JSONRPC`], [`BINDING_HTTP_JSON`], [`BINDING_GRPC`] or a URI.
        protocol_binding: String = Required("protocolBinding" | "protocol_binding"),
        /// The routing key to send with every request.
        tenant: Option<String> = Optional("tenant"),
        /// The version of the protocol, such as `1.0`.
        protocol_version: String = Required("protocolVersion" | "protocol_version"),
    }
}

wire_object! {
    /// Who runs an agent (specification: `AgentProvider`).
    pub struct AgentProvider {
        /// Their site.
        url: String = Always("url"),
        /// Their name.
        organization: String = Always("organization"),
    }
}

wire_object! {
    /// What an agent can do beyond the core (specification: `AgentCapabilities`). Absent means no.
    #[derive(Default)]
    pub struct AgentCapabilities {
        /// Whether it streams.
        streaming: Option<bool> = Optional("streaming"),
        /// Whether it calls webhooks.
        push_notifications: Option<bool> = Optional("pushNotifications" | "push_notifications"),
        /// The extensions it knows.
        extensions: Vec<AgentExtension> = List("extensions"),
        /// Whether authenticated callers get a fuller card.
        extended_agent_card: Option<bool> = Optional("extendedAgentCard" | "extended_agent_card"),
    }
}

wire_object! {
    /// An extension an agent knows (specification: `AgentExtension`).
    #[derive(Default)]
    pub struct AgentExtension {
        /// What names it.
        uri: String = Plain("uri"),
        /// How the agent uses it.
        description: String = Plain("description"),
        /// Whether callers must know it too.
        required: bool = Plain("required"),
        /// Its own settings.
        params: Option<JsonObject> = Optional("params"),
    }
}

wire_object! {
    /// Something an agent is good at (specification: `AgentSkill`).
    pub struct AgentSkill {
        /// Unique within the card.
        id: String = Always("id"),
        /// A name for people.
        name: String = Always("name"),
        /// A description for people and models.
        description: String = Always("description"),
        /// Keywords.
        tags: Vec<String> = Array("tags"),
        /// Prompts that fit it.
        examples: Vec<String> = List("examples"),
        /// The media types it takes, in place of the card's.
        input_modes: Vec<String> = List("inputModes" | "input_modes"),
        /// The media types it answers with, in place of the card's.
        output_modes: Vec<String> = List("outputModes" | "output_modes"),
        /// What it needs, beyond what the card says.
        security_requirements: Vec<SecurityRequirement> =
            List("securityRequirements" | "security_requirements"),
    }
}

wire_object! {
    /// A signature over a card, a detached JWS (specification: `AgentCardSignature`).
    pub struct AgentCardSignature {
        /// The protected header, base64url.
        protected: String = Always("protected"),
        /// The signature, base64url.
        signature: String = Always("signature"),
        /// The unprotected header.
        header: Option<JsonObject> = Optional("header"),
    }
}

impl AgentCard {
    /// Creates a card without interfaces, skills or capabilities.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        version: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            supported_interfaces: Vec::new(),
            provider: None,
            version: version.into(),
            documentation_url: None,
            capabilities: AgentCapabilities::default(),
            security_schemes: BTreeMap::new(),
            security_requirements: Vec::new(),
            default_input_modes: Vec::new(),
            default_output_modes: Vec::new(),
            skills: Vec::new(),
            signatures: Vec::new(),
            icon_url: None,
        }
    }
}

impl AgentInterface {
    /// Creates an interface without a tenant.
    pub fn new(
        url: impl Into<String>,
        protocol_binding: impl Into<String>,
        protocol_version: impl Into<String>,
    ) -> Self {
        Self {
            url: url.into(),
            protocol_binding: protocol_binding.into(),
            tenant: None,
            protocol_version: protocol_version.into(),
        }
    }
}

impl AgentProvider {
    /// Creates a provider.
    pub fn new(organization: impl Into<String>, url: impl Into<String>) -> Self {
        Self { url: url.into(), organization: organization.into() }
    }
}

impl AgentCapabilities {
    /// Whether it streams.
    pub fn can_stream(&self) -> bool {
        self.streaming == Some(true)
    }

    /// Whether it calls webhooks.
    pub fn can_push(&self) -> bool {
        self.push_notifications == Some(true)
    }

    /// Whether authenticated callers get a fuller card.
    pub fn has_extended_card(&self) -> bool {
        self.extended_agent_card == Some(true)
    }
}

impl AgentExtension {
    /// Creates a declaration of an extension that callers need not know.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

impl AgentSkill {
    /// Creates a skill with the card's media types.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        description: impl Into<String>,
        tags: Vec<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            description: description.into(),
            tags,
            examples: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FromWire, WireLimits};
    #[test]
    fn interfaces_are_read_behind_more_skills_than_are_kept() {
        let skill = r#"{"id":"a","name":"a","description":"d","tags":[]}"#;
        let skills = vec![skill; 20_000].join(",");
        let card = format!(
            r#"{{"name":"A","skills":[{skills}],"supportedInterfaces":[{{"url":"https://a.example/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}]}}"#
        );
        let card = AgentCard::from_wire(&card, WireLimits::Answer).unwrap();
        assert_eq!(card.supported_interfaces.len(), 1);
        assert!(card.skills.len() > 1000, "{}", card.skills.len());
    }
}
