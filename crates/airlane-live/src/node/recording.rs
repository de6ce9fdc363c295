//! Recording the link for a client of the control socket, and keeping a journal of its port.

use airlane_base::Instant;

use super::Node;
use super::drops::Reason;
use crate::device::DeviceError;
use crate::journal::JournalFile;
use crate::record::Recorded;

impl Node {
    /// Keeps a journal of what goes into the port. To be called before [`Node::run`].
    ///
    /// # Errors
    /// If its thread cannot be started.
    pub fn keep_journal(&mut self, file: JournalFile) -> Result<(), DeviceError> {
        self.port
            .keep_journal(file)
            .map_err(|error| DeviceError::new(&self.name, "begin the journal", error))
    }

    /// Begins a recording.
    pub(super) fn begin_recording(&mut self, now: Instant) -> Result<Recorded, String> {
        if self.guard.is_none() {
            return Err(
                "security is \"none\": only the frames of a secured link are numbered, so that \
                        a lost one shows; give both ends keys (`airlane keygen`) to record the link"
                    .to_owned(),
            );
        }
        if self.recorder.is_on() {
            return Err("the link is being recorded already; one recording at a time".to_owned());
        }
        self.recorder.begin(now);
        tracing::info!(node = self.name, "recording begins");
        Ok(Recorded {
            name: self.name.clone(),
            rate_bps: self.rate_bps,
            overhead_bytes: self.underlay.wire_overhead() as u32,
        })
    }

    /// What was recorded since the last call.
    pub(super) fn take_recording(&mut self, now: Instant, out: &mut Vec<u8>) {
        let before = self.recorder.missed();
        self.recorder.take(now, out);
        if self.recorder.missed() > before {
            self.drops.count(now, Reason::RecordMissed);
        }
    }

    /// Ends the recording, if there is one.
    pub(super) fn end_recording(&mut self, now: Instant, out: &mut Vec<u8>) {
        if let Some(ended) = self.recorder.end(now, out) {
            let (lasted, records, missed) = (ended.lasted, ended.records, ended.missed);
            tracing::info!(node = self.name, %lasted, records, missed, "recording ends");
        }
    }
}
