//! Carries out one run after the other, each step as the log decides.

use std::{collections::HashSet, fmt::Write as _, sync::Arc};

use volcanic_base::{Chance, with_causes};

use super::{
    Shared,
    activity::{RunStatus, SessionActivity, SessionEvent},
    batch::{self, Batch, CallResult},
    commit::Draft,
    ending::results,
    log::{self, ConversationLog, RunPrompt, RunStep},
    notice, replay,
    reply::{self, Reply, ReplyEnd},
    stop::{RunStop, StopCause},
};
use crate::{
    content::{Block, ToolCall},
    header::with_header,
    model::ModelRequest,
    store::{EntryBody, NewEntry, StoreError},
    tool::ToolContext,
};

/// Does the work of a session, one run at a time.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) shared: Arc<Shared>,
    pub(super) log: ConversationLog,
    /// Whether `log` shows what the store has.
    fresh: bool,
}

/// How a look for work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// There was nothing to do.
    Nothing,
    /// A run came to its end.
    Finished,
    /// The owner stopped it.
    Aborted {
        /// Whether that ended a run; else it came before one had begun.
        ended_run: bool,
        /// How many prompts wait; unknown if the store did not say.
        waiting: Option<usize>,
    },
    /// The process ends; the run goes on in the next one.
    Suspended,
    /// The store failed; what it has decides how to go on.
    StoreFailed {
        /// Whether that was in the middle of a run.
        in_run: bool,
    },
}

