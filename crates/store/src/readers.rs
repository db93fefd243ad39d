//! Reading connections, used on the blocking pool and kept for the next reader.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rusqlite::Connection;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::error::DbError;
use crate::open::connect_reader;

/// Reads at a time. They are short and served from memory, so a few are enough to keep a slow one from holding up all.
const READERS: u32 = 4;

/// A few reading connections. A reader sees everything that was committed before it began.
#[derive(Debug, Clone)]
pub(crate) struct Readers {
    path: Arc<Path>,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Shared by the reads under way.
    under_way: Arc<RwLock<()>>,
}

impl Readers {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: Arc::from(path),
            places: Arc::new(Semaphore::new(READERS as usize)),
            idle: Arc::default(),
            under_way: Arc::default(),
        }
    }

    /// Runs `work` on a reading connection; one that failed is not used again.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T, DbError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, DbError> + Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| DbError::Closed)?;
        let readers = self.clone();
        let reading = spawn_blocking(move || {
            let _under_way = readers.under_way.read().unwrap_or_else(PoisonError::into_inner);
            let connection = match readers.take_idle() {
                Some(connection) => connection,
                None => connect_reader(&readers.path)?,
            };
            let value = work(&connection)?;
            readers.keep(connection);
            drop(place);
            Ok(value)
        });
        reading.await.map_err(|_| DbError::Dropped)?
    }

    /// Waits for the reads under way and closes the connections.
    pub(crate) async fn close(&self) {
        if let Ok(_all) = self.places.acquire_many(READERS).await {
            self.places.close();
        }
        let readers = self.clone();
        let closing = spawn_blocking(move || readers.close_idle());
        if closing.await.is_err() {
            tracing::error!("store readers not closed");
        }
    }

    /// Waits for the reads under way, which are short, and closes the connections; later reads open new ones. Blocks.
    pub(crate) fn close_idle(&self) {
        let _none = self.under_way.write().unwrap_or_else(PoisonError::into_inner);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take_idle(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
