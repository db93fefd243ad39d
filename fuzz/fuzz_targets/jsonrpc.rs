//! Any body as a request and as a response: no panic, and what is read is written and read again alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use volcanic_a2a_types::{
    FromWire, RpcOutcome, RpcRequest, RpcResponse, SendMessageRequest, SendMessageResponse,
    WireLimits, v03,
};

fuzz_target!(|body: &[u8]| {
    if let Ok(request) = RpcRequest::decode(body) {
        let _ = request.params::<SendMessageRequest>();
        // A number out of range or a depth beyond the limit is found only here.
        let Ok(params) = request.params::<Value>() else { return };
        let written = RpcRequest::encode(&request.id, &request.method, &params).unwrap();
        let again = RpcRequest::decode(&written).expect("what is written can be read");
        assert_eq!((&again.id, &again.method), (&request.id, &request.method));
        if let Some(method) = v03::method_from_name(&request.method)
            && let Ok(read) = v03::read_params::<SendMessageRequest>(method, params)
        {
            v03::write_params(method, &read).unwrap();
        }
    }
    if let Ok(response) = RpcResponse::decode(body) {
        let id = response.id.clone();
        match response.outcome {
            RpcOutcome::Error(error) => {
                let written =
                    RpcResponse::encode_error(&id, &v03::write_error(error.clone())).unwrap();
                RpcResponse::decode(&written).expect("what is written can be read");
                let _ = (error.kind(), v03::read_error("SubscribeToTask", error));
            }
            RpcOutcome::Result(result) => {
                // Of the two ways to a result the short one must not find what the long one does not. It is for text
                // alone; the long one passes over bytes that are none where it reads nothing.
                let mut short = None;
                if let Ok(text) = std::str::from_utf8(body) {
                    SendMessageResponse::fill_from_response(&mut short, text, &id);
                }
                if short.is_some() {
                    let long = SendMessageResponse::from_wire(result.get(), WireLimits::Answer);
                    assert_eq!(long.ok(), short);
                }
                let _ = serde_json::from_str::<SendMessageResponse>(result.get());
                let _ = SendMessageResponse::from_wire(result.get(), WireLimits::Answer);
                let _ = v03::read_event(result.get());
            }
        }
    }
});
