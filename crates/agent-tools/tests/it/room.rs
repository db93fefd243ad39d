//! A workspace with its tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use volcanic_agent_core::{Origin, PromptKey, TargetId, Tool, ToolContext};
use volcanic_agent_tools::{FileSender, OutgoingFile, ToolConfig, owner_tools};
use volcanic_base::ConfinedDir;

/// What a call gave: the text and whether it is an error.
pub(crate) type Said = (String, bool);

/// A workspace, a folder beside it, and the tools.
#[derive(Debug)]
pub(crate) struct Room {
    directory: TempDir,
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) sender: Arc<Desk>,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut ToolConfig)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("workspace")).unwrap();
        let env = vec![
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("GREETING".into(), "hello".into()),
        ];
        let mut config = ToolConfig::new(directory.path().join("output"), env);
        change(&mut config);
        let workspace = ConfinedDir::open(directory.path().join("workspace")).unwrap();
        let sender = Arc::new(Desk::default());
        let tools = owner_tools(workspace, config, Arc::clone(&sender) as Arc<dyn FileSender>);
        Self { directory, tools, sender }
    }

    pub(crate) fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join("workspace").join(path)
    }

    /// A path beside the workspace.
    pub(crate) fn outside(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Calls a tool. Nothing here may take long, so a call that hangs fails.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Said {
        self.call_with(tool, arguments, CancellationToken::new()).await
    }

    pub(crate) async fn call_with(
        &self,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
    ) -> Said {
        let tool = self.tools.iter().find(|found| found.spec().name == tool).unwrap();
        let context = ToolContext {
            target: TargetId::new("chat-1"),
            call_id: "call-1".to_owned(),
            hops: 0,
            origin: Origin::Owner,
            source: None,
            owner_word: PromptKey::new("begun:1"),
            cancel,
        };
        let output = tokio::time::timeout(Duration::from_secs(30), tool.call(arguments, context))
            .await
            .unwrap();
        (output.text, output.is_error)
    }
}

/// Takes files for the owner.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) refuses: Mutex<Option<String>>,
    pub(crate) received: Mutex<Vec<Received>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) target: String,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) content: String,
    pub(crate) size: u64,
    pub(crate) caption: Option<String>,
}

#[async_trait]
impl FileSender for Desk {
    async fn send_file(
        &self,
        target: &TargetId,
        file: OutgoingFile,
        caption: Option<&str>,
    ) -> Result<(), String> {
        if let Some(reason) = self.refuses.lock().unwrap().clone() {
            return Err(reason);
        }
        self.received.lock().unwrap().push(Received {
            target: target.to_string(),
            name: file.name,
            path: file.path,
            content: std::io::read_to_string(file.file).unwrap(),
            size: file.size,
            caption: caption.map(str::to_owned),
        });
        Ok(())
    }
}

/// Waits until `done`, looking again and again; fails after a while.
pub(crate) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let looking = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), looking)
        .await
        .unwrap_or_else(|_| panic!("never came true: {what}"));
}

/// Makes a FIFO.
pub(crate) fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}
