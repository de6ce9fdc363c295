//! The framing of blocks and the limits, for encoder and decoder.

/// The first bytes of every trace.
pub const MAGIC: &[u8; 8] = b"airtrace";
pub(super) const VERSION: u8 = 1;
/// Bytes in front of a block's records: end, length, checksum.
pub(super) const BLOCK_HEAD: usize = 9;
/// Longest header and longest block that are read.
pub(super) const LONGEST_HEADER: usize = 1 << 16;
pub(super) const LONGEST_BLOCK: usize = 1 << 20;
/// Latest time of a record: nine years, far within the range of nanoseconds.
pub(super) const LATEST_US: u64 = 1 << 48;
/// Longest frame.
pub(super) const LONGEST_FRAME: u64 = 1 << 16;

pub(super) const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// Length of the block at the front, without a check of its checksum; `None` if it is truncated.
pub fn block_len(bytes: &[u8]) -> Option<usize> {
    let [_, l0, l1, l2, l3, ..] = *bytes.first_chunk::<BLOCK_HEAD>()?;
    let len = BLOCK_HEAD + u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    (len <= bytes.len()).then_some(len)
}

/// Length of all complete blocks at the front.
pub fn whole_blocks(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(len) = block_len(&bytes[at..]) {
        at += len;
    }
    at
}
