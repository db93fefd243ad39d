//! How an agent wants its callers to authenticate.
//!
//! Reading forgives what is left out: a scheme that nobody here uses must not make the whole card unreadable.

use std::collections::BTreeMap;

use crate::{
    JsonObject,
    wire::{wire_object, wire_oneof},
};

wire_object! {
    /// Schemes that are needed together (specification: `SecurityRequirement`).
    #[derive(Default)]
    pub struct SecurityRequirement {
        /// The scopes needed, by the name of the scheme.
        schemes: BTreeMap<String, ScopeList> = Always("schemes"),
    }
}

wire_object! {
    /// Names of scopes (specification: `StringList`).
    #[derive(Default)]
    pub struct ScopeList {
        /// The names.
        list: Vec<String> = List("list"),
    }
}

wire_oneof! {
    /// A way to authenticate (specification: `SecurityScheme`).
    pub enum SecurityScheme {
        /// A key in a header, cookie or query parameter.
        ApiKey(ApiKeySecurityScheme) = "apiKeySecurityScheme" | "api_key_security_scheme",
        /// The `Authorization` header.
        HttpAuth(HttpAuthSecurityScheme) = "httpAuthSecurityScheme" | "http_auth_security_scheme",
        /// OAuth 2.0.
        OAuth2(OAuth2SecurityScheme) = "oauth2SecurityScheme" | "oauth2_security_scheme",
        /// A provider that speaks `OpenID Connect`.
        OpenIdConnect(OpenIdConnectSecurityScheme) =
            "openIdConnectSecurityScheme" | "open_id_connect_security_scheme",
        /// A client certificate.
        MutualTls(MutualTlsSecurityScheme) = "mtlsSecurityScheme" | "mtls_security_scheme",
    }
    else Unknown
}

wire_object! {
    /// A key in a header, cookie or query parameter (specification: `APIKeySecurityScheme`).
    pub struct ApiKeySecurityScheme {
        /// For people.
        description: Option<String> = Optional("description"),
        /// `header`, `cookie` or `query`.
        location: String = Always("location"),
        /// The name of the header, cookie or parameter.
        name: String = Always("name"),
    }
}

wire_object! {
    /// The `Authorization` header (specification: `HTTPAuthSecurityScheme`).
    pub struct HttpAuthSecurityScheme {
        /// For people.
        description: Option<String> = Optional("description"),
        /// `Bearer`, `Basic`, …
        scheme: String = Always("scheme"),
        /// What the token looks like, such as `JWT`.
        bearer_format: Option<String> = Optional("bearerFormat" | "bearer_format"),
    }
}

wire_object! {
    /// OAuth 2.0 (specification: `OAuth2SecurityScheme`).
    pub struct OAuth2SecurityScheme {
        /// For people.
        description: Option<String> = Optional("description"),
        /// How to get a token.
        flows: OAuthFlows = Always("flows"),
        /// Where the authorization server describes itself (RFC 8414).
        oauth2_metadata_url: Option<String> = Optional("oauth2MetadataUrl" | "oauth2_metadata_url"),
    }
}

wire_object! {
    /// A provider that speaks `OpenID Connect` (specification: `OpenIdConnectSecurityScheme`).
    pub struct OpenIdConnectSecurityScheme {
        /// For people.
        description: Option<String> = Optional("description"),
        /// Where the provider describes itself.
        open_id_connect_url: String = Always("openIdConnectUrl" | "open_id_connect_url"),
    }
}

wire_object! {
    /// A client certificate (specification: `MutualTlsSecurityScheme`).
    #[derive(Default)]
    pub struct MutualTlsSecurityScheme {
        /// For people.
        description: Option<String> = Optional("description"),
    }
}

