//! Who is told of a link's datagrams, for a recording, and journals of the ports.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use airlane_base::Instant;
use serde::{Deserialize, Serialize};

use super::Node;
use super::drops::Reason;
use super::tap::{Journals, Tap};

/// What is recorded, for the header of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the node; after a slash that of the peer, where there are several.
    pub name: String,
    /// The rate that it shapes to.
    pub rate_bps: u64,
    /// Bytes that UDP, IP and Ethernet add to each datagram.
    pub overhead_bytes: u32,
}

impl Node {
    /// Keeps a journal of what goes into each port. To be called before anything else.
    ///
    /// # Errors
    /// If one cannot begin.
    pub fn keep_journals(&mut self, mut journals: Box<dyn Journals>) -> io::Result<()> {
        let named = !self.config.peers.is_empty();
        for link in self.links.iter_mut() {
            link.keep_journal(&mut *journals, named)?;
        }
        self.journals = Some(journals);
        Ok(())
    }

    /// Has `tap` told of the datagrams of the link with this peer, which may go unnamed where there is one.
    ///
    /// # Errors
    /// If datagrams have no numbers, or there is no such peer.
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
            rate_bps: link.config.rate.unwrap_or(self.config.link.rate).as_bps(),
            overhead_bytes: below.underlay.wire_overhead(link.to.address) as u32,
        })
    }

    /// A recording misses some of what the tap was told.
    pub fn note_missed(&mut self, now: Instant) {
        let tapped = self.below.tap.as_ref().map(|(link, _)| *link);
        if let Some(link) = tapped.and_then(|link| self.links.get_mut(link)) {
            link.drops.count(now, Reason::RecordMissed);
        }
    }

    /// Nobody is told any more.
    pub fn untap(&mut self) {
        self.below.tap = None;
    }
}
