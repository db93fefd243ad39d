//! The registry's side of `agents`, `status` and `cancel`.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Registry;
use super::asking::{Ask, Asked, agents, ask};
use super::claiming::{Claim, WhoTells};
use super::handle::{AskCommand, Command};
use super::jobs::{JobEnd, Owner};
use crate::machine::AUTH_REQUIRED;
use crate::order::{AgentError, AgentsError, AgentsReport, TaskError, TaskQuery, TaskReport};
use crate::record::WatchId;

impl Registry {
    pub(super) fn begin_agents(
        &mut self,
        workspace: PathBuf,
        mut reply: oneshot::Sender<Result<AgentsReport, AgentsError>>,
    ) {
        let context = Arc::clone(&self.context);
        self.jobs.set.spawn(async move {
            tokio::select! {
                report = agents(&context, &workspace) => {
                    // A caller that is gone needs no answer.
                    let _ = reply.send(report);
                }
                () = reply.closed() => {}
                () = context.stop.cancelled() => {}
            }
            JobEnd::Done
        });
    }

    pub(super) fn begin_ask(&mut self, command: Box<AskCommand>) {
        let TaskQuery { target, agent, task_id, .. } = &command.query;
        let held = match self.claim(target, agent, task_id, WhoTells::Caller) {
            Claim::Nothing => None,
            Claim::Held(id) => Some(id),
            Claim::Taken if command.ask == Ask::Status => None,
            Claim::Taken => {
                let task_id = task_id.clone();
                let _ = command.reply.send(Err(TaskError::Busy { task_id }));
                return;
            }
            Claim::Wait(id) => return self.wait_for(&id, Command::Ask(command)),
        };
        let watched = self
            .watch_of(target, agent, task_id)
            .and_then(|id| self.watches.get(&id))
            .map(|followed| followed.watch.record().clone());
        let tokens = match &watched {
            Some(watched) => self.tokens_beside(watched),
            None => self.tokens_of(target, agent),
        };
        let context = Arc::clone(&self.context);
        let owner = held.clone();
        let job = self.jobs.set.spawn(async move {
            let asked = ask(&context, &command.query, command.ask, watched.as_ref(), &tokens).await;
            JobEnd::Asked { command, held, asked }
        });
        if let Some(owner) = owner {
            self.jobs.own(&job, Owner::Watch(owner));
        }
    }

    pub(super) fn on_asked(
        &mut self,
        command: AskCommand,
        held: Option<WatchId>,
        asked: Result<Asked, TaskError>,
    ) {
        let TaskQuery { target, agent, task_id, .. } = &command.query;
        let watched = self.watch_of(target, agent, task_id).is_some();
        let report = match asked {
            Ok(Asked { state, settled, outcome, refused }) => {
                if let Some(followed) = held.as_ref().and_then(|id| self.watches.get(id)) {
                    self.origins.answered(&followed.watch.record().origin);
                    self.begin_calls();
                }
                let goes_on = state.label == AUTH_REQUIRED;
                let settle = match &held {
                    Some(id) if settled => self.ticket(id, state),
                    Some(id) => {
                        self.release(id, false);
                        None
                    }
                    None => None,
                };
                let watched = watched && (settle.is_none() || goes_on);
                Ok(TaskReport { outcome: *outcome, settle, settled, watched, refused })
            }
            Err(error) => {
                self.put_off_by(held.as_ref(), &error);
                self.release_held(held);
                Err(match error {
                    TaskError::Agent { source, .. } => TaskError::Agent { source, watched },
                    TaskError::Busy { .. } | TaskError::Stopped => error,
                })
            }
        };
        // A caller that is gone drops its ticket, and the watch goes on.
        let _ = command.reply.send(report);
    }

    /// The agent of a held watch answered that it wants to be left alone for a while.
    fn put_off_by(&mut self, held: Option<&WatchId>, error: &TaskError) {
        let TaskError::Agent { source: AgentError::Client(error), .. } = error else { return };
        let followed = held.and_then(|id| self.watches.get(id));
        if let (Some(pause), Some(followed)) = (error.retry_after(), followed) {
            let (now, cap) = (self.now(), self.context.config.retry_after_cap);
            self.origins.put_off(&followed.watch.record().origin, pause, now, cap);
        }
    }
}
