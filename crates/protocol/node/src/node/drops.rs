//! Everything that a live node drops outside its ports, counted by reason.

use std::fmt::Display;

use airlane_base::Instant;
use airlane_link::{Codec, FrameError, FrameKind, HeaderProfile};
use airlane_secure::{Refused, SealError, is_handshake};
use airlane_session::HelloError;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::quiet::Quiet;

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// Reason for a drop.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Reason {
            /// All reasons, in the order of their counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in status reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// A datagram of no bytes, by which `airlane doctor` learns whether a port is closed.
    Empty = "empty",
    /// Not a message of the secure session.
    SecureType = "secure-type",
    /// Its length is wrong for its type.
    SecureLength = "secure-length",
    /// A handshake whose sender does not know our public key.
    SecureMac = "secure-mac",
    /// Our own handshake came back: the peer's address belongs to this host.
    SecureOwn = "secure-own",
    /// A handshake without a cookie, under load.
    SecureLoad = "secure-load",
    /// A handshake from an address that sends too many, under load.
    SecureRate = "secure-rate",
    /// A message that fails authentication: forged, damaged, or from a session before one of the ends was restarted.
    SecureForged = "secure-forged",
    /// A handshake with a key that is not the peer's.
    SecureUnknownKey = "secure-unknown-key",
    /// A handshake where the pre-shared keys of the two ends differ, or only one end has one.
    SecurePreshared = "secure-preshared",
    /// A handshake that is not newer than the last one.
    SecureOldHandshake = "secure-old-handshake",
    /// A message with an unknown session identifier.
    SecureUnknownSession = "secure-unknown-session",
    /// A message under expired keys.
    SecureExpired = "secure-expired",
    /// A message whose number was received before.
    SecureReplayed = "secure-replayed",
    /// A message older than the replay window.
    SecureBehindWindow = "secure-behind-window",
    /// A frame that could not be sealed, because there are no keys yet.
    NoKeys = "no-keys",
    /// A datagram that is not from the peer's address and port.
    OtherAddress = "other-address",
    /// An unprotected hello, while this end has keys.
    PeerWithoutKeys = "peer-without-keys",
    /// A handshake, while this end has no keys.
    PeerWithKeys = "peer-with-keys",
    /// Shorter than its header.
    Truncated = "truncated",
    /// Longer than any frame of this link.
    Oversized = "oversized",
    /// A frame of unknown type.
    UnknownType = "unknown-type",
    /// A frame of a service that this end does not have.
    UnknownService = "unknown-service",
    /// A frame that lacks the packet of its type, or has a packet that its type does not allow.
    BadLength = "bad-length",
    /// A sequence number outside the sequence space.
    BadNumber = "bad-number",
    /// A frame of another session, sent before one of the ends was restarted. With keys it fails
    /// authentication instead.
    StaleSession = "stale-session",
    /// A frame before a session was agreed on.
    FrameWithoutSession = "frame-without-session",
    /// A frame of a service that the two ends do not have in common, because one of them has just changed it.
    ServiceNotAgreed = "service-not-agreed",
    /// A hello that ends too early.
    HelloTruncated = "hello-truncated",
    /// A hello with trailing bytes.
    HelloOversized = "hello-oversized",
    /// A hello of another version.
    HelloWrongVersion = "hello-wrong-version",
    /// A malformed hello.
    HelloMalformed = "hello-malformed",
    /// Our own hello came back.
    HelloReflected = "hello-reflected",
    /// A hello that is not newer than the last one.
    HelloOld = "hello-old",
    /// Bytes from the kernel that are not an IP packet.
    NotIp = "not-ip",
    /// A super-packet from the kernel that could not be segmented.
    NotSegmentable = "not-segmentable",
    /// A packet from the kernel to an address that no peer has.
    NoPeer = "no-peer",
    /// One of our own datagrams, which the kernel routed into the tunnel.
    OwnDatagram = "own-datagram",
    /// A packet from a peer whose source is not behind that peer, or a status probe for such an address.
    WrongSource = "wrong-source",
    /// A frame of a peer that has used its share of the time, under load.
    OverShare = "over-share",
    /// A packet from the kernel without a session.
    PacketWithoutSession = "packet-without-session",
    /// A packet from the kernel while packets use all of their memory.
    MemoryFull = "memory-full",
    /// A Not-ECT packet in a datagram marked CE, which RFC 6040 drops.
    Congested = "congestion-marked",
    /// A packet from the link that the kernel did not accept.
    NotDelivered = "not-delivered",
    /// A datagram for which the kernel had no buffer.
    NoBuffer = "send-no-buffer",
    /// A datagram that did not fit the path, not even in fragments.
    TooBig = "send-too-big",
    /// The interface that frames leave by is down or gone.
    InterfaceAway = "interface-away",
    /// A datagram that the kernel did not send for another reason.
    NotSent = "send-failed",
    /// Receiving a datagram failed.
    NotReceived = "receive-failed",
    /// A part of a recording that was not written in time.
    RecordMissed = "record-missed",
}

