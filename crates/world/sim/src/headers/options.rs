//! TCP options, encoded in the order that Linux uses.

/// NOP, which pads to a multiple of four bytes where Linux does.
const NOTHING: u8 = 1;
const LARGEST_SEGMENT: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// For experiments (RFC 6994): kind, length, an identifier, and a value.
const EXPERIMENT: u8 = 253;
/// Bytes of the timestamps option with its two NOPs.
pub(super) const STAMPS_LEN: u64 = 12;

/// Timestamp value and echo reply.
pub(super) type Stamps = [u32; 2];

/// The options of one header.
#[derive(Clone, Debug, Default)]
pub(super) struct Options(Vec<u8>);

impl Options {
    /// The options of a SYN or SYN-ACK.
    pub(super) fn of_syn(
        largest: u16,
        sack: bool,
        stamps: Option<Stamps>,
        shift: Option<u32>,
    ) -> Self {
        let mut options = vec![LARGEST_SEGMENT, 4];
        options.extend(largest.to_be_bytes());
        if sack {
            options.extend([SACK_PERMITTED, 2]);
        }
        put_stamps(&mut options, stamps);
        if let Some(shift) = shift {
            // The largest window scale is 14 (RFC 7323).
            options.extend([WINDOW_SCALE, 3, shift as u8]);
        }
        options.resize(options.len().next_multiple_of(4), NOTHING);
        Self(options)
    }

    /// The options of any other segment, before SACK blocks and the like.
    pub(super) fn with_stamps(stamps: Option<Stamps>) -> Self {
        let mut options = vec![];
        if stamps.is_some() {
            options.extend([NOTHING; 2]);
        }
        put_stamps(&mut options, stamps);
        Self(options)
    }

    /// Adds SACK blocks for out-of-order or duplicate data (RFC 2018, RFC 2883), if any.
    pub(super) fn push_blocks(&mut self, blocks: &[[u32; 2]]) {
        if !blocks.is_empty() {
            // At most three blocks fit beside timestamps.
            let len = 2 + 8 * blocks.len() as u8;
            self.0.extend([NOTHING, NOTHING, SACK, len]);
            let numbers = blocks.as_flattened().iter();
            self.0
                .extend(numbers.flat_map(|number| number.to_be_bytes()));
        }
    }

    /// Adds the segment that caused an acknowledgment (SMART).
    pub(super) fn push_cause(&mut self, seq: u32) {
        self.0.extend([EXPERIMENT, 8, b'S', b'M']);
        self.0.extend(seq.to_be_bytes());
    }

    /// Adds an explicit loss notification.
    pub(super) fn push_loss(&mut self) {
        self.0.extend([EXPERIMENT, 4, b'E', b'L']);
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn put_stamps(options: &mut Vec<u8>, stamps: Option<Stamps>) {
    if let Some(stamps) = stamps {
        options.extend([TIMESTAMPS, 10]);
        options.extend(stamps.iter().flat_map(|stamp| stamp.to_be_bytes()));
    }
}
