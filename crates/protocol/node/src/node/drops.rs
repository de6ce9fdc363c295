//! Everything that a live node drops outside of its port, counted by reason.

use std::fmt::Display;

use airlane_base::Instant;
use airlane_link::{Codec, FrameError, FrameKind, HeaderProfile};
use airlane_secure::{Refused, SealError, is_handshake};
use airlane_session::HelloError;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::quiet::Quiet;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Why something was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Reason {
            /// All of them, in the order of their counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name that status shows.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// Not a message of the secure session.
    SecureType = "secure-type",
    /// Not as long as a message of its type.
    SecureLength = "secure-length",
    /// A handshake of somebody who does not know our public key.
    SecureMac = "secure-mac",
    /// A handshake of our own that came back: the peer's address is that of this host.
    SecureOwn = "secure-own",
    /// A handshake without a cookie while there are many.
    SecureLoad = "secure-load",
    /// A handshake of an address that sends too many, while there are many.
    SecureRate = "secure-rate",
    /// A message that fails authentication: forged, damaged, or a frame of another session, sent before
    /// one of the ends was restarted.
    SecureForged = "secure-forged",
    /// A handshake of a key that is not the peer's.
    SecureUnknownKey = "secure-unknown-key",
    /// A handshake with whoever has no pre-shared key, or another than this end, or this end has none.
    SecurePreshared = "secure-preshared",
    /// A handshake that is not newer than the last one.
    SecureOldHandshake = "secure-old-handshake",
    /// A message of no session of ours.
    SecureUnknownSession = "secure-unknown-session",
    /// A message under keys that have expired.
    SecureExpired = "secure-expired",
    /// A message that was received before.
    SecureReplayed = "secure-replayed",
    /// A message too old to say whether it was received before.
    SecureBehindWindow = "secure-behind-window",
    /// A frame that could not be sealed: there are no keys yet.
    NoKeys = "no-keys",
    /// A datagram that did not come from the peer's address and port.
    OtherAddress = "other-address",
    /// A hello without keys, at an end that has some.
    PeerWithoutKeys = "peer-without-keys",
    /// A handshake, at an end without keys.
    PeerWithKeys = "peer-with-keys",
    /// Shorter than its header.
    Truncated = "truncated",
    /// Longer than any frame of this link.
    Oversized = "oversized",
    /// A frame type without meaning here.
    UnknownType = "unknown-type",
    /// A frame of a service that does not exist here.
    UnknownService = "unknown-service",
    /// A frame without the packet that its type has, or with one that it has not.
    BadLength = "bad-length",
    /// A number outside the sequence space.
    BadNumber = "bad-number",
    /// A frame of another session: sent before one of the ends was restarted. With keys it fails
    /// authentication instead.
    StaleSession = "stale-session",
    /// A frame, but no session has been agreed on.
    FrameWithoutSession = "frame-without-session",
    /// A frame of a service that the peer had before, or has before it knows that we have it.
    ServiceNotAgreed = "service-not-agreed",
    /// A hello that ends too early.
    HelloTruncated = "hello-truncated",
    /// A hello with bytes behind its end.
    HelloOversized = "hello-oversized",
    /// A hello of another version.
    HelloWrongVersion = "hello-wrong-version",
    /// A hello that is none.
    HelloMalformed = "hello-malformed",
    /// Our own hello came back.
    HelloReflected = "hello-reflected",
    /// A hello that is not newer than one before it.
    HelloOld = "hello-old",
    /// A packet from the kernel that is no IP packet.
    NotIp = "not-ip",
    /// A super-packet from the kernel that could not be cut.
    NotSegmentable = "not-segmentable",
    /// A packet from the kernel to where no peer is.
    NoPeer = "no-peer",
    /// A datagram for a peer that the kernel brought back: the way to the peer leads into the tunnel.
    OwnDatagram = "own-datagram",
    /// A packet of a peer from where another is, or nobody. Or a status probe of a path whose end the peer has not.
    WrongSource = "wrong-source",
    /// A frame of a peer that has had its share of the time, while more comes than can be taken.
    OverShare = "over-share",
    /// A packet from the kernel while there is no session.
    PacketWithoutSession = "packet-without-session",
    /// A packet from the kernel while those of all peers take as much memory as they may.
    MemoryFull = "memory-full",
    /// The network below marked congestion above a packet that takes no marks: RFC 6040 drops it.
    Congested = "congestion-marked",
    /// The kernel did not take a packet that came from the link.
    NotDelivered = "not-delivered",
    /// The kernel had no buffer for a datagram.
    NoBuffer = "send-no-buffer",
    /// A datagram did not fit the path, not even in fragments.
    TooBig = "send-too-big",
    /// The interface that frames leave by is down or gone.
    InterfaceAway = "interface-away",
    /// The kernel did not send a datagram for another reason.
    NotSent = "send-failed",
    /// Receiving a datagram failed.
    NotReceived = "receive-failed",
    /// Whoever records the link did not take a part of the recording in time.
    RecordMissed = "record-missed",
}

