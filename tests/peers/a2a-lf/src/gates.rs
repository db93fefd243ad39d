//! Gates that tasks wait at until somebody opens them: `POST /gates/GATE`.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
};

use axum::{extract::Path, http::StatusCode};
use tokio::sync::watch;

static GATES: LazyLock<Mutex<HashMap<String, watch::Sender<bool>>>> = LazyLock::new(Mutex::default);

fn gate(name: &str) -> watch::Sender<bool> {
    let mut gates = GATES.lock().unwrap_or_else(PoisonError::into_inner);
    gates.entry(name.to_owned()).or_default().clone()
}

/// Waits until the gate is open.
pub async fn passed(name: &str) {
    let gate = gate(name);
    // The gate is kept for ever, so this ends when it is open.
    let _ = gate.subscribe().wait_for(|is_open| *is_open).await;
}

/// Opens a gate for good.
pub async fn open(Path(name): Path<String>) -> StatusCode {
    gate(&name).send_replace(true);
    StatusCode::NO_CONTENT
}
