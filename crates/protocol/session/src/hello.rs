//! The body of a hello frame.
//!
//! ```text
//!  0      version
//!  1      flags: 1 the text of the table follows, 2 the echoed epoch was left, 64 an answer is requested
//!  2      number of loss reports
//!  3      number of offers
//!  4..12  epoch of the sender
//! 12..20  nonce of the sender
//! 20..28  echo: the last nonce that the sender heard, 0 if none
//! 28..36  digest of the sender's table (FNV-1a)
//! 36..40  session that the sender is in, 0 if none
//! 40..48  when this hello was sent, ns by the sender's clock
//! 48..56  that time in the last hello that the sender heard, 0 if none
//! 56..64  time since the sender heard that hello, ns
//! 64..72  digest of the receiver's offers as the sender knows them in that session, 0 if unknown
//! then    loss reports: service (1), packets received (8), packets lost (8), loss in ppm (4),
//!         0xffffffff if not measured; no reports if they are unchanged
//! then    offers: the sender's services ([`ServiceOffer`]); none if the receiver knows them
//! then    length of the text (2), the text
//! ```
//!
//! Integers are big-endian. The version will always come first, so that any two versions can report each other.

use super::offer::ServiceOffer;

/// The version of the protocol between two live nodes.
pub const VERSION: u8 = 9;

const FIXED: usize = 72;
const REPORT: usize = 21;
const FLAG_TABLE: u8 = 1;
const FLAG_RETIRED: u8 = 2;
/// A status probe uses this bit with another meaning.
const FLAG_ASKS: u8 = 64;
/// One report per service number.
const MAX_REPORTS: usize = 16;
/// One offer per service number.
const MAX_OFFERS: usize = 16;

/// What one end observed of the other's packets in one service, since the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LossReport {
    /// Number of the service.
    pub service: u8,
    /// Packets that were delivered.
    pub received_packets: u64,
    /// Packets that the service gave up or never saw.
    pub lost_packets: u64,
    /// l of Xylomenos 1999, table 8.1, as smoothed by the receiver, in millionths; `None` before any traffic.
    pub loss_ppm: Option<u32>,
}

/// Why a hello was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The hello is truncated.
    #[error("hello is truncated: need {need} B, got {got} B")]
    Truncated {
        /// Bytes that its fields require.
        need: usize,
        /// Bytes received.
        got: usize,
    },
    /// The hello has trailing bytes.
    #[error("hello is {extra} B too long")]
    TooLong {
        /// How many.
        extra: usize,
    },
    /// The peer has another version of the protocol.
    #[error("the peer speaks version {theirs}, we speak {ours}")]
    Version {
        /// Our version.
        ours: u8,
        /// The peer's version.
        theirs: u8,
    },
    /// More loss reports than there are services.
    #[error("hello has {reports} loss reports, at most {MAX_REPORTS} are possible")]
    Reports {
        /// How many.
        reports: usize,
    },
    /// More offers than there are services.
    #[error("hello offers {offers} services, at most {MAX_OFFERS} are possible")]
    Offers {
        /// How many.
        offers: usize,
    },
    /// The index of a part is not below the number of parts.
    #[error("part {index} of {count} parts is none, counted from 0")]
    Part {
        /// The index.
        index: u8,
        /// The number of parts.
        count: u8,
    },
    /// A probe is also marked as an answer.
    #[error("it says that it is a probe and the answer to one")]
    Probe,
    /// The peer's report about itself is not text.
    #[error("what it says about its sender is not UTF-8 text")]
    About,
    /// The table is not text.
    #[error("the peer's table of services is not UTF-8 text")]
    Table,
    /// Our own hello came back.
    #[error("our own hello came back")]
    OwnEpoch,
    /// The hello is not newer than one received before: duplicated or overtaken.
    #[error("hello is old or a duplicate")]
    Old,
}

impl HelloError {
    /// A short name for counters.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "hello-truncated",
            Self::TooLong { .. } => "hello-oversized",
            Self::Version { .. } => "hello-wrong-version",
            Self::Reports { .. }
            | Self::Offers { .. }
            | Self::Part { .. }
            | Self::Probe
            | Self::About
            | Self::Table => "hello-malformed",
            Self::OwnEpoch => "hello-reflected",
            Self::Old => "hello-old",
        }
    }
}

/// A hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Drawn when the sender started.
    pub epoch: u64,
    /// The sender's current nonce.
    pub nonce: u64,
    /// The last nonce that the sender heard, 0 if none.
    pub echo: u64,
    /// Digest of the sender's table of services.
    pub digest: u64,
    /// The session that the sender is in, 0 if none.
    pub session: u32,
    /// Whether the sender was in a session with the epoch that it echoes, and left it.
    pub retired: bool,
    /// When it was sent, by the sender's clock.
    pub sent_ns: u64,
    /// `sent_ns` of the last hello that the sender heard, 0 if none.
    pub echo_sent_ns: u64,
    /// Time since the sender heard that hello.
    pub held_ns: u64,
    /// Whether the sender requests an answer.
    pub asks: bool,
    /// Digest of the receiver's offers as the sender knows them; 0 if unknown.
    pub knows: u64,
    /// What the sender observed of the receiver's packets; empty if unchanged.
    pub reports: Vec<LossReport>,
    /// The sender's services; empty if unchanged.
    pub offers: Vec<ServiceOffer>,
    /// The table as text, if the receiver may not know it.
    pub table: Option<String>,
}

