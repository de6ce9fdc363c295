//! Recording a link for a client of the control socket, and keeping journals of the ports.

use std::path::Path;

use airlane_base::Instant;

use super::Node;
use super::drops::Reason;
use super::journals::Journals;
use crate::device::DeviceError;
use crate::record::Recorded;

impl Node {
    /// Keeps a journal of what goes into each port, at most so long. Those of listed peers have the
    /// peer's name before the extension of `path`. To be called before [`Node::run`].
    ///
    /// # Errors
    /// If a file cannot be made, or its thread not be started.
    pub fn keep_journals(&mut self, path: &Path, most: u64) -> Result<(), DeviceError> {
        let named = !self.config.peers.is_empty();
        let journals = self.journals.insert(Journals::new(path, most, named));
        self.links
            .iter_mut()
            .try_for_each(|link| journals.begin(link))
    }

    /// Begins a recording of the link with this peer; it may go unnamed where there is one.
    pub(super) fn begin_recording(
        &mut self,
        now: Instant,
        peer: Option<&str>,
    ) -> Result<Recorded, String> {
        let below = &mut self.below;
        if below.guard.is_none() {
            return Err(
                "security is \"none\": only the frames of a secured link are numbered, so that \
                        a lost one shows; give both ends keys (`airlane keygen`) to record the link"
                    .to_owned(),
            );
        }
        if below.recorder.is_on() {
            return Err("a link is being recorded already; one recording at a time".to_owned());
        }
        let links = &self.links;
        let mut all = links.iter();
        let link = match (peer, all.next(), all.next()) {
            (Some(name), ..) => links.named(name).ok_or_else(|| {
                format!(
                    "there is no peer \"{name}\"; the peers are {}",
                    links.names()
                )
            })?,
            (None, Some(only), None) => only,
            _ => {
                let names = links.names();
                return Err(format!("there are several peers; name one of {names}"));
            }
        };
        below.recorder.begin(now, link.to.link);
        tracing::info!(
            node = self.name,
            peer = link.config.name,
            "recording begins"
        );
        let listed = !self.config.peers.is_empty();
        Ok(Recorded {
            name: match listed {
                true => format!("{}/{}", self.name, link.config.name),
                false => self.name.clone(),
            },
            rate_bps: link.config.rate.unwrap_or(self.config.link.rate).as_bps(),
            overhead_bytes: below.underlay.wire_overhead(link.to.address) as u32,
        })
    }

    /// What was recorded since the last call.
    pub(super) fn take_recording(&mut self, now: Instant, out: &mut Vec<u8>) {
        let recorder = &mut self.below.recorder;
        let before = recorder.missed();
        recorder.take(now, out);
        if recorder.missed() > before
            && let Some(link) = recorder.link()
            && let Some(link) = self.links.get_mut(link)
        {
            link.drops.count(now, Reason::RecordMissed);
        }
    }

    /// Ends the recording, if there is one.
    pub(super) fn end_recording(&mut self, now: Instant, out: &mut Vec<u8>) {
        if let Some(ended) = self.below.recorder.end(now, out) {
            let (lasted, records, missed) = (ended.lasted, ended.records, ended.missed);
            tracing::info!(node = self.name, %lasted, records, missed, "recording ends");
        }
    }
}
