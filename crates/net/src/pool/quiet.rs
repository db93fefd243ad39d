//! Waking whoever drives a connection only while that waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures::task::AtomicWaker;

/// Polled, or not waited for: who polls next looks at everything anyway.
const BUSY: u8 = 0;
/// The same, and something has happened since the last look began.
const TOUCHED: u8 = 1;
/// Waited for.
const WAITING: u8 = 2;

/// How often one poll looks again because something happened meanwhile. Not for ever: a socket that has used up its
/// task's share says so by waking it.
const LOOKS: usize = 4;

/// The waker of a connection, its requests and its answers. They wake each other all the time, mostly from within one
/// poll of the task that drives them all; passed on, each of these would send that task through the scheduler, often to
/// another thread.
#[derive(Debug)]
pub(super) struct Quiet {
    signal: Arc<Signal>,
    /// Made of the signal once: each poll needs it.
    waker: Waker,
}

#[derive(Debug, Default)]
struct Signal {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Default for Quiet {
    fn default() -> Self {
        let signal = Arc::<Signal>::default();
        Self { waker: Waker::from(Arc::clone(&signal)), signal }
    }
}

impl Quiet {
    /// Polls with a waker that disturbs the task of `context` only after this has returned [`Poll::Pending`].
    pub(super) fn poll<T>(
        &self,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Signal { state, task } = &*self.signal;
        let mut inner = Context::from_waker(&self.waker);
        for _ in 0..LOOKS {
            state.store(BUSY, Ordering::SeqCst);
            if let Poll::Ready(output) = poll(&mut inner) {
                return Poll::Ready(output);
            }
            task.register(context.waker());
            let waits = state.compare_exchange(BUSY, WAITING, Ordering::SeqCst, Ordering::SeqCst);
            if waits.is_ok() {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls without waiting for anything.
    pub(super) fn look<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        self.signal.state.store(BUSY, Ordering::SeqCst);
        poll(&mut Context::from_waker(&self.waker))
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(TOUCHED, Ordering::SeqCst) == WAITING {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Count(AtomicU8);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn task() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (Arc::clone(&count), Waker::from(count))
    }

    #[test]
    fn what_happens_within_a_poll_is_looked_at_in_the_same_poll() {
        let (quiet, (count, waker)) = (Quiet::default(), task());
        let mut looks = 0;
        let polled = quiet.poll(&mut Context::from_waker(&waker), |inner| {
            looks += 1;
            if looks == 1 {
                inner.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(looks)
        });
        assert_eq!((polled, count.0.load(Ordering::SeqCst)), (Poll::Ready(2), 0));
    }

    #[test]
    fn what_happens_later_wakes_the_task_once() {
        let (quiet, (count, waker)) = (Quiet::default(), task());
        let mut kept = None;
        let polled = quiet.poll(&mut Context::from_waker(&waker), |inner| {
            kept = Some(inner.waker().clone());
            Poll::<()>::Pending
        });
        assert_eq!((polled, count.0.load(Ordering::SeqCst)), (Poll::Pending, 0));
        let kept = kept.unwrap();
        kept.wake_by_ref();
        kept.wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn poll_that_never_comes_to_rest_gives_way_to_other_tasks() {
        let (quiet, (count, waker)) = (Quiet::default(), task());
        let mut looks = 0;
        let polled = quiet.poll(&mut Context::from_waker(&waker), |inner| {
            looks += 1;
            inner.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!((polled, looks, count.0.load(Ordering::SeqCst)), (Poll::Pending, LOOKS, 1));
    }

    #[test]
    fn nobody_is_woken_who_does_not_wait() {
        let (quiet, (count, waker)) = (Quiet::default(), task());
        let mut kept = None;
        let polled = quiet.poll(&mut Context::from_waker(&waker), |inner| {
            kept = Some(inner.waker().clone());
            Poll::Ready(())
        });
        assert!(polled.is_ready());
        kept.unwrap().wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }
}
