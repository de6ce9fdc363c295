//! The path to the peer: the peer's address, the path MTU, and the resulting limits on frames and TCP segments.

use airlane_base::{Duration, Instant};
use airlane_secure::PeerAddress;
use airlane_session::{LEAST, PathSearch, Probe, ProbeRequest, SessionState};

use super::PeerLink;
use crate::node::below::Below;
use crate::node::drops::Reason;
use crate::node::request::Request;

/// How long a silent peer is sought at one address: two handshakes.
const TURN: Duration = Duration::from_secs(4);

impl PeerLink {
    /// Updates the peer's address from an authentic datagram. The log entry and the path query are
    /// rate-limited, as the peer may move often.
    pub(crate) fn move_to(&mut self, now: Instant, address: PeerAddress) {
        let was = self.to.address.replace(address);
        self.moved.get_or_insert((was, 0)).1 += 1;
        self.path.ask(now);
    }

    /// Seeks the peer at this address.
    pub(crate) fn seek(&mut self, now: Instant, address: PeerAddress, below: &mut Below) {
        self.to.address = Some(address);
        if let (Some(guard), Some(session)) = (&mut below.guard, self.to.session) {
            guard.seek(now, session, address);
        }
        self.path.ask(now);
    }

    /// A silent peer that has moved is sought alternately at its last address and at the one in the file. It
    /// may have returned there; and an attacker can move it by replaying a delayed datagram from elsewhere.
    pub(super) fn seek_silent(&mut self, now: Instant, below: &mut Below) {
        if self.is_heard() {
            (self.sought, self.elsewhere) = (now, None);
        }
        let (Some(at), Some(fixed)) = (self.to.address, self.config.fixed_address()) else {
            return;
        };
        if now < self.sought + TURN {
            return;
        }
        self.sought = now;
        let next = match at == fixed {
            true => self.elsewhere.take(),
            false => {
                self.elsewhere = Some(at);
                Some(fixed)
            }
        };
        if let Some(next) = next {
            self.seek(now, next, below);
        }
    }

    /// Handles what is due for the path: queries the kernel, sends probes, and applies their results. Returns
    /// whether the path MTU has changed.
    pub(crate) fn watch_path(&mut self, now: Instant, below: &mut Below) -> bool {
        if self.path.is_due(now) {
            self.ask_path(now, below);
        }
        let was_too_narrow = self.path.is_too_narrow();
        let doubts = self.port.doubts_path();
        if let Some(search) = &mut self.path.search {
            if doubts {
                search.doubt(now);
            }
            search.handle_timeout(now);
        }
        if self.path.is_too_narrow() && !was_too_narrow {
            let peer = self.who();
            tracing::error!(
                %peer,
                why = "nothing can be sent there until it takes more, which is probed again and again",
                "the path to the peer takes datagrams of less than {LEAST} B"
            );
        }
        self.send_probes(now, below);
        let Some(was) = self.path.take_change() else {
            return false;
        };
        let (peer, path_mtu) = (self.who(), self.path.mtu());
        let search = self.path.search.as_ref();
        match path_mtu < was && search.is_some_and(PathSearch::is_black_hole) {
            true => tracing::warn!(
                %peer, path_mtu, was,
                why = "longer datagrams vanish on the path, and no router says so: a black hole",
                "path MTU changed"
            ),
            false => {
                tracing::info!(%peer, path_mtu, was, why = "the path to the peer changed", "path MTU changed");
            }
        }
        self.narrowed += u64::from(path_mtu < was);
        self.port.path_changed(now);
        true
    }

    /// Asks the kernel for the path.
    fn ask_path(&mut self, now: Instant, below: &mut Below) {
        let (peer, moved) = (self.who(), self.moved.take());
        match moved {
            // It may have gone and come back.
            Some((was, _)) if was == self.to.address => {}
            Some((Some(was), times)) => tracing::info!(%peer, %was, times, "the peer moved"),
            Some((None, _)) => tracing::info!(%peer, "the peer called"),
            None => {}
        }
        below.requests.push_back(Request::Path {
            link: self.to.link,
            to: self.to.address,
        });
        if let Some(search) = &mut self.path.search {
            let cost = self.port.rate().transmission_time(search.mtu());
            search.set_pace(self.session.srtt(), cost);
            if moved.is_some() && self.session.state() == SessionState::Confirmed {
                search.begin(now);
            }
        }
    }

    fn send_probes(&mut self, now: Instant, below: &mut Below) {
        while let Some(request) = self.path.search.as_mut().and_then(PathSearch::poll_probe) {
            if let Some(session) = self.session.id() {
                self.send_probe(now, session, request, below);
            }
        }
    }

    /// Sends a probe of the requested length.
    fn send_probe(&mut self, now: Instant, session: u32, request: ProbeRequest, below: &mut Below) {
        let probe = Probe {
            answer: false,
            session,
            number: request.number,
        };
        let mut frame = self.hello_header();
        frame.extend_from_slice(&probe.encode());
        let around = below.underlay.overhead(self.to.address) + below.sealing();
        let length = request.size.map_or(0, |size| size.saturating_sub(around));
        frame.resize(frame.len().max(length), 0);
        below.send_whole(now, self.to, &frame);
    }

    /// Handles a probe of the peer, or its answer to ours.
    pub(crate) fn handle_probe(
        &mut self,
        now: Instant,
        probe: Probe,
        below: &mut Below,
    ) -> Result<(), Reason> {
        if !self.session.check(now, probe.session) {
            return Err(Reason::StaleSession);
        }
        match (probe.answer, &mut self.path.search) {
            (true, Some(search)) => search.handle_answer(now, probe.number),
            (true, None) => {}
            (false, _) => {
                let answer = Probe {
                    answer: true,
                    ..probe
                };
                self.push_beside(now, &answer.encode(), below);
            }
        }
        Ok(())
    }

    /// Fragments packets longer than `room` from now on, and clamps new TCP connections to `narrow`, so that
    /// their segments are not fragmented.
    pub(crate) fn set_room(&mut self, now: Instant, room: Option<usize>, narrow: Option<usize>) {
        self.narrow = narrow;
        if std::mem::replace(&mut self.room, room) != room {
            self.port.set_frame_room(now, room.unwrap_or(usize::MAX));
        }
    }

    /// Longest packet of a TCP connection, for this MTU of the interface.
    pub(crate) fn longest_segment(&self, mtu: usize) -> usize {
        self.narrow.map_or(mtu, |narrow| narrow.min(mtu))
    }
}