impl Reason {
    /// Whether nearly every session begins with some of these: what was sent before both ends had keys, a session and
    /// services in common.
    const fn belongs_to_a_beginning(self) -> bool {
        matches!(
            self,
            Self::PacketWithoutSession
                | Self::FrameWithoutSession
                | Self::ServiceNotAgreed
                | Self::StaleSession
                | Self::NoKeys
                | Self::HelloOld
                | Self::SecureUnknownSession
        )
    }
}

impl Reason {
    /// The reason to refuse a datagram, or that one end has keys and the other none, where the datagram shows that.
    pub fn or_keys_at_one_end(self, have_keys: bool, datagram: &[u8]) -> Self {
        let is_hello = || {
            let decoded = Codec::new(HeaderProfile::Live).decode(datagram, |_| None);
            decoded.is_ok_and(|decoded| decoded.header.kind == FrameKind::Hello)
        };
        match have_keys {
            true if self == Self::SecureType && is_hello() => Self::PeerWithoutKeys,
            false if is_handshake(datagram) => Self::PeerWithKeys,
            _ => self,
        }
    }
}

impl From<&FrameError> for Reason {
    fn from(error: &FrameError) -> Self {
        match error {
            FrameError::Truncated { .. } => Self::Truncated,
            FrameError::UnknownService { .. } => Self::UnknownService,
            FrameError::Number { .. } => Self::BadNumber,
            _ => Self::UnknownType,
        }
    }
}

impl From<SealError> for Reason {
    fn from(error: SealError) -> Self {
        match error {
            SealError::NoRoom { .. } => Self::TooBig,
            _ => Self::NoKeys,
        }
    }
}

impl From<Refused> for Reason {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Length => Self::SecureLength,
            Refused::Mac1 => Self::SecureMac,
            Refused::Own => Self::SecureOwn,
            Refused::Load => Self::SecureLoad,
            Refused::Rate => Self::SecureRate,
            Refused::Forged => Self::SecureForged,
            Refused::UnknownKey => Self::SecureUnknownKey,
            Refused::Preshared => Self::SecurePreshared,
            Refused::OldInitiation => Self::SecureOldHandshake,
            Refused::UnknownIndex => Self::SecureUnknownSession,
            Refused::Expired => Self::SecureExpired,
            Refused::Replayed => Self::SecureReplayed,
            Refused::BehindWindow => Self::SecureBehindWindow,
            Refused::Unbound => Self::FrameWithoutSession,
            Refused::NoRoom => Self::Oversized,
            _ => Self::SecureType,
        }
    }
}

impl From<&HelloError> for Reason {
    fn from(error: &HelloError) -> Self {
        match error {
            HelloError::Truncated { .. } => Self::HelloTruncated,
            HelloError::TooLong { .. } => Self::HelloOversized,
            HelloError::Version { .. } => Self::HelloWrongVersion,
            HelloError::OwnEpoch => Self::HelloReflected,
            HelloError::Old => Self::HelloOld,
            _ => Self::HelloMalformed,
        }
    }
}

/// One counter for each reason.
#[derive(Clone, Debug)]
pub struct Drops {
    /// Whose they are: a peer's, or nobody's known.
    peer: Option<String>,
    counts: [u64; Reason::ALL.len()],
    /// When the log spoke of each reason.
    warned: [Quiet; Reason::ALL.len()],
}

impl Drops {
    /// Nothing was dropped yet, of this peer or of nobody known.
    pub(crate) const fn new(peer: Option<String>) -> Self {
        Self {
            peer,
            counts: [0; Reason::ALL.len()],
            warned: [Quiet::NEW; Reason::ALL.len()],
        }
    }

    /// Counts one more, and says so in the log: the first of each reason, then once a minute.
    pub(crate) fn count(&mut self, now: Instant, reason: Reason) {
        self.note(now, reason, None, reason.belongs_to_a_beginning());
    }

    /// Counts a datagram or packet from or to `address`, which the log names.
    pub(crate) fn count_of(&mut self, now: Instant, reason: Reason, address: &dyn Display) {
        self.note(now, reason, Some(address), reason.belongs_to_a_beginning());
    }

