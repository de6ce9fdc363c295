//! Recording of a link's datagrams, and journals of the ports.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use airlane_base::Instant;
use airlane_link::config::RateLimit;
use serde::{Deserialize, Serialize};

use super::Node;
use super::drops::Reason;
use super::tap::{Journals, Tap};

/// Facts about a recorded link, for the header of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the node, followed by a slash and the peer's name where there are several.
    pub name: String,
    /// The rate that the port shapes to.
    pub rate_bps: u64,
    /// Bytes that UDP, IP and Ethernet add to each datagram.
    pub overhead_bytes: u32,
}

impl Node {
    /// Starts a journal for each port. Must be called before any input.
    ///
    /// # Errors
    /// If a journal cannot be created.
    pub fn keep_journals(&mut self, mut journals: Box<dyn Journals>) -> io::Result<()> {
        let named = !self.config.peers.is_empty();
        for link in self.links.iter_mut() {
            link.keep_journal(&mut *journals, named)?;
        }
        self.journals = Some(journals);
        Ok(())
    }

    /// Passes the datagrams of the link with this peer to `tap`. `None` means the only peer.
    ///
    /// # Errors
    /// If datagrams are not numbered, because the link is not secured, or there is no such peer.
    pub fn tap(
        &mut self,
        peer: Option<&str>,
        tap: Rc<RefCell<dyn Tap>>,
    ) -> Result<Recorded, String> {
        let below = &mut self.below;
        if below.guard.is_none() {
            return Err(
                "security is \"none\": only the frames of a secured link are numbered, so that \
                        a lost one shows; give both ends keys (`airlane keygen`) to record the link"
                    .to_owned(),
            );
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
        below.tap = Some((link.to.link, tap));
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
            rate_bps: RateLimit::stated(link.config.rate.unwrap_or(self.config.link.rate))
                .unwrap_or_else(|| link.port.rate())
                .as_bps(),
            overhead_bytes: below.underlay.wire_overhead(link.to.address) as u32,
        })
    }

    /// Counts a part of the recording that was lost.
    pub fn note_missed(&mut self, now: Instant) {
        let tapped = self.below.tap.as_ref().map(|(link, _)| *link);
        if let Some(link) = tapped.and_then(|link| self.links.get_mut(link)) {
            link.drops.count(now, Reason::RecordMissed);
        }
    }

    /// Ends the recording.
    pub fn untap(&mut self) {
        self.below.tap = None;
    }
}