impl Runner {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, log: ConversationLog::default(), fresh: false }
    }

    /// Takes up the interrupted run, or else the oldest waiting prompt, and brings it to an end.
    pub(super) async fn run_next(&mut self, stop: &RunStop) -> RunEnd {
        let end = self.find_and_run(stop).await.unwrap_or_else(|error| {
            self.fresh = false;
            tracing::error!(error = %with_causes(&error), "store failed; run stopped");
            self.shared
                .publish(SessionEvent::RunFailed { reason: notice::STORE_FAILED.to_owned() });
            RunEnd::StoreFailed { in_run: self.log.open_run().is_some() }
        });
        self.shared.gauge.send_modify(|gauge| gauge.running = None);
        end
    }

    /// Begins the conversation anew.
    pub(super) async fn reset(&mut self) -> Result<(), StoreError> {
        let end = self.end_and_reset().await;
        self.fresh &= end.is_ok();
        end
    }

    async fn end_and_reset(&mut self) -> Result<(), StoreError> {
        self.refresh().await?;
        // A run that a crash or the store interrupted ends as a stopped one: what a delivery brought is still shown.
        if let Some(run) = self.log.open_run() {
            self.stopped(&run, StopCause::Aborted, Vec::new()).await?;
        }
        let entries = vec![NewEntry::plain(EntryBody::Reset)];
        self.commit(Draft { entries, ..Draft::default() }).await
    }

    /// Reads the conversation, unless the log shows it already.
    async fn refresh(&mut self) -> Result<(), StoreError> {
        if !self.fresh {
            let target = &self.shared.target;
            let entries = self.patiently(|| self.shared.deps.store.entries(target)).await?;
            self.log = ConversationLog::new(entries);
            self.fresh = true;
        }
        Ok(())
    }

    async fn find_and_run(&mut self, stop: &RunStop) -> Result<RunEnd, StoreError> {
        self.refresh().await?;
        if let Some(run) = self.log.open_run() {
            self.begin(&run);
            return if self.resume(&run).await? {
                self.drive(&run, stop).await
            } else {
                Ok(RunEnd::Finished)
            };
        }
        match stop.cause() {
            // Stopped before it took a prompt, so there is nothing to end.
            Some(StopCause::Aborted) => {
                return Ok(RunEnd::Aborted { ended_run: false, waiting: self.waiting().await });
            }
            Some(StopCause::Shutdown) => return Ok(RunEnd::Suspended),
            None => {}
        }
        if !self.take_prompt().await? {
            return Ok(RunEnd::Nothing);
        }
        let Some(run) = self.log.open_run() else { return Ok(RunEnd::Nothing) };
        self.begin(&run);
        self.drive(&run, stop).await
    }

    /// Consumes the oldest waiting prompt into the conversation.
    async fn take_prompt(&mut self) -> Result<bool, StoreError> {
        let target = &self.shared.target;
        let waiting = self.patiently(|| self.shared.deps.store.waiting(target)).await?;
        let Some(prompt) = waiting.into_iter().next() else { return Ok(false) };
        let zone = &self.shared.config.time_zone;
        let user = EntryBody::User {
            text: with_header(prompt.accepted_at, zone, &prompt.prompt.text),
            origin: prompt.prompt.origin,
            key: prompt.prompt.key,
            hops: prompt.prompt.hops,
            source: prompt.prompt.source,
        };
        let (consume, entries) = (vec![prompt.id], vec![NewEntry::plain(user)]);
        self.commit(Draft { consume, entries, outbox: Vec::new() }).await?;
        Ok(true)
    }

    fn begin(&self, run: &RunPrompt) {
        let status = RunStatus {
            key: run.key.clone(),
            origin: run.origin,
            started_at: self.shared.deps.clock.now(),
            activity: SessionActivity::Model,
        };
        tracing::info!(turn.id = %run.key, "run started");
        self.shared.gauge.send_modify(|gauge| gauge.running = Some(status));
        let (key, origin) = (run.key.clone(), run.origin);
        self.shared.publish(SessionEvent::RunStarted { key, origin });
    }

    /// Closes what a crash left open, so that the run can go on. Says `false` if it gave the run up instead.
    async fn resume(&mut self, run: &RunPrompt) -> Result<bool, StoreError> {
        let resumes = self.log.resumes();
        if resumes >= self.shared.config.resume_limit {
            let reason = format!("it was interrupted {} times by a restart", resumes + 1);
            self.give_up(run, Vec::new(), reason).await?;
            return Ok(false);
        }
        let calls = self.log.missing_calls();
        let mut entries = results(&calls, notice::INTERRUPTED);
        entries.push(NewEntry::plain(EntryBody::Resumed));
        self.commit(Draft { entries, ..Draft::default() }).await?;
        tracing::info!(turn.id = %run.key, attempt = resumes + 1, "run resumed");
        Ok(true)
    }

    /// Takes step after step until the run is over.
    async fn drive(&mut self, run: &RunPrompt, stop: &RunStop) -> Result<RunEnd, StoreError> {
        loop {
            if let Some(cause) = stop.cause() {
                return self.stopped(run, cause, Vec::new()).await;
            }
            match self.log.next_step(self.shared.config.max_turns) {
                RunStep::Over => return Ok(RunEnd::Finished),
                RunStep::Refuse(calls) => {
                    let entries = results(&calls, notice::NOT_RUN);
                    self.commit(Draft { entries, ..Draft::default() }).await?;
                }
                RunStep::Call(calls) => self.call(run, &calls, stop).await?,
                RunStep::Ask { wrap_up } => {
                    self.activity(SessionActivity::Model);
                    match self.ask(wrap_up, stop).await {
                        ReplyEnd::Complete(reply) => self.take_reply(run, reply, wrap_up).await?,
                        ReplyEnd::Failed { error, blocks } => {
                            self.failed(run, &error, blocks, stop).await?;
                        }
                        ReplyEnd::Stopped { blocks } => {
                            let cause = stop.cause().unwrap_or(StopCause::Shutdown);
                            return self.stopped(run, cause, blocks).await;
                        }
                    }
                }
            }
        }
    }

    async fn ask(&self, wrap_up: bool, stop: &RunStop) -> ReplyEnd {
        let (config, deps) = (&self.shared.config, &self.shared.deps);
        let offers_tools = !wrap_up && deps.model.capabilities().tools;
        let mut system = config.system_prompt.clone();
        if wrap_up {
            let gap = if system.is_empty() { "" } else { "\n\n" };
            let _ = write!(system, "{gap}{}", notice::WRAP_UP);
        }
        let request = ModelRequest {
            system,
            messages: replay::messages(self.log.entries()),
            tools: if offers_tools {
                deps.tools.iter().map(|tool| tool.spec()).collect()
            } else {
                Vec::new()
            },
        };
        reply::follow(&*deps.model, request, &config.limits, stop, |text| {
            self.shared.publish(SessionEvent::TextDelta { text: text.to_owned() });
        })
        .await
    }

    /// Records a whole reply; one without calls is the answer.
    async fn take_reply(
        &mut self,
        run: &RunPrompt,
        reply: Reply,
        wrap_up: bool,
    ) -> Result<(), StoreError> {
        let Reply { mut blocks, stop, usage } = reply;
        if wrap_up {
            // Nothing was on offer, so a call here is made up.
            blocks.retain(|block| !matches!(block, Block::ToolCall(_)));
        }
        give_ids(&mut blocks, &self.shared.deps.chance);
        let text = log::text_of(&blocks);
        let is_answer = log::calls(&blocks).next().is_none();
        let model = self.shared.deps.model.id().to_owned();
        let entries = vec![NewEntry::plain(EntryBody::Assistant { blocks, stop, model, usage })];
        if !is_answer {
            return self.commit(Draft { entries, ..Draft::default() }).await;
        }
        let (kind, text) = notice::reply_text(run, &self.log.outcomes(), &text, stop);
        let outbox = self.outbox(run, kind, &text);
        self.commit(Draft { entries, outbox, ..Draft::default() }).await?;
        tracing::info!(turn.id = %run.key, "run answered");
        self.shared.publish(SessionEvent::Answered { key: run.key.clone(), text });
        Ok(())
    }

    /// Runs the calls and records their results.
    async fn call(
        &mut self,
        run: &RunPrompt,
        calls: &[ToolCall],
        stop: &RunStop,
    ) -> Result<(), StoreError> {
        let names = calls.iter().map(|call| call.name.clone()).collect();
        self.activity(SessionActivity::Tools { names });
        let shared = Arc::clone(&self.shared);
        let batch = Batch {
            tools: &shared.deps.tools,
            limits: &shared.config.limits,
            stop,
            context: ToolContext {
                target: shared.target.clone(),
                call_id: String::new(),
                hops: run.hops,
                origin: run.origin,
                source: run.source.clone(),
                owner_word: self.log.latest_of_owner(),
                cancel: stop.token().clone(),
            },
        };
        let results: Vec<CallResult> = batch
            .run(calls, |call| {
                let (name, summary) = (call.name.clone(), batch::summary(call));
                shared.publish(SessionEvent::ToolStarted { name, summary });
            })
            .await;
        self.commit_results(results, Draft::default()).await
    }

    pub(super) fn activity(&self, activity: SessionActivity) {
        self.shared.gauge.send_modify(|gauge| {
            if let Some(running) = &mut gauge.running {
                running.activity = activity;
            }
        });
    }
}

/// Gives each call an id of its own: some servers leave it out or repeat it, and results are told apart by it.
fn give_ids(blocks: &mut [Block], chance: &Chance) {
    let mut seen = HashSet::new();
    for block in blocks {
        if let Block::ToolCall(call) = block
            && (call.id.is_empty() || !seen.insert(call.id.clone()))
        {
            call.id = format!("call_{}", chance.uuid().simple());
            seen.insert(call.id.clone());
        }
    }
}