    /// Counts a datagram from `address` that was refused. `begins`: a session with who is there has begun a moment ago. What
    /// was under way then is bound to the one before and cannot be told from what is forged.
    pub(crate) fn count_refused(
        &mut self,
        now: Instant,
        reason: Reason,
        address: &dyn Display,
        begins: bool,
    ) {
        let belongs = reason.belongs_to_a_beginning() || begins && reason == Reason::SecureForged;
        self.note(now, reason, Some(address), belongs);
    }

    fn note(&mut self, now: Instant, reason: Reason, address: Option<&dyn Display>, belongs: bool) {
        let at = reason as usize;
        self.counts[at] += 1;
        let count = || self.counts[at];
        if let Some([total, new]) = self.warned[at].speak(now, count) {
            let (peer, reason) = (self.peer.as_deref(), reason.name());
            let address = address.map(tracing::field::display);
            match belongs {
                true => tracing::info!(peer, reason, address, new, total, "dropped"),
                false => tracing::warn!(peer, reason, address, new, total, "dropped"),
            }
        }
    }

    /// How many were dropped for this reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.counts[reason as usize]
    }

    /// Reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let all = Reason::ALL.iter().copied();
        all.zip(self.counts).filter(|(_, count)| *count > 0)
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Serialize for Drops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (reason, count) in self.iter() {
            map.serialize_entry(reason.name(), &count)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use airlane_base::Duration;
    use airlane_testkit::Log;

    #[test]
    fn the_documents_have_every_reason_and_no_other() {
        let operations = include_str!("../../../../../docs/operations.md");
        let (_, section) = operations.split_once("## What is dropped").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let named = rows.flat_map(|row| {
            let cells: Vec<_> = row.split(" | ").collect();
            assert!(cells.len() == 3 && cells[2].len() > 3, "{row}");
            cells[0].split('`').skip(1).step_by(2)
        });
        let mut named: Vec<_> = named.collect();
        let names = Reason::ALL.iter().map(|reason| reason.name());
        let mut names: Vec<_> = names.chain(["journal-ended"]).collect();
        named.sort_unstable();
        names.sort_unstable();
        assert_eq!(named, names);
    }

    /// A word of several parts in a document for operators is a counter or stands in a file.
    #[test]
    fn the_documents_name_no_counter_that_there_is_not() {
        let reference = include_str!("../../../../../docs/reference/live.md");
        let of_packets = airlane_link::DropReason::ALL
            .iter()
            .map(|reason| reason.name());
        let counters: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        let counters: Vec<_> = (counters.into_iter())
            .chain(of_packets)
            .chain(["journal-ended"])
            .collect();
        for (document, text) in [
            (
                "operations",
                include_str!("../../../../../docs/operations.md"),
            ),
            ("security", include_str!("../../../../../docs/security.md")),
        ] {
            // Between fences are commands and files.
            let prose: String = text.split("```").step_by(2).collect();
            let words = prose.split('`').skip(1).step_by(2);
            let is_name = |word: &&str| {
                let mut parts = word.split('-');
                word.contains('-')
                    && parts.all(|part| {
                        !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase())
                    })
            };
            let unknown: Vec<_> = words
                .filter(is_name)
                .filter(|word| !counters.contains(word) && !reference.contains(word))
                .collect();
            assert_eq!(unknown, [""; 0], "docs/{document}.md");
        }
    }

    #[test]
    fn reasons_have_distinct_names_and_counters() {
        let mut names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
        let mut drops = Drops::new(None);
        for (i, reason) in Reason::ALL.iter().enumerate() {
            for _ in 0..=i {
                drops.count(Instant::ORIGIN, *reason);
            }
        }
        for (i, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(drops.of(*reason), i as u64 + 1);
        }
    }

    #[test]
    fn the_log_names_the_address_of_a_packet_without_a_peer_once_a_minute() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let mut drops = Drops::new(Some("mill".to_owned()));
            let address = IpAddr::from([10, 80, 0, 9]);
            for second in 0..=60 {
                let now = Instant::ORIGIN + Duration::from_secs(second);
                drops.count_of(now, Reason::NoPeer, &address);
                drops.count_of(now, Reason::WrongSource, &address);
            }
        });
        let said = log.text();
        let said: Vec<serde_json::Value> = said
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for reason in ["no-peer", "wrong-source"] {
            let of: Vec<_> = said
                .iter()
                .map(|line| &line["fields"])
                .filter(|fields| fields["reason"] == reason)
                .collect();
            assert_eq!(of.len(), 2, "the first, and one after a minute: {said:?}");
            assert!(
                of.iter()
                    .all(|f| f["address"] == "10.80.0.9" && f["peer"] == "mill")
            );
            assert_eq!((&of[0]["new"], &of[1]["new"]), (&1.into(), &60.into()));
        }
    }
}
