//! Listing tasks, page by page: newest status first, a page begins where the last one ended.

use std::{cmp::Reverse, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use volcanic_a2a_types::{ListTasksRequest, ListTasksResponse, TaskState};

use super::{Core, Operations, history_length};
use crate::{caller::Caller, error::OperationError, store::TaskSummary};

/// How many tasks a page has unless the request says otherwise, and at most.
const DEFAULT_PAGE: i32 = 50;
const MAX_PAGE: i32 = 100;

/// The place of a task in the list. Whatever is deleted, the next page begins after it.
type Position = (i64, String);

impl Operations {
    /// Lists the caller's tasks, newest status first.
    ///
    /// # Errors
    ///
    /// [`OperationError::InvalidParams`].
    pub async fn list(
        &self,
        caller: &Caller,
        request: ListTasksRequest,
    ) -> Result<ListTasksResponse, OperationError> {
        let caller = caller.clone();
        self.run(async move |core| core.list(&caller, &request).await).await
    }
}

impl Core {
    async fn list(
        self: &Arc<Self>,
        caller: &Caller,
        request: &ListTasksRequest,
    ) -> Result<ListTasksResponse, OperationError> {
        let page_size = page_size(request.page_size)?;
        let after = request.page_token.as_deref().map(parse_token).transpose()?;
        let history = history_length(request.history_length)?;
        if let Some(TaskState::Unknown(name)) = &request.status {
            let problem = format!("there is no state {name:?}");
            return Err(OperationError::invalid("status", problem));
        }
        self.settle_orphans(caller).await?;
        let mut found = self.tasks.store().summaries().await?;
        found.retain(|summary| summary.caller == caller.name && matches(request, summary));
        found.sort_by_cached_key(|summary| Reverse(position(summary)));
        let total = found.len();
        if let Some(after) = after {
            found.retain(|summary| position(summary) < after);
        }
        let more = found.len() > page_size;
        found.truncate(page_size);
        let next_token = found.last().filter(|_| more).map(|last| token(&position(last)));
        let mut tasks = Vec::with_capacity(found.len());
        for summary in found {
            match self.read(caller, &summary.id, history).await {
                Ok(mut task) => {
                    if !request.include_artifacts.unwrap_or(false) {
                        task.artifacts.clear();
                    }
                    tasks.push(task);
                }
                // Removed since the list was made.
                Err(OperationError::TaskNotFound) => {}
                Err(error) => return Err(error),
            }
        }
        let mut response = ListTasksResponse::default();
        response.tasks = tasks;
        response.next_page_token = next_token.unwrap_or_default();
        response.page_size = i32::try_from(page_size).unwrap_or(MAX_PAGE);
        response.total_size = i32::try_from(total).unwrap_or(i32::MAX);
        Ok(response)
    }

    /// Looks at every task that is said to run, so that those cut off by a restart are listed as failed.
    async fn settle_orphans(&self, caller: &Caller) -> Result<(), OperationError> {
        for summary in self.tasks.store().summaries().await? {
            let runs = matches!(summary.state, TaskState::Submitted | TaskState::Working);
            if runs && summary.caller == caller.name {
                drop(self.tasks.cell(&summary.id).lock(&self.tasks).await?);
            }
        }
        Ok(())
    }
}

fn matches(request: &ListTasksRequest, summary: &TaskSummary) -> bool {
    let context = request.context_id.as_ref();
    let state = request.status.as_ref().filter(|state| **state != TaskState::Unspecified);
    let since = request.status_timestamp_after.map(|at| at.get().as_millisecond());
    context.is_none_or(|context| summary.context_id.as_ref() == Some(context))
        && state.is_none_or(|state| summary.state == *state)
        && since.is_none_or(|since| summary.status_at >= since)
}

fn position(summary: &TaskSummary) -> Position {
    (summary.status_at, summary.id.as_str().to_owned())
}

fn page_size(asked: Option<i32>) -> Result<usize, OperationError> {
    let asked = asked.unwrap_or(DEFAULT_PAGE);
    let size = usize::try_from(asked).ok().filter(|_| (1..=MAX_PAGE).contains(&asked));
    size.ok_or_else(|| OperationError::invalid("pageSize", "must be from 1 to 100"))
}

fn token((at, id): &Position) -> String {
    URL_SAFE_NO_PAD.encode(format!("{at} {id}"))
}

fn parse_token(token: &str) -> Result<Position, OperationError> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.as_deref()
        .and_then(|text| text.split_once(' '))
        .and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())))
        .ok_or_else(|| OperationError::invalid("pageToken", "is not a token of this server"))
}
