//! The way of a claimed text into its conversation.

use jiff::Timestamp;

use super::{After, Phase, Watch, WatchEffect, WatchEvent};
use crate::config::WatchConfig;
use crate::record::WatchState;

impl Watch {
    /// Whether the watch has a text to tell that may wait for its conversation.
    pub(crate) fn is_telling(&self) -> bool {
        matches!(self.phase, Phase::Delivering | Phase::Undelivered | Phase::Kept)
    }

    pub(super) fn on_delivery_event(
        &mut self,
        event: &WatchEvent,
        now: Timestamp,
        config: &WatchConfig,
    ) -> Option<WatchEffect> {
        match (event, self.phase) {
            (WatchEvent::Delivered, Phase::Delivering) => Some(self.on_delivered(now, config)),
            (WatchEvent::NotNow, Phase::Delivering) if std::mem::take(&mut self.flushed) => {
                Some(WatchEffect::Deliver)
            }
            (WatchEvent::NotNow, Phase::Delivering) => {
                self.phase = Phase::Kept;
                None
            }
            (WatchEvent::DeliverFailed, Phase::Delivering) => {
                self.phase = Phase::Undelivered;
                Some(WatchEffect::Wait(config.store_retry))
            }
            (WatchEvent::Flush, Phase::Kept) => {
                self.phase = Phase::Delivering;
                Some(WatchEffect::Deliver)
            }
            (WatchEvent::Flush, phase) => {
                self.flushed = phase == Phase::Delivering;
                None
            }
            (
                WatchEvent::Delivered | WatchEvent::NotNow | WatchEvent::DeliverFailed,
                Phase::Attended
                | Phase::Idle
                | Phase::Reading
                | Phase::Connecting(_)
                | Phase::Writing(_)
                | Phase::Stuck(_)
                | Phase::Registering
                | Phase::Undelivered
                | Phase::Kept
                | Phase::Ended,
            )
            // None of them is handed to this table.
            | (
                WatchEvent::Due
                | WatchEvent::Hinted(_)
                | WatchEvent::Read(_)
                | WatchEvent::Written
                | WatchEvent::WriteFailed
                | WatchEvent::Registered
                | WatchEvent::NotRegistered
                | WatchEvent::Hold
                | WatchEvent::Release { .. }
                | WatchEvent::Confirmed { .. }
                | WatchEvent::Continued(_)
                | WatchEvent::ContinuedBeside { .. }
                | WatchEvent::Superseded
                | WatchEvent::Withdrawn
                | WatchEvent::StreamOpened
                | WatchEvent::StreamFailed
                | WatchEvent::StreamEnded
                | WatchEvent::NoStreams
                | WatchEvent::NoPlace
                | WatchEvent::Place,
                _,
            ) => self.ignore(),
        }
    }

    fn on_delivered(&mut self, now: Timestamp, config: &WatchConfig) -> WatchEffect {
        let label = self.record.claimed_label().unwrap_or_default().to_owned();
        self.record.text = None;
        self.flushed = false;
        if !self.record.goes_on && !self.record.is_behind() {
            self.record.state = WatchState::Done;
            return self.write(After::End);
        }
        self.record.goes_on = false;
        self.record.state = WatchState::Watching;
        self.record.note_told(label);
        if self.record.is_behind() {
            self.begin_round(now, None);
        }
        let pause = self.poll_pause(config);
        self.write_and_go_on(pause)
    }
}
