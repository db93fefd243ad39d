//! What the objects of a card are made of (specification: 4.4 and 4.5).

/// An object of the specification.
pub(super) struct Shape {
    /// Its name there; members that were renamed are known by it.
    pub(super) name: &'static str,
    /// Where it stands, with the rule for what it must have.
    pub(super) rule: &'static str,
    pub(super) members: &'static [Member],
    /// Whether exactly one of the members is to be there.
    pub(super) is_one_of: bool,
}

pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) is_required: bool,
}

pub(super) enum Kind {
    Text,
    /// A text without which a card cannot be read: it is never empty.
    Filled,
    Flag,
    Texts,
    /// A JSON object with members of any kind.
    Free,
    TextMap,
    Object(&'static Shape),
    List(&'static Shape),
    Map(&'static Shape),
}

const fn required(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, is_required: true }
}

const fn optional(name: &'static str, kind: Kind) -> Member {
    Member { name, kind, is_required: false }
}

const fn object(name: &'static str, rule: &'static str, members: &'static [Member]) -> Shape {
    Shape { name, rule, members, is_one_of: false }
}

const fn one_of(name: &'static str, rule: &'static str, members: &'static [Member]) -> Shape {
    Shape { name, rule, members, is_one_of: true }
}

pub(super) static AGENT_CARD: Shape = object(
    "AgentCard",
    "4.4.1 and 5.7: AgentCard has name, description, supportedInterfaces, version, capabilities, \
     defaultInputModes, defaultOutputModes and skills, and required lists are not empty",
    &[
        required("name", Kind::Filled),
        required("description", Kind::Text),
        required("supportedInterfaces", Kind::List(&INTERFACE)),
        optional("provider", Kind::Object(&PROVIDER)),
        required("version", Kind::Text),
        optional("documentationUrl", Kind::Text),
        required("capabilities", Kind::Object(&CAPABILITIES)),
        optional("securitySchemes", Kind::Map(&SCHEME)),
        optional("securityRequirements", Kind::List(&REQUIREMENT)),
        required("defaultInputModes", Kind::Texts),
        required("defaultOutputModes", Kind::Texts),
        required("skills", Kind::List(&SKILL)),
        optional("signatures", Kind::List(&SIGNATURE)),
        optional("iconUrl", Kind::Text),
    ],
);

static INTERFACE: Shape = object(
    "AgentInterface",
    "4.4.6: AgentInterface has url, protocolBinding and protocolVersion",
    &[
        required("url", Kind::Filled),
        required("protocolBinding", Kind::Filled),
        optional("tenant", Kind::Text),
        required("protocolVersion", Kind::Filled),
    ],
);

static PROVIDER: Shape = object(
    "AgentProvider",
    "4.4.2: AgentProvider has url and organization",
    &[required("url", Kind::Text), required("organization", Kind::Text)],
);

static CAPABILITIES: Shape = object(
    "AgentCapabilities",
    "4.4.3: AgentCapabilities holds flags and a list of extensions",
    &[
        optional("streaming", Kind::Flag),
        optional("pushNotifications", Kind::Flag),
        optional("extensions", Kind::List(&EXTENSION)),
        optional("extendedAgentCard", Kind::Flag),
    ],
);

static EXTENSION: Shape = object(
    "AgentExtension",
    "4.4.4: AgentExtension is named by its uri",
    &[
        required("uri", Kind::Text),
        optional("description", Kind::Text),
        optional("required", Kind::Flag),
        optional("params", Kind::Free),
    ],
);

static SKILL: Shape = object(
    "AgentSkill",
    "4.4.5 and 5.7: AgentSkill has id, name, description and tags, and required lists are not empty",
    &[
        required("id", Kind::Text),
        required("name", Kind::Text),
        required("description", Kind::Text),
        required("tags", Kind::Texts),
        optional("examples", Kind::Texts),
        optional("inputModes", Kind::Texts),
        optional("outputModes", Kind::Texts),
        optional("securityRequirements", Kind::List(&REQUIREMENT)),
    ],
);

static SIGNATURE: Shape = object(
    "AgentCardSignature",
    "4.4.7: AgentCardSignature has protected and signature",
    &[
        required("protected", Kind::Text),
        required("signature", Kind::Text),
        optional("header", Kind::Free),
    ],
);

static REQUIREMENT: Shape = object(
    "SecurityRequirement",
    "4.5: SecurityRequirement is {\"schemes\": {\"<name>\": {\"list\": [scopes]}}}",
    &[required("schemes", Kind::Map(&SCOPES))],
);

static SCOPES: Shape = object(
    "StringList",
    "4.5: the scopes of a requirement are {\"list\": [scopes]}",
    &[optional("list", Kind::Texts)],
);

static SCHEME: Shape = one_of(
    "SecurityScheme",
    "4.5.1: SecurityScheme has exactly one member, which names its kind",
    &[
        optional("apiKeySecurityScheme", Kind::Object(&API_KEY)),
        optional("httpAuthSecurityScheme", Kind::Object(&HTTP_AUTH)),
        optional("oauth2SecurityScheme", Kind::Object(&OAUTH2)),
        optional("openIdConnectSecurityScheme", Kind::Object(&OPEN_ID)),
        optional("mtlsSecurityScheme", Kind::Object(&MTLS)),
    ],
);

static API_KEY: Shape = object(
    "APIKeySecurityScheme",
    "4.5.2: APIKeySecurityScheme has location and name",
    &[
        optional("description", Kind::Text),
        required("location", Kind::Text),
        required("name", Kind::Text),
    ],
);

static HTTP_AUTH: Shape = object(
    "HTTPAuthSecurityScheme",
    "4.5.3: HTTPAuthSecurityScheme has scheme",
    &[
        optional("description", Kind::Text),
        required("scheme", Kind::Text),
        optional("bearerFormat", Kind::Text),
    ],
);

static OAUTH2: Shape = object(
    "OAuth2SecurityScheme",
    "4.5.4: OAuth2SecurityScheme has flows",
    &[
        optional("description", Kind::Text),
        required("flows", Kind::Object(&FLOWS)),
        optional("oauth2MetadataUrl", Kind::Text),
    ],
);

static OPEN_ID: Shape = object(
    "OpenIdConnectSecurityScheme",
    "4.5.5: OpenIdConnectSecurityScheme has openIdConnectUrl",
    &[optional("description", Kind::Text), required("openIdConnectUrl", Kind::Text)],
);

static MTLS: Shape = object(
    "MutualTlsSecurityScheme",
    "4.5.6: MutualTlsSecurityScheme is an object",
    &[optional("description", Kind::Text)],
);

static FLOWS: Shape = one_of(
    "OAuthFlows",
    "4.5.7: OAuthFlows has exactly one flow",
    &[
        optional("authorizationCode", Kind::Object(&AUTHORIZATION_CODE)),
        optional("clientCredentials", Kind::Object(&CLIENT_CREDENTIALS)),
        optional("deviceCode", Kind::Object(&DEVICE_CODE)),
        optional("implicit", Kind::Object(&IMPLICIT)),
        optional("password", Kind::Object(&PASSWORD)),
    ],
);

static AUTHORIZATION_CODE: Shape = object(
    "AuthorizationCodeOAuthFlow",
    "4.5.8: AuthorizationCodeOAuthFlow has authorizationUrl, tokenUrl and scopes",
    &[
        required("authorizationUrl", Kind::Text),
        required("tokenUrl", Kind::Text),
        optional("refreshUrl", Kind::Text),
        required("scopes", Kind::TextMap),
        optional("pkceRequired", Kind::Flag),
    ],
);

static CLIENT_CREDENTIALS: Shape = object(
    "ClientCredentialsOAuthFlow",
    "4.5.9: ClientCredentialsOAuthFlow has tokenUrl and scopes",
    &[
        required("tokenUrl", Kind::Text),
        optional("refreshUrl", Kind::Text),
        required("scopes", Kind::TextMap),
    ],
);

static DEVICE_CODE: Shape = object(
    "DeviceCodeOAuthFlow",
    "4.5.10: DeviceCodeOAuthFlow has deviceAuthorizationUrl, tokenUrl and scopes",
    &[
        required("deviceAuthorizationUrl", Kind::Text),
        required("tokenUrl", Kind::Text),
        optional("refreshUrl", Kind::Text),
        required("scopes", Kind::TextMap),
    ],
);

static IMPLICIT: Shape = object(
    "ImplicitOAuthFlow",
    "4.5.7: the implicit flow is deprecated",
    &[
        optional("authorizationUrl", Kind::Text),
        optional("refreshUrl", Kind::Text),
        optional("scopes", Kind::TextMap),
    ],
);

static PASSWORD: Shape = object(
    "PasswordOAuthFlow",
    "4.5.7: the password flow is deprecated",
    &[
        optional("tokenUrl", Kind::Text),
        optional("refreshUrl", Kind::Text),
        optional("scopes", Kind::TextMap),
    ],
);

/// A card of 0.3 (its specification, 5.5).
pub(super) static OLD_CARD: Shape = object(
    "AgentCard of 0.3",
    "0.3, 5.5: AgentCard has name, description, url, version, protocolVersion, capabilities, defaultInputModes, \
     defaultOutputModes and skills",
    &[
        required("name", Kind::Filled),
        required("description", Kind::Text),
        required("url", Kind::Text),
        optional("preferredTransport", Kind::Text),
        optional("additionalInterfaces", Kind::List(&OLD_INTERFACE)),
        required("protocolVersion", Kind::Text),
        optional("provider", Kind::Object(&PROVIDER)),
        required("version", Kind::Text),
        optional("documentationUrl", Kind::Text),
        optional("iconUrl", Kind::Text),
        required("capabilities", Kind::Object(&OLD_CAPABILITIES)),
        optional("securitySchemes", Kind::Free),
        required("defaultInputModes", Kind::Texts),
        required("defaultOutputModes", Kind::Texts),
        required("skills", Kind::List(&OLD_SKILL)),
        optional("signatures", Kind::List(&SIGNATURE)),
        optional("supportsAuthenticatedExtendedCard", Kind::Flag),
    ],
);

static OLD_INTERFACE: Shape = object(
    "AgentInterface of 0.3",
    "0.3, 5.5.5: AgentInterface has url and transport",
    &[required("url", Kind::Text), required("transport", Kind::Text)],
);

static OLD_CAPABILITIES: Shape = object(
    "AgentCapabilities of 0.3",
    "0.3, 5.5.2: AgentCapabilities holds flags and a list of extensions",
    &[
        optional("streaming", Kind::Flag),
        optional("pushNotifications", Kind::Flag),
        optional("stateTransitionHistory", Kind::Flag),
        optional("extensions", Kind::List(&EXTENSION)),
    ],
);

static OLD_SKILL: Shape = object(
    "AgentSkill of 0.3",
    "0.3, 5.5.4: AgentSkill has id, name, description and tags",
    &[
        required("id", Kind::Text),
        required("name", Kind::Text),
        required("description", Kind::Text),
        required("tags", Kind::Texts),
        optional("examples", Kind::Texts),
        optional("inputModes", Kind::Texts),
        optional("outputModes", Kind::Texts),
    ],
);
