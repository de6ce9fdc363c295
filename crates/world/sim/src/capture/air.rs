//! A capture of a radio channel: all frames of its stations, with radiotap headers (<https://www.radiotap.org>) as a
//! card in monitor mode writes them.
//!
//! A station's address is 02:00:00:00 followed by its index in the order of names; checksums are left out, as a flag
//! says. Packets and link frames follow LLC and SNAP headers, which the simulator does not count.

use std::io::Write;

use airlane_base::Duration;
use airlane_link::Port;
use airlane_wifi::place::dbm;
use airlane_wifi::profile::Modulation;
use airlane_wifi::{Aired, AiredKind};

use super::file::{CaptureFile, LinkType, Mark};
use crate::engine::radio::Carried;
use crate::headers::CaptureHeaders;
use crate::packet::Packet;
use crate::scenario::{Scenario, WifiConfig};

/// Presence bits of the radiotap fields: flags, rate, channel, signal; MCS in place of the rate.
const FLAGS: u32 = 1 << 1;
const RATE: u32 = 1 << 2;
const CHANNEL: u32 = 1 << 3;
const SIGNAL: u32 = 1 << 5;
const MCS: u32 = 1 << 19;
/// The frame has a bad checksum.
const BAD_FCS: u8 = 0x40;
/// 2.472 GHz, the frequency of the signal model.
const CHANNEL_MHZ: u16 = 2_472;
const CHANNEL_CCK: u16 = 0x00a0;
const CHANNEL_OFDM: u16 = 0x00c0;
/// Bandwidth (20 MHz) and index are known.
const MCS_KNOWN: u8 = 0b11;
/// Data bits per symbol of 802.11n at 20 MHz with one stream, by MCS.
const MCS_BITS: [u32; 8] = [26, 52, 78, 104, 156, 208, 234, 260];
/// LLC and SNAP headers before the EtherType.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
const IPV4: [u8; 2] = [8, 0];
/// The EtherType that live nodes use on raw Ethernet by default.
const FRAME: [u8; 2] = [0x88, 0xb5];
const RETRY: u8 = 0x08;

pub(super) struct AirCapture<W: Write> {
    pub(super) name: String,
    /// Index of the radio in the order of names.
    pub(super) radio: usize,
    headers: CaptureHeaders,
    file: CaptureFile<W>,
    bytes: Vec<u8>,
}

impl<W: Write> AirCapture<W> {
    pub(super) fn new(
        scenario: &Scenario,
        (radio, name, wifi): (usize, &str, &WifiConfig),
        writer: W,
    ) -> Self {
        Self {
            name: name.to_owned(),
            radio,
            headers: CaptureHeaders::new(scenario),
            file: CaptureFile::new(writer, LinkType::Radiotap, name, wifi.data_rate()),
            bytes: Vec::new(),
        }
    }

    pub(super) fn frame(&mut self, aired: &Aired<Carried>, port: Option<&Port<Packet>>) {
        self.bytes.clear();
        radiotap(aired, &mut self.bytes);
        mac(aired, &mut self.bytes);
        match (&aired.packet, port) {
            (Some(Carried::Packet(packet)), _) => {
                self.bytes.extend(SNAP);
                self.bytes.extend(IPV4);
                self.headers.write(packet, &mut self.bytes);
            }
            (Some(Carried::Frame(_, frame)), Some(port)) => {
                self.bytes.extend(SNAP);
                self.bytes.extend(FRAME);
                self.headers.write_frame(port, frame, &mut self.bytes);
            }
            _ => {}
        }
        let mark = if aired.came { Mark::None } else { Mark::Lost };
        self.file.write(aired.began, true, &self.bytes, mark);
    }

    pub(super) fn finish(self) -> Result<(), String> {
        self.file.finish()
    }
}

fn radiotap(aired: &Aired<Carried>, bytes: &mut Vec<u8>) {
    let mcs = match aired.modulation {
        Modulation::Ofdm { bits, .. } => MCS_BITS.iter().position(|known| *known == bits),
        Modulation::Dsss { .. } => None,
    };
    let rate = if mcs.is_some() { MCS } else { RATE };
    let present = FLAGS | rate | CHANNEL | SIGNAL;
    let start = bytes.len();
    bytes.extend([0; 4]);
    bytes.extend(present.to_le_bytes());
    bytes.push(if aired.came { 0 } else { BAD_FCS });
    if mcs.is_none() {
        // The unit of the field is 500 kbit/s.
        let steps = aired.modulation.bits_per_second() / 500_000;
        bytes.push(u8::try_from(steps).unwrap_or(u8::MAX));
    } else {
        // Padding: the channel field is aligned to an even offset.
        bytes.push(0);
    }
    let kind = match aired.modulation {
        Modulation::Dsss { .. } => CHANNEL_CCK,
        Modulation::Ofdm { .. } => CHANNEL_OFDM,
    };
    bytes.extend(CHANNEL_MHZ.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    let dbm = dbm(aired.power_w).clamp(-128.0, 127.0) as i8;
    bytes.push(dbm.cast_unsigned());
    if let Some(index) = mcs {
        bytes.extend([MCS_KNOWN, 0, index as u8]);
    }
    let len = (bytes.len() - start) as u16;
    bytes[start + 2..start + 4].copy_from_slice(&len.to_le_bytes());
}

fn mac(aired: &Aired<Carried>, bytes: &mut Vec<u8>) {
    let (control, flags) = match aired.kind {
        AiredKind::Data => (0x08, if aired.again { RETRY } else { 0 }),
        AiredKind::Ack => (0xd4, 0),
        AiredKind::Cts => (0xc4, 0),
        AiredKind::Rts => (0xb4, 0),
    };
    bytes.extend([control, flags]);
    bytes.extend(micros(aired.nav).to_le_bytes());
    bytes.extend(address(aired.to));
    match aired.kind {
        AiredKind::Ack | AiredKind::Cts => {}
        AiredKind::Rts => bytes.extend(address(aired.from)),
        AiredKind::Data => {
            bytes.extend(address(aired.from));
            // A BSSID that is no station's address.
            bytes.extend([0x02, 0, 0, 0, 0xff, 0xff]);
            bytes.extend((((aired.seq & 0xfff) << 4) as u16).to_le_bytes());
        }
    }
}

fn address(station: usize) -> [u8; 6] {
    let [.., high, low] = (station as u32).to_be_bytes();
    [0x02, 0, 0, 0, high, low]
}

/// A time in microseconds, as the header has it, rounded up.
fn micros(time: Duration) -> u16 {
    u16::try_from(time.as_nanos().div_ceil(1_000)).unwrap_or(0x7fff)
}
