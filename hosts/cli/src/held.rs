//! Another program holds the lock of the state: what is to be written waits, and the person is told why nothing happens.

use std::pin::pin;

use anyhow::Result;
use tokio::sync::watch;

use crate::screen::Screen;

/// Said when the wait has become long.
const HELD: &str = "(another program holds the lock of this chat's state.db, a backup or a database shell, say; \
    the chat goes on by itself once it lets go, and nothing is lost by waiting)";

/// Said when it is over.
const FREE: &str = "(the lock is free again; the chat goes on)";

/// Said to somebody who leaves meanwhile.
pub(crate) const LEFT_HELD: &str =
    "Another program still holds the lock of state.db: what was said last may not have been kept.";

/// Whether another program keeps the assistant from writing.
#[derive(Debug)]
pub(crate) struct Held(watch::Receiver<bool>);

impl Held {
    pub(crate) fn new(held: watch::Receiver<bool>) -> Self {
        Self(held)
    }

    /// Whether it does so now.
    pub(crate) fn is_held(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it begins or ends; for ever, once there is no store any more.
    ///
    /// # Cancel safety
    /// Nothing is missed.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Says how it stands now.
    pub(crate) async fn tell(&self, screen: &mut Screen) -> Result<()> {
        screen.line(if self.is_held() { HELD } else { FREE }).await
    }

    /// Waits for something that writes, and says so if it is kept from that.
    pub(crate) async fn meanwhile<T>(
        &mut self,
        screen: &mut Screen,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                () = self.changed() => self.tell(screen).await?,
                done = &mut work => return Ok(done),
            }
        }
    }
}