impl Reason {
    /// Whether drops for this reason are normal at the beginning of a session, before both ends have keys, a
    /// session and common services.
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
    /// Replaces the reason where the datagram shows that only one end has keys.
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
    /// The peer they belong to, if known.
    peer: Option<String>,
    counts: [u64; Reason::ALL.len()],
    /// Last log entry for each reason.
    warned: [Quiet; Reason::ALL.len()],
}

impl Drops {
    /// Counters at zero, of a peer or of unknown senders.
    pub(crate) const fn new(peer: Option<String>) -> Self {
        Self {
            peer,
            counts: [0; Reason::ALL.len()],
            warned: [Quiet::NEW; Reason::ALL.len()],
        }
    }

    /// Counts a drop, and logs the first for each reason, then one a minute.
    pub(crate) fn count(&mut self, now: Instant, reason: Reason) {
        self.note(now, reason, None, reason.belongs_to_a_beginning());
    }

    /// Counts a datagram or packet from or to `address`, which the log names.
    pub(crate) fn count_of(&mut self, now: Instant, reason: Reason, address: &dyn Display) {
        self.note(now, reason, Some(address), reason.belongs_to_a_beginning());
    }

    /// Counts a refused datagram from `address`. `begins`: a session there has begun a moment ago, so that
    /// messages of the previous session are still in flight, and these look like forged ones.
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
        let (at, is_look) = (reason as usize, reason == Reason::Empty);
        self.counts[at] += 1;
        let count = || self.counts[at];
        if let Some([total, new]) = self.warned[at].speak(now, count) {
            let (peer, reason) = (self.peer.as_deref(), reason.name());
            let address = address.map(tracing::field::display);
            // An operator who looks for a fault would take the look of `airlane doctor` for one.
            match (belongs, is_look) {
                (_, true) => tracing::debug!(peer, reason, address, new, total, "dropped"),
                (true, _) => tracing::info!(peer, reason, address, new, total, "dropped"),
                (false, _) => tracing::warn!(peer, reason, address, new, total, "dropped"),
            }
        }
    }

    /// Number of drops for this reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.counts[reason as usize]
    }

    /// Reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        let all = Reason::ALL.iter().copied();
        all.zip(self.counts).filter(|(_, count)| *count > 0)
    }

    /// Total over all reasons.
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

    /// Hyphenated words in the operators' documents are counters or file keys.
    #[test]
    fn the_documents_name_only_existing_counters() {
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
            // Code fences hold commands and files.
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
    fn the_look_of_a_doctor_is_counted_and_no_warning() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
        tracing::subscriber::with_default(subscriber.finish(), || {
            let mut drops = Drops::new(None);
            drops.count(Instant::ORIGIN, Reason::Empty);
            assert_eq!(drops.of(Reason::Empty), 1);
        });
        assert_eq!(log.text(), "");
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