wire_oneof! {
    /// How to get a token (specification: `OAuthFlows`).
    pub enum OAuthFlows {
        /// A person allows it in a browser.
        AuthorizationCode(AuthorizationCodeFlow) = "authorizationCode" | "authorization_code",
        /// The client proves itself.
        ClientCredentials(ClientCredentialsFlow) = "clientCredentials" | "client_credentials",
        /// A person allows it on another device.
        DeviceCode(DeviceCodeFlow) = "deviceCode" | "device_code",
        /// Deprecated.
        Implicit(ImplicitFlow) = "implicit",
        /// Deprecated.
        Password(PasswordFlow) = "password",
    }
    else Unknown
}

wire_object! {
    /// A person allows it in a browser (specification: `AuthorizationCodeOAuthFlow`).
    pub struct AuthorizationCodeFlow {
        /// Where the person is sent.
        authorization_url: String = Always("authorizationUrl" | "authorization_url"),
        /// Where the token is had.
        token_url: String = Always("tokenUrl" | "token_url"),
        /// Where it is renewed.
        refresh_url: Option<String> = Optional("refreshUrl" | "refresh_url"),
        /// What can be asked for, and what that means.
        scopes: BTreeMap<String, String> = Always("scopes"),
        /// Whether the client must use PKCE (RFC 7636).
        pkce_required: bool = Plain("pkceRequired" | "pkce_required"),
    }
}

wire_object! {
    /// The client proves itself (specification: `ClientCredentialsOAuthFlow`).
    pub struct ClientCredentialsFlow {
        /// Where the token is had.
        token_url: String = Always("tokenUrl" | "token_url"),
        /// Where it is renewed.
        refresh_url: Option<String> = Optional("refreshUrl" | "refresh_url"),
        /// What can be asked for, and what that means.
        scopes: BTreeMap<String, String> = Always("scopes"),
    }
}

wire_object! {
    /// A person allows it on another device (specification: `DeviceCodeOAuthFlow`).
    pub struct DeviceCodeFlow {
        /// Where the device asks.
        device_authorization_url: String = Always("deviceAuthorizationUrl" | "device_authorization_url"),
        /// Where the token is had.
        token_url: String = Always("tokenUrl" | "token_url"),
        /// Where it is renewed.
        refresh_url: Option<String> = Optional("refreshUrl" | "refresh_url"),
        /// What can be asked for, and what that means.
        scopes: BTreeMap<String, String> = Always("scopes"),
    }
}

wire_object! {
    /// Deprecated (specification: `ImplicitOAuthFlow`).
    #[derive(Default)]
    pub struct ImplicitFlow {
        /// Where the person is sent.
        authorization_url: String = Plain("authorizationUrl" | "authorization_url"),
        /// Where the token is renewed.
        refresh_url: Option<String> = Optional("refreshUrl" | "refresh_url"),
        /// What can be asked for, and what that means.
        scopes: BTreeMap<String, String> = Plain("scopes"),
    }
}

wire_object! {
    /// Deprecated (specification: `PasswordOAuthFlow`).
    #[derive(Default)]
    pub struct PasswordFlow {
        /// Where the token is had.
        token_url: String = Plain("tokenUrl" | "token_url"),
        /// Where it is renewed.
        refresh_url: Option<String> = Optional("refreshUrl" | "refresh_url"),
        /// What can be asked for, and what that means.
        scopes: BTreeMap<String, String> = Plain("scopes"),
    }
}

/// No flow at all.
impl Default for OAuthFlows {
    fn default() -> Self {
        Self::Unknown(JsonObject::new())
    }
}

impl SecurityRequirement {
    /// Creates a requirement of one scheme without scopes.
    pub fn one(scheme: impl Into<String>) -> Self {
        Self { schemes: BTreeMap::from([(scheme.into(), ScopeList::default())]) }
    }
}

impl ApiKeySecurityScheme {
    /// Creates a scheme with a key in the header `name`.
    pub fn header(name: impl Into<String>) -> Self {
        Self { description: None, location: "header".to_owned(), name: name.into() }
    }
}

impl HttpAuthSecurityScheme {
    /// Creates a scheme of the `Authorization` header.
    pub fn new(scheme: impl Into<String>) -> Self {
        Self { description: None, scheme: scheme.into(), bearer_format: None }
    }
}
