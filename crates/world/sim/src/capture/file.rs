//! One pcapng file with one interface.
//!
//! Times are nanoseconds since the run's origin. "Outbound" is what the first end of the link sends, or the node at
//! which the capture is taken.

use std::borrow::Cow;
use std::io::Write;

use airlane_base::{Instant, Rate};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgWriteError, PcapNgWriter};

/// What the records contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    /// IP packets: link type RAW.
    Ip,
    /// Frames of services: link type USER0.
    Frames,
    /// 802.11 frames, each after a radiotap header.
    Radiotap,
}

/// The comment on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    None,
    Lost,
    QueueFull,
}

/// Flag bits of a record: its direction, and the error "bad checksum".
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
const CRC_ERROR: u32 = 1 << 24;

/// A capture file. The first error ends it; [`finish`](Self::finish) returns it.
pub(super) struct CaptureFile<W: Write> {
    writer: Result<PcapNgWriter<W>, PcapNgWriteError>,
}

impl<W: Write> CaptureFile<W> {
    pub(super) fn new(writer: W, medium: LinkType, name: &str, rate: Rate) -> Self {
        let section = SectionHeaderBlock {
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(
                concat!("airlane ", env!("CARGO_PKG_VERSION")),
            ))],
            ..SectionHeaderBlock::default()
        };
        let interface = InterfaceDescriptionBlock {
            linktype: match medium {
                LinkType::Ip => DataLink::RAW,
                LinkType::Frames => DataLink::USER0,
                LinkType::Radiotap => DataLink::IEEE802_11_RADIOTAP,
            },
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfSpeed(rate.as_bps()),
                InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
            ],
        };
        let writer = PcapNgWriter::with_section_header(writer, section).and_then(|mut writer| {
            writer.write_pcapng_block(interface)?;
            Ok(writer)
        });
        Self { writer }
    }

    pub(super) fn write(&mut self, at: Instant, outbound: bool, bytes: &[u8], mark: Mark) {
        let Ok(writer) = &mut self.writer else { return };
        let direction = if outbound { OUTBOUND } else { INBOUND };
        let comment =
            |text| EnhancedPacketOption::Common(CommonOption::Comment(Cow::Borrowed(text)));
        let options = match mark {
            Mark::None => vec![EnhancedPacketOption::Flags(direction)],
            Mark::Lost => vec![
                EnhancedPacketOption::Flags(direction | CRC_ERROR),
                comment("lost on the air"),
            ],
            Mark::QueueFull => vec![
                EnhancedPacketOption::Flags(direction),
                comment("dropped: the queue is full"),
            ],
        };
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: std::time::Duration::from_nanos(at.as_nanos()),
            original_len: bytes.len() as u32,
            data: Cow::Borrowed(bytes),
            options,
        };
        if let Err(error) = writer.write_pcapng_block(block) {
            self.writer = Err(error);
        }
    }

    /// The first error, if any.
    pub(super) fn finish(self) -> Result<(), String> {
        let mut writer = self.writer.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            cause.unwrap_or_else(|| error.to_string())
        })?;
        writer.get_mut().flush().map_err(|e| e.to_string())
    }
}
