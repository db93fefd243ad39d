//! Nothing can be written: a full disk, one that fails. The person is told once, and the chat goes on by itself when it can.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// How long a trouble lasts before it is told: what passes in a moment is tried again anyway.
const PATIENCE: Duration = Duration::from_secs(2);

/// Between two attempts to go on.
const RETRY: Duration = Duration::from_secs(5);

/// Said when it is over.
pub(crate) const WELL: &str = "(the state can be written again; the chat goes on)";

/// Whether the chat's state can be written.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Why the store could not write last.
    unwritable: watch::Receiver<Option<Arc<str>>>,
    /// Why answers could not be shown last.
    unshown: Option<String>,
    /// When the trouble is told, or else the next attempt is made.
    due: Option<Instant>,
    is_told: bool,
}

/// How it stands now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DiskNews {
    /// There is trouble, for this reason.
    Trouble(String),
    /// There still is, and it is time to try again.
    Still,
    /// There is none any more; it may have been told.
    Over { was_told: bool },
}

impl Disk {
    pub(crate) fn new(unwritable: watch::Receiver<Option<Arc<str>>>) -> Self {
        Self { unwritable, unshown: None, due: None, is_told: false }
    }

    /// Answers were shown, or could not be for this reason.
    pub(crate) fn note_shown(&mut self, end: Result<(), String>) {
        self.unshown = end.err();
    }

    /// The person has just been told in other words.
    pub(crate) fn note_told(&mut self) {
        if !self.is_well() {
            self.is_told = true;
            self.due = Some(Instant::now() + RETRY);
        }
    }

    /// Whether all could be written and shown.
    pub(crate) fn is_well(&self) -> bool {
        self.reason().is_none()
    }

    fn reason(&self) -> Option<String> {
        let unwritable = self.unwritable.borrow().as_deref().map(str::to_owned);
        unwritable.or_else(|| self.unshown.clone())
    }

    /// Waits until there is something to tell or to do.
    ///
    /// # Cancel safety
    /// Nothing is missed.
    pub(crate) async fn news(&mut self) -> DiskNews {
        loop {
            match (self.reason(), self.due) {
                (None, Some(_)) => {
                    self.due = None;
                    return DiskNews::Over { was_told: std::mem::take(&mut self.is_told) };
                }
                (None, None) => self.changed().await,
                (Some(_), None) => self.due = Some(Instant::now() + PATIENCE),
                (Some(reason), Some(due)) => {
                    tokio::select! {
                        biased;
                        () = self.changed() => {}
                        () = sleep_until(due) => {
                            self.due = Some(Instant::now() + RETRY);
                            if std::mem::replace(&mut self.is_told, true) {
                                return DiskNews::Still;
                            }
                            return DiskNews::Trouble(reason);
                        }
                    }
                }
            }
        }
    }

    /// Waits for the store; for ever, once there is none any more.
    async fn changed(&mut self) {
        if self.unwritable.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// What is said about it.
pub(crate) fn trouble(reason: &str) -> String {
    format!(
        "(this chat's state cannot be written: {reason}. What was accepted is not lost; mend that, and the chat goes on by itself)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (watch::Sender<Option<Arc<str>>>, Disk) {
        let (sender, receiver) = watch::channel(None);
        (sender, Disk::new(receiver))
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_is_told_once_and_tried_again_until_it_is_over() {
        let (store, mut disk) = disk();
        store.send_replace(Some(Arc::from("full")));
        let begun = Instant::now();
        assert_eq!(disk.news().await, DiskNews::Trouble("full".to_owned()));
        assert_eq!(begun.elapsed(), PATIENCE);
        assert_eq!(disk.news().await, DiskNews::Still);
        assert_eq!(disk.news().await, DiskNews::Still);
        assert_eq!(begun.elapsed(), PATIENCE + 2 * RETRY);
        store.send_replace(None);
        assert_eq!(disk.news().await, DiskNews::Over { was_told: true });
        assert!(disk.is_well());
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_of_a_moment_is_not_told() {
        let (store, mut disk) = disk();
        store.send_replace(Some(Arc::from("full")));
        let look = tokio::time::timeout(PATIENCE / 2, disk.news()).await;
        assert!(look.is_err(), "{look:?}");
        store.send_replace(None);
        assert_eq!(disk.news().await, DiskNews::Over { was_told: false });
    }

    #[tokio::test(start_paused = true)]
    async fn what_interrupts_the_wait_does_not_begin_it_anew() {
        let (store, mut disk) = disk();
        store.send_replace(Some(Arc::from("full")));
        let begun = Instant::now();
        let news = loop {
            tokio::select! {
                biased;
                news = disk.news() => break news,
                () = tokio::time::sleep(PATIENCE / 10) => {}
            }
        };
        assert_eq!(news, DiskNews::Trouble("full".to_owned()));
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_told_in_other_words_is_not_told_again() {
        let (store, mut disk) = disk();
        disk.note_told();
        store.send_replace(Some(Arc::from("full")));
        disk.note_told();
        assert_eq!(disk.news().await, DiskNews::Still);
        store.send_replace(None);
        assert_eq!(disk.news().await, DiskNews::Over { was_told: true });
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_cannot_be_shown_are_trouble_as_well() {
        let (_store, mut disk) = disk();
        disk.note_shown(Err("no answer".to_owned()));
        assert_eq!(disk.news().await, DiskNews::Trouble("no answer".to_owned()));
        disk.note_shown(Ok(()));
        assert_eq!(disk.news().await, DiskNews::Over { was_told: true });
    }
}
