//! The store's watch family, and the view of reading commands.

use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::Connection;
use volcanic_a2a_types::MessageId;
use volcanic_a2a_watch::{
    SendRecord, SendState, WatchId, WatchRecord, WatchStore, WatchStoreError,
};

use crate::open::{StoreOpenError, check_for_reading};
use crate::readers::Readers;
use crate::sends;
use crate::store::Store;
use crate::watches;
use crate::writer::WriteScope;

#[async_trait]
impl WatchStore for Store {
    async fn begin_send(
        &self,
        send: &SendRecord,
        unattended_limit: u32,
    ) -> Result<bool, WatchStoreError> {
        let send = send.clone();
        let work = move |scope: &WriteScope<'_>| sends::begin(scope, &send, unattended_limit);
        self.writer().write(work).await.map_err(|error| error.into_watch("keep a send"))
    }

    async fn send_known(
        &self,
        message_id: &MessageId,
        watch: Option<&WatchRecord>,
    ) -> Result<Option<WatchRecord>, WatchStoreError> {
        let (message_id, watch) = (message_id.clone(), watch.cloned());
        let work = move |scope: &WriteScope<'_>| {
            sends::mark(scope, &message_id, SendState::Known, None)?;
            watch.map(|watch| watches::keep_for_send(scope, &message_id, watch)).transpose()
        };
        self.writer().write(work).await.map_err(|error| error.into_watch("mark a send as known"))
    }

    async fn note_unsent(
        &self,
        message_id: &MessageId,
        reason: &str,
    ) -> Result<(), WatchStoreError> {
        let (message_id, reason) = (message_id.clone(), reason.to_owned());
        let work = move |scope: &WriteScope<'_>| sends::note_unsent(scope, &message_id, &reason);
        let written = self.writer().write(work).await;
        written.map_err(|error| error.into_watch("note why a send did not leave"))
    }

    async fn note_sought(
        &self,
        message_id: &MessageId,
        since: Timestamp,
    ) -> Result<(), WatchStoreError> {
        let message_id = message_id.clone();
        let work = move |scope: &WriteScope<'_>| sends::note_sought(scope, &message_id, since);
        let written = self.writer().write(work).await;
        written.map_err(|error| error.into_watch("note since when a send is looked for"))
    }

    async fn note_answered(
        &self,
        message_id: &MessageId,
        answered: &str,
    ) -> Result<(), WatchStoreError> {
        let (message_id, answered) = (message_id.clone(), answered.to_owned());
        let work =
            move |scope: &WriteScope<'_>| sends::note_answered(scope, &message_id, &answered);
        let written = self.writer().write(work).await;
        written.map_err(|error| error.into_watch("note what a send answers"))
    }

    async fn end_send(&self, message_id: &MessageId, reason: &str) -> Result<(), WatchStoreError> {
        let (message_id, reason) = (message_id.clone(), reason.to_owned());
        let work = move |scope: &WriteScope<'_>| {
            sends::mark(scope, &message_id, SendState::Ended, Some(&reason))
        };
        self.writer().write(work).await.map_err(|error| error.into_watch("end a send"))
    }

    async fn add_watches(
        &self,
        given: &[WatchRecord],
    ) -> Result<Vec<WatchRecord>, WatchStoreError> {
        let given = given.to_vec();
        let work = move |scope: &WriteScope<'_>| {
            given.iter().map(|watch| watches::keep(scope, watch)).collect::<Result<Vec<_>, _>>()
        };
        self.writer().write(work).await.map_err(|error| error.into_watch("keep watches"))
    }

    async fn update(
        &self,
        expected_epoch: u64,
        watch: &WatchRecord,
    ) -> Result<bool, WatchStoreError> {
        let watch = watch.clone();
        let work = move |scope: &WriteScope<'_>| watches::update(scope, expected_epoch, &watch);
        self.writer().write(work).await.map_err(|error| error.into_watch("update a watch"))
    }

    async fn live(&self) -> Result<Vec<WatchRecord>, WatchStoreError> {
        self.readers()
            .read(watches::live)
            .await
            .map_err(|error| error.into_watch("read the watches"))
    }

    async fn open_sends(&self) -> Result<Vec<SendRecord>, WatchStoreError> {
        self.readers()
            .read(sends::open)
            .await
            .map_err(|error| error.into_watch("read the open sends"))
    }

    async fn watch(&self, id: &WatchId) -> Result<Option<WatchRecord>, WatchStoreError> {
        let id = id.clone();
        let work = move |connection: &Connection| watches::find(connection, &id);
        self.readers().read(work).await.map_err(|error| error.into_watch("read a watch"))
    }

    async fn knows_workspace(&self, workspace: &Path) -> Result<bool, WatchStoreError> {
        let workspace = workspace.to_owned();
        let work = move |connection: &Connection| watches::knows_workspace(connection, &workspace);
        self.readers().read(work).await.map_err(|error| error.into_watch("look a workspace up"))
    }
}

/// What a reading command sees of a store that another process may be writing.
#[derive(Debug, Clone)]
pub struct StoreReader {
    readers: Readers,
}

impl Store {
    /// Opens the database at `path` for reading only, beside the process that writes it. Blocks briefly.
    ///
    /// # Errors
    /// [`StoreOpenError`], which names the file; no database is created.
    pub fn open_read_only(path: &Path) -> Result<StoreReader, StoreOpenError> {
        check_for_reading(path)?;
        Ok(StoreReader { readers: Readers::new(path) })
    }
}

impl StoreReader {
    /// The watches that are not done, oldest first.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the read failed.
    pub async fn watches(&self) -> Result<Vec<WatchRecord>, WatchStoreError> {
        self.readers.read(watches::live).await.map_err(|error| error.into_watch("read the watches"))
    }

    /// The sends whose end nobody knows, oldest first.
    ///
    /// # Errors
    /// [`WatchStoreError`] when the read failed.
    pub async fn open_sends(&self) -> Result<Vec<SendRecord>, WatchStoreError> {
        self.readers
            .read(sends::open)
            .await
            .map_err(|error| error.into_watch("read the open sends"))
    }
}
