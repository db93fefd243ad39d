//! Reading what comes from outside.

use serde::de::{Deserialize as _, DeserializeSeed, IgnoredAny};
use serde_json::Value;

use crate::{
    AgentCard, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    ListTasksRequest, ListTasksResponse, Message, RpcId, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskPushNotificationConfig,
    jsonrpc::result::fill_result,
    v03,
    wire::{Dialect, ItemSeed, Reading, WireItem, json::ValueSeed, quick::Quick},
};

/// What becomes of what a document holds beyond what is kept of it in memory.
///
/// A document of any size within the limits of a transport comes to its own size and a few mebibytes, however many parts,
/// messages, members or items it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireLimits {
    /// It is left out and counted in [`Omitted`](crate::Omitted): an agent's answer must not be lost for it. The text of
    /// parts and artifacts is kept: it goes to the end of the last one that is.
    Answer,
    /// It is an error that names the place: a caller can send less.
    Request,
}

/// An object that can be read out of a document from outside, within [`WireLimits`].
///
/// `Deserialize` has no limits: it is for what we have written ourselves.
pub trait FromWire: Sized {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// If it is not such an object; the error begins with the place.
    fn from_wire(json: &str, limits: WireLimits) -> serde_json::Result<Self>;

    /// Reads an answer in the dialect of A2A 0.3, under [`WireLimits::Answer`].
    ///
    /// # Errors
    ///
    /// If it is not such an object; the error begins with the place, by the names of 1.0.
    fn from_wire_v03(json: &str) -> serde_json::Result<Self> {
        Self::from_wire(json, WireLimits::Answer)
    }

    /// Puts the result of the JSON-RPC response to the request `id`, read under [`WireLimits::Answer`], into `result`, where
    /// nothing is so far: what is large is moved seldom that way. This is the short way for what is usual: if there is
    /// nothing afterwards, [`RpcResponse::decode`](crate::RpcResponse::decode) and what follows it tell whether there is a
    /// result after all, or what is wrong.
    fn fill_from_response(_result: &mut Option<Self>, _json: &str, _id: &RpcId) {}
}

fn reading(json: &str, limits: WireLimits) -> Reading {
    match limits {
        WireLimits::Answer => Reading::answer(json.len(), Dialect::V1),
        WireLimits::Request => Reading::request(json.len()),
    }
}

fn read_all<'de, S: DeserializeSeed<'de>>(json: &'de str, seed: S) -> serde_json::Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Reads an answer the quick way; `None` if it is unusual, or wrong.
fn read_quickly<'de, T: WireItem<'de>>(json: &'de str) -> Option<T> {
    let mut quick = Quick::new(json);
    let mut answer = None;
    T::fill_item(&mut answer, &mut quick, &Reading::answer(json.len(), Dialect::V1)).ok()?;
    quick.end().ok()?;
    answer
}

/// Reads an object by `reading`.
pub(crate) fn read<'de, T: WireItem<'de>>(
    json: &'de str,
    reading: &Reading,
) -> serde_json::Result<T> {
    read_all(json, ItemSeed::new(reading))
}

/// Reads a string; in an answer a long one is cut.
pub(crate) fn read_text(json: &str, limits: WireLimits) -> serde_json::Result<String> {
    read(json, &reading(json, limits))
}

/// Reads an answer as a tree, for what is rewritten before it is understood; one that is too large for that is an error.
pub(crate) fn read_tree(json: &str) -> serde_json::Result<Value> {
    Value::from_wire(json, WireLimits::Answer)
}

macro_rules! from_wire {
    ($($name:ident $($quickly:ident)? $(: $old:path)?,)*) => {$(
        impl FromWire for $name {
            fn from_wire(json: &str, limits: WireLimits) -> serde_json::Result<Self> {
                $(
                    if limits == WireLimits::Answer
                        && let Some(answer) = $quickly(json)
                    {
                        return Ok(answer);
                    }
                )?
                read(json, &reading(json, limits))
            }

            fn fill_from_response(result: &mut Option<Self>, json: &str, id: &RpcId) {
                fill_result(result, json, id);
            }

            $(
                fn from_wire_v03(json: &str) -> serde_json::Result<Self> {
                    $old(json)
                }
            )?
        }
    )*};
}

from_wire! {
    AgentCard: v03::read_card,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse: v03::read_push_configs,
    ListTasksRequest,
    ListTasksResponse,
    Message read_quickly: v03::read_object,
    SendMessageRequest,
    SendMessageResponse read_quickly: v03::read_send_response,
    StreamResponse read_quickly: v03::read_stream_response,
    SubscribeToTaskRequest,
    Task read_quickly: v03::read_object,
    TaskPushNotificationConfig: v03::read_push_config,
}

/// Any document, of which nothing is kept.
impl FromWire for () {
    fn from_wire(json: &str, _: WireLimits) -> serde_json::Result<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        IgnoredAny::deserialize(&mut deserializer)?;
        deserializer.end()
    }
}

/// Any document as a tree. There is no part of it that could be left out, so it is an error if it is too large.
impl FromWire for Value {
    fn from_wire(json: &str, limits: WireLimits) -> serde_json::Result<Self> {
        let reading = reading(json, limits);
        let value = read_all(json, ValueSeed(&reading))?;
        value.ok_or_else(|| serde::de::Error::custom("it holds more values than are read"))
    }
}
