//! The wire vocabulary of A2A 1.0: objects, JSON-RPC envelopes, routes and queries of HTTP+JSON, errors, service
//! parameters and server-sent events; and, in [`v03`], the JSON-RPC dialect of 0.3 as conversions.
//!
//! No input or output happens here, and nothing else of this project is known. Reading is liberal and writing is
//! strict: `null`, `""` and `[]` read as absent, `snake_case` names and numbered enums are understood, unknown values
//! and members survive where somebody may need them; what is written is what the specification prefers. An error says
//! where it happened, by the names on the wire: `` `status.message.parts[2].raw`: … ``.

mod card;
mod card_check;
mod error;
mod event;
mod from_wire;
mod http_error;
mod ids;
mod json_text;
mod jsonrpc;
mod message;
mod naming;
mod part;
mod push;
mod query;
mod reducer;
mod request;
mod route;
mod security;
mod service;
mod sse;
mod state;
mod task;
mod time;
pub mod v03;
mod wire;

pub use wire::reading::Omitted;

/// A JSON object with members of any kind.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

pub use card::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface,
    AgentProvider, AgentSkill, BINDING_GRPC, BINDING_HTTP_JSON, BINDING_JSONRPC,
};
pub use card_check::{
    CardCheck, CardFinding, CardHeaders, CardSeverity, check_card, check_served_card,
};
pub use error::{A2aErrorKind, ERROR_DOMAIN, ErrorInfo, FieldViolation};
pub use event::{
    SendMessageResponse, StreamResponse, TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
};
pub use from_wire::{FromWire, WireLimits};
pub use http_error::HttpError;
pub use ids::{ArtifactId, ContextId, MessageId, PushConfigId, TaskId};
pub use json_text::JsonText;
pub use jsonrpc::{
    METHOD_CANCEL_TASK, METHOD_CREATE_PUSH_CONFIG, METHOD_DELETE_PUSH_CONFIG,
    METHOD_GET_EXTENDED_CARD, METHOD_GET_PUSH_CONFIG, METHOD_GET_TASK, METHOD_LIST_PUSH_CONFIGS,
    METHOD_LIST_TASKS, METHOD_SEND_MESSAGE, METHOD_SEND_STREAMING_MESSAGE,
    METHOD_SUBSCRIBE_TO_TASK, RpcDecodeError, RpcError, RpcId, RpcOutcome, RpcRejection,
    RpcRequest, RpcResponse,
};
pub use message::Message;
pub use naming::{json_kind, nearest_name, raw_json_kind};
pub use part::{Part, PartContent};
pub use push::{
    AuthenticationInfo, Credential, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig,
};
pub use reducer::Applied;
pub use request::{
    CancelTaskRequest, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest,
    ListTasksResponse, SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
};
pub use route::{HttpVerb, Route, RouteError};
pub use security::{
    ApiKeySecurityScheme, AuthorizationCodeFlow, ClientCredentialsFlow, DeviceCodeFlow,
    HttpAuthSecurityScheme, ImplicitFlow, MutualTlsSecurityScheme, OAuth2SecurityScheme,
    OAuthFlows, OpenIdConnectSecurityScheme, PasswordFlow, ScopeList, SecurityRequirement,
    SecurityScheme,
};
pub use service::{
    AGENT_CARD_PATH, EXTENSIONS_HEADER, HOPS_METADATA, MEDIA_TYPE_A2A_JSON,
    MEDIA_TYPE_EVENT_STREAM, MEDIA_TYPE_JSON, NOTIFICATION_TOKEN_HEADER, ProtocolVersion,
    ProtocolVersionError, VERSION_HEADER, is_json_media_type, media_type_essence,
};
pub use sse::{SseDecoder, SseError, SseEvent, SseLimits, encode_sse_comment, encode_sse_event};
pub use state::{Role, TaskState};
pub use task::{Artifact, Task, TaskStatus};
pub use time::WireTimestamp;