impl Hello {
    /// Appends the body of the frame to `out`. Reports and offers beyond 16 and text beyond 64 kB are cut off.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let reports = &self.reports[..self.reports.len().min(MAX_REPORTS)];
        let offers = &self.offers[..self.offers.len().min(MAX_OFFERS)];
        let mut flags = 0;
        if self.table.is_some() {
            flags |= FLAG_TABLE;
        }
        if self.retired {
            flags |= FLAG_RETIRED;
        }
        if self.asks {
            flags |= FLAG_ASKS;
        }
        out.extend_from_slice(&[VERSION, flags, reports.len() as u8, offers.len() as u8]);
        for word in [self.epoch, self.nonce, self.echo, self.digest] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.session.to_be_bytes());
        for word in [self.sent_ns, self.echo_sent_ns, self.held_ns, self.knows] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        for report in reports {
            out.push(report.service);
            out.extend_from_slice(&report.received_packets.to_be_bytes());
            out.extend_from_slice(&report.lost_packets.to_be_bytes());
            out.extend_from_slice(&report.loss_ppm.unwrap_or(u32::MAX).to_be_bytes());
        }
        for offer in offers {
            offer.encode(out);
        }
        if let Some(table) = &self.table {
            let text = table.as_bytes();
            let text = &text[..text.len().min(usize::from(u16::MAX))];
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
            out.extend_from_slice(text);
        }
    }

    /// Decodes the body of a hello frame.
    ///
    /// # Errors
    /// If the bytes are not exactly one hello of this version.
    pub fn decode(body: &[u8]) -> Result<Self, HelloError> {
        let mut reader = Reader { body, at: 0 };
        let [theirs] = reader.take()?;
        if theirs != VERSION {
            return Err(HelloError::Version {
                ours: VERSION,
                theirs,
            });
        }
        reader.need(FIXED - 1)?;
        let [flags, reports, offers] = reader.take()?;
        let (reports, offers) = (usize::from(reports), usize::from(offers));
        if reports > MAX_REPORTS {
            return Err(HelloError::Reports { reports });
        }
        if offers > MAX_OFFERS {
            return Err(HelloError::Offers { offers });
        }
        let mut hello = Self {
            epoch: reader.word()?,
            nonce: reader.word()?,
            echo: reader.word()?,
            digest: reader.word()?,
            session: u32::from_be_bytes(reader.take()?),
            retired: flags & FLAG_RETIRED != 0,
            sent_ns: reader.word()?,
            echo_sent_ns: reader.word()?,
            held_ns: reader.word()?,
            asks: flags & FLAG_ASKS != 0,
            knows: reader.word()?,
            reports: Vec::with_capacity(reports),
            offers: Vec::with_capacity(offers),
            table: None,
        };
        reader.need(reports * REPORT)?;
        for _ in 0..reports {
            let [service] = reader.take()?;
            hello.reports.push(LossReport {
                service,
                received_packets: reader.word()?,
                lost_packets: reader.word()?,
                loss_ppm: Some(u32::from_be_bytes(reader.take()?)).filter(|ppm| *ppm != u32::MAX),
            });
        }
        reader.need(offers * ServiceOffer::LEN)?;
        for _ in 0..offers {
            let [service] = reader.take()?;
            hello.offers.push(ServiceOffer {
                service,
                instance: u32::from_be_bytes(reader.take()?),
                partner: u32::from_be_bytes(reader.take()?),
                terms: reader.word()?,
            });
        }
        if flags & FLAG_TABLE != 0 {
            let length = usize::from(u16::from_be_bytes(reader.take()?));
            let text = reader.bytes(length)?;
            let text = std::str::from_utf8(text).map_err(|_| HelloError::Table)?;
            hello.table = Some(text.to_owned());
        }
        match body.len() - reader.at {
            0 => Ok(hello),
            extra => Err(HelloError::TooLong { extra }),
        }
    }
}

/// Reads bytes from front to back; refuses to read past the end.
struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn need(&self, more: usize) -> Result<(), HelloError> {
        let (need, got) = (self.at + more, self.body.len());
        if need > got {
            return Err(HelloError::Truncated { need, got });
        }
        Ok(())
    }

    fn bytes(&mut self, n: usize) -> Result<&'a [u8], HelloError> {
        self.need(n)?;
        let bytes = &self.body[self.at..self.at + n];
        self.at += n;
        Ok(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], HelloError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn word(&mut self) -> Result<u64, HelloError> {
        Ok(u64::from_be_bytes(self.take()?))
    }
}
