//! The agent of a cell: the one that all cells of a column share, or one of the cell's own that it may kill.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use volcanic_testkit::Process;

use super::{FollowJob, Trouble};
use crate::interop::{
    InteropPlan,
    peer::{Peers, Port, start_peer},
};

/// The agent of a cell.
pub(super) enum Agent<'a> {
    Shared(SocketAddr),
    Own(Box<OwnAgent<'a>>),
}

/// An agent with a port and a database of its own.
pub(super) struct OwnAgent<'a> {
    plan: &'a InteropPlan,
    job: FollowJob,
    port: Port,
    folder: PathBuf,
    process: Process,
}

impl<'a> Agent<'a> {
    pub(super) async fn of(
        plan: &'a InteropPlan,
        peers: &Peers,
        job: FollowJob,
        folder: &Path,
    ) -> Result<Self> {
        if job.row.trouble != Trouble::Restarted {
            return Ok(Self::Shared(peers.address(job.column.sdk(), job.is_broken)?));
        }
        let port = Port::reserve()?;
        let process = start(plan, job, &port, folder).await?;
        Ok(Self::Own(Box::new(OwnAgent { plan, job, port, folder: folder.to_owned(), process })))
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Shared(address) => *address,
            Self::Own(own) => own.port.address(),
        }
    }

    /// Kills the agent and starts it again at the same place, with the tasks that it kept.
    pub(super) async fn restart(self) -> Result<Self> {
        let Self::Own(own) = self else { bail!("the agent is shared") };
        own.process.kill().await?;
        let process = start(own.plan, own.job, &own.port, &own.folder).await?;
        Ok(Self::Own(Box::new(OwnAgent { process, ..*own })))
    }

    /// Lets the tasks behind a gate come to their end.
    pub(super) async fn open_gate(&self, gate: &str) -> Result<()> {
        let address = self.address();
        let mut connection = TcpStream::connect(address).await.context("the agent is gone")?;
        let request = format!(
            "POST /gates/{gate} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        connection.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await?;
        ensure!(answer.starts_with("HTTP/1.1 204"), "the gate does not open: {answer}");
        Ok(())
    }
}

async fn start(plan: &InteropPlan, job: FollowJob, port: &Port, folder: &Path) -> Result<Process> {
    let store = folder.join("tasks.db");
    let errors = folder.join("agent.stderr");
    start_peer(plan, job.column.sdk(), job.is_broken, port, Some(&store), &errors).await
}
