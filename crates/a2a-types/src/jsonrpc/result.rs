//! The result of a response in one go.
//!
//! [`RpcResponse::decode`](crate::RpcResponse::decode) passes over the result and leaves it to be read afterwards, which is
//! to go through the longest part of a response twice. What is usual is read at once here; for anything else there is
//! nothing, and the long way tells what is wrong.

use super::{RpcId, VERSION};
use crate::wire::{
    Dialect, Reading, WireItem,
    quick::{self, Quick, Unusual},
};

/// Reads the result of the response to the request `id`, as an answer of A2A 1.0.
pub(crate) fn fill_result<'de, T: WireItem<'de>>(
    result: &mut Option<T>,
    json: &'de str,
    id: &RpcId,
) {
    if try_fill_result(result, json, id).is_err() {
        *result = None;
    }
}

fn try_fill_result<'de, T: WireItem<'de>>(
    result: &mut Option<T>,
    json: &'de str,
    id: &RpcId,
) -> quick::Result<()> {
    let reading = Reading::answer(json.len(), Dialect::V1);
    let mut quick = Quick::new(json);
    let (mut has_version, mut has_id) = (false, false);
    quick.open(b'{')?;
    loop {
        let key = quick.next_key()?;
        let is_right = match key {
            "" => break,
            "jsonrpc" if !has_version => {
                has_version = true;
                quick.plain_string()? == VERSION
            }
            "id" if !has_id => {
                has_id = true;
                match id {
                    RpcId::Number(number) => number.as_u64() == Some(quick.number()?),
                    RpcId::String(text) => quick.plain_string()? == text.as_str(),
                    RpcId::Null => false,
                }
            }
            "result" if result.is_none() => {
                T::fill_item(result, &mut quick, &reading)?;
                true
            }
            "jsonrpc" | "id" | "result" | "error" | "method" | "params" => false,
            _ => {
                quick.skip()?;
                true
            }
        };
        if !is_right {
            return Err(Unusual);
        }
    }
    if has_version && has_id { quick.end() } else { Err(Unusual) }
}
