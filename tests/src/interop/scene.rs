//! One cell at play: a player, an agent, and the record between them.

use std::{collections::BTreeMap, fs, net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use volcanic_base::Chance;
use volcanic_testkit::RecordingProxy;

use super::{
    InteropPlan,
    actor::{Actor, Player, Shown},
    peer::{Column, KEY},
    wire::{self, Call, Operation, WireBinding, WireTask},
};

/// One cell at play.
pub(super) struct Scene {
    pub(super) column: Column,
    pub(super) actor: Actor,
    pub(super) proxy: RecordingProxy,
    /// A word that nobody has seen before.
    pub(super) word: String,
    /// The first segment of the agent's path: which kind of card it has.
    kind: &'static str,
    folder: TempDir,
}

/// A message as it went over the wire, and the task that its answer named.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) task: WireTask,
}

/// A word that nobody has seen before.
pub(super) fn word() -> String {
    format!("w{}", &Chance::from_os().uuid().simple().to_string()[..8])
}

impl Scene {
    /// Sets a cell up against the agent at `peer`.
    pub(super) async fn set(
        plan: &InteropPlan,
        column: Column,
        player: Player,
        kind: &'static str,
        wait: Duration,
        peer: SocketAddr,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let proxy = RecordingProxy::start(peer).await?;
        let actor = Actor::new(player, &plan.volcanic, folder.path(), wait);
        let scene = Self { column, actor, proxy, word: word(), kind, folder };
        scene.list_agents()?;
        Ok(scene)
    }

    /// Writes agents.json: the peer, and `stranger`, which is the peer with a key that is wrong.
    fn list_agents(&self) -> Result<()> {
        let settings = self.actor.workspace().join(".volcanic/a2a");
        fs::create_dir_all(&settings)?;
        let mut agents = vec![self.entry("peer")];
        if self.kind == "keyed" {
            agents[0]["key"] = KEY.into();
            let mut stranger = self.entry("stranger");
            stranger["key"] = self.wrong_key().into();
            agents.push(stranger);
        }
        fs::write(settings.join("agents.json"), Value::from(agents).to_string())?;
        Ok(())
    }

    /// The peer's entry in an agents.json.
    pub(super) fn entry(&self, name: &str) -> Value {
        let url = format!("http://{}/{}", self.proxy.address(), self.kind);
        let mut entry = json!({ "name": name, "url": url });
        if let Some(binding) = self.column.wanted_binding() {
            entry["binding"] = binding.into();
        }
        entry
    }

    /// A key that no agent wants.
    pub(super) fn wrong_key(&self) -> String {
        format!("interop-wrong-key-{}", self.word)
    }

    /// Where the cell's files lie.
    pub(super) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Everything that passed between the two.
    pub(super) fn calls(&self) -> Vec<Call> {
        wire::calls(&self.proxy.exchanges())
    }

    /// The calls of one operation.
    pub(super) fn calls_of(&self, operation: &Operation) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.operation == *operation).collect()
    }

    /// Exactly one call of an operation.
    pub(super) fn call_of(&self, operation: &Operation) -> Result<Call> {
        let mut calls = self.calls_of(operation);
        ensure!(calls.len() == 1, "{operation:?} was called {} times instead of once", calls.len());
        calls.pop().context("no call")
    }

    /// How often tasks were read so far.
    pub(super) fn reads(&self) -> usize {
        self.calls_of(&Operation::GetTask).len()
    }

    /// What every exchange must show: the message once and as it should be, every call over the column's binding and in
    /// its version, and a task in the answer.
    pub(super) fn sent(&self, words: &str) -> Result<Sent> {
        let call = self.sent_over(&Operation::SendMessage, words)?;
        let immediately = match self.column {
            Column::Python03Rpc => call.params["configuration"]["blocking"] == json!(false),
            _ => call.params["configuration"]["returnImmediately"] == json!(true),
        };
        ensure!(immediately, "the send did not ask to return immediately");
        let task = call.task().context("the answer to the send holds no task")?;
        ensure!(!task.context.is_empty(), "the answer to the send names no context");
        Ok(Sent { task })
    }

    /// The one call of `operation` that carries the words, after every call was looked at.
    pub(super) fn sent_over(&self, operation: &Operation, words: &str) -> Result<Call> {
        self.check_calls()?;
        let says = |call: &Call| {
            let parts = call.params["message"]["parts"].as_array();
            parts.into_iter().flatten().any(|part| part["text"] == words)
        };
        let sends = [Operation::SendMessage, Operation::SendStreamingMessage];
        let mut calls = self.calls();
        calls.retain(|call| sends.contains(&call.operation) && says(call));
        ensure!(calls.len() == 1, "\"{words}\" was sent {} times", calls.len());
        let call = calls.pop().context("no call")?;
        ensure!(call.operation == *operation, "it was sent by {:?}", call.operation);
        let message = &call.params["message"];
        ensure!(message["messageId"].as_str().is_some_and(|id| id.len() >= 16), "no message id");
        // The metadata of the request and of the message count alike.
        let hops = [&call.params["metadata"], &message["metadata"]];
        ensure!(hops.iter().any(|at| at["volcanic.hops"] == 1), "the send carried no hops");
        Ok(call)
    }

    /// Looks at every call: binding, path, version and media type.
    pub(super) fn check_calls(&self) -> Result<()> {
        for call in self.calls() {
            let Some(binding) = call.binding else { continue };
            let (path, media) = match binding {
                WireBinding::JsonRpc => (format!("/{}/rpc", self.kind), "application/json"),
                WireBinding::HttpJson => (format!("/{}/rest/", self.kind), "application/a2a+json"),
            };
            let target = call.target();
            ensure!(binding == self.column.binding(), "{target} is of the wrong binding");
            ensure!(target.contains(&path), "{target} does not lead to {path}");
            ensure!(
                !matches!(call.operation, Operation::Unknown(_)),
                "nobody knows {:?}",
                call.operation
            );
            ensure!(
                call.header("a2a-version") == Some(self.column.version()),
                "{target} carried the version {:?}",
                call.header("a2a-version")
            );
            let has_body = call.header("content-length").is_some_and(|length| length != "0");
            if has_body {
                ensure!(
                    call.header("content-type") == Some(media),
                    "{target} carried the content type {:?}",
                    call.header("content-type")
                );
            }
        }
        Ok(())
    }
}

impl Sent {
    /// Checks that what was shown is the task of the record.
    pub(super) fn is(&self, shown: &Shown) -> Result<()> {
        let WireTask { id, context, .. } = &self.task;
        ensure!(*id == shown.task, "task {} was shown, the agent said {id}", shown.task);
        ensure!(*context == shown.context, "context {} was shown, not {context}", shown.context);
        Ok(())
    }
}

/// Files below a folder, by their path in it.
pub(super) fn files(folder: &std::path::Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    if folder.exists() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(files)
}
