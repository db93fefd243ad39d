//! Any body as a task, an event and an error: no panic, and what is read is written and read again alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::{Serialize, de::DeserializeOwned};
use volcanic_a2a_types::{
    FromWire, HttpError, ListTasksRequest, Route, StreamResponse, Task, WireLimits, v03,
};

fn twice<T: Serialize + DeserializeOwned + FromWire + PartialEq + std::fmt::Debug>(
    body: &[u8],
) -> Option<T> {
    let read: T = serde_json::from_slice(body).ok()?;
    // Nothing of so small a document is left out.
    if let Ok(text) = std::str::from_utf8(body) {
        assert_eq!(T::from_wire(text, WireLimits::Answer).as_ref().ok(), Some(&read));
    }
    let written = serde_json::to_string(&read).unwrap();
    let again: T = serde_json::from_str(&written).expect("what is written can be read");
    assert_eq!(serde_json::to_string(&again).unwrap(), written);
    Some(read)
}

fuzz_target!(|body: &[u8]| {
    if let Some(task) = twice::<Task>(body) {
        let mut copy = task.clone();
        copy.apply_snapshot(&task);
        let old = v03::write_result("GetTask", &task).unwrap();
        let _ = v03::read_result::<Task>(&old.to_string());
    }
    if let Some(event) = twice::<StreamResponse>(body) {
        let old = v03::write_event(&event, true).unwrap();
        let _ = v03::read_event(&old.to_string());
    }
    if let Some(error) = HttpError::decode(400, body) {
        let _ = (error.kind(), error.encode().unwrap());
    }
    if let Ok(text) = std::str::from_utf8(body) {
        let _ = ListTasksRequest::from_query(text);
        if let Ok((tenant, route)) = Route::parse("GET", text) {
            let path = route.path(tenant.as_deref());
            let verb = route.verb().as_str();
            assert_eq!(Route::parse(verb, &path), Ok((tenant, route)), "{path}");
        }
    }
});
