//! Compressed TCP/IP headers: the differences from another packet of the same connection (after Jacobson, RFC
//! 1144, with the timestamps of RFC 7323).
//!
//! Both ends of a service keep the headers of each connection in numbered *contexts*. Where every packet
//! arrives once and in order, as the reliable services promise, a *short* packet differs from the previous
//! one (`shorten`); elsewhere an *anchored* one differs from the packet that opened its context (`anchors`).
//!
//! ```text
//! opening  | the packet, but: version 5 for 4 and 7 for 6, and the context in place of the length
//! short    | 0x30 | context:8 | traffic class:8 | changes:8 | TCP checksum:16 | fields | data
//! anchored | 0x31 | the same
//!
//! changes, and their fields in this order:
//!   0x80 anchored: sequence number, how much further, n
//!   0x01 ack          how much further, n           0x10 options        a length, the bytes
//!   0x02 window       the field                     0x20 IPv4 number    the field; else one more
//!   0x04 timestamp    how much further, n           0x40 PSH            (no field) the flag is set
//!   0x08 its echo     how much further, n
//! ```
//! `n` is a 32-bit number, seven bits per byte, the lowest first; the highest bit is set in all bytes but the
//! last. The IP length follows from the frame's, the sequence number of a short packet from the previous one,
//! and the checksum of IPv4 is computed. TCP's checksum is sent, so the receiving host discards a wrongly
//! restored packet.
//!
//! An opening packet is no longer than the original: IP versions 5 and 7 are unassigned (IANA), and its
//! length need not be sent. Every packet carries its traffic class, where the link can add marks.
//!
//! A packet that differs in other fields opens its context anew or is sent in full: SYN, FIN and RST,
//! retransmissions, ECN flags in TCP. Always sent in full: everything but TCP, IPv4 options, IPv6 extension
//! headers, urgent data, and fragments.

/// Maximum number of contexts of a service.
pub const CONTEXTS: usize = 64;
/// The longest header that is understood: IPv6 with all of TCP's options.
pub const LONGEST: usize = V6 + 20 + MOST_OPTIONS;
/// Longest header of a short packet: everything has changed.
pub const LONGEST_SHORT: usize = FIELDS_AT + 5 + 5 + 2 + 1 + MOST_OPTIONS + 2;
/// Offset of the traffic class in a short packet.
pub const CLASS_AT: usize = 2;
/// Bytes of an opening packet that differ from the original.
pub const OPENING_HEAD: usize = 6;

const SHORT: u8 = 0x30;
const ANCHORED: u8 = 0x31;
/// The bit that turns version 4 into 5, and 6 into 7.
const OPENS: u8 = 0x10;
const FIELDS_AT: usize = 6;

const V4: usize = 20;
const V6: usize = 40;
const TCP: u8 = 6;

const CHANGED_ACK: u8 = 0x01;
const CHANGED_WINDOW: u8 = 0x02;
const CHANGED_STAMP: u8 = 0x04;
const CHANGED_ECHO: u8 = 0x08;
const CHANGED_OPTIONS: u8 = 0x10;
const CHANGED_NUMBER: u8 = 0x20;
const PUSHED: u8 = 0x40;
const MOVED: u8 = 0x80;

/// TCP flags.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;

/// NOP, NOP, timestamps: the common encoding of the option, and its length.
const STAMPS: [u8; 4] = [1, 1, 8, 10];
const STAMPS_LEN: usize = 12;
/// Maximum bytes of TCP options.
const MOST_OPTIONS: usize = 40;

/// How the headers in a frame are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In full.
    Whole,
    /// In full, opening a context.
    Opening,
    /// As differences from the previous packet.
    Short,
    /// As differences from the packet that opened the context.
    Anchored,
}

/// The encoding of a packet; none if it is not a packet.
pub fn form(bytes: &[u8]) -> Option<Form> {
    match bytes.first()? >> 4 {
        4 if bytes.len() >= V4 => Some(Form::Whole),
        6 if bytes.len() >= V6 => Some(Form::Whole),
        5 if bytes.len() >= V4 => Some(Form::Opening),
        7 if bytes.len() >= V6 => Some(Form::Opening),
        3 if bytes.len() < FIELDS_AT => None,
        3 if bytes[0] == SHORT => Some(Form::Short),
        3 if bytes[0] == ANCHORED => Some(Form::Anchored),
        _ => None,
    }
}

/// Converts an opening packet's version to that of IP, or back.
fn toggle_opening(bytes: &mut [u8]) {
    if let Some(first) = bytes.first_mut() {
        *first ^= OPENS;
    }
}

/// The IP and TCP headers of a packet, and the sequence number after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    bytes: [u8; LONGEST],
    len: usize,
    /// Length of the IP header.
    ip: usize,
    /// Number of the byte after the data.
    next: u32,
}

impl Headers {
    /// The headers of a packet, if they can be compressed.
    pub fn of(packet: &[u8]) -> Option<Self> {
        Self::read(packet, packet.len())
    }

    /// The context that a packet opens, and its original headers. None if no valid packet had them.
    pub fn opened(packet: &[u8]) -> Option<(usize, Self)> {
        let at = match form(packet)? {
            Form::Opening => length_at(packet[0] & !OPENS),
            Form::Whole | Form::Short | Form::Anchored => return None,
        };
        let context = usize::from(u16_at(packet, at));
        let mut bytes = [0; LONGEST];
        let known = packet.len().min(LONGEST);
        bytes[..known].copy_from_slice(&packet[..known]);
        toggle_opening(&mut bytes);
        let stated = packet.len() - uncounted(bytes[0]);
        bytes[at..at + 2].copy_from_slice(&u16::try_from(stated).ok()?.to_be_bytes());
        let headers = Self::read(&bytes[..known], packet.len())?;
        (context < CONTEXTS).then_some((context, headers))
    }

    /// The headers of a packet of `len` bytes that begins with these.
    fn read(bytes: &[u8], len: usize) -> Option<Self> {
        let first = *bytes.first()?;
        let ip = match first >> 4 {
            4 if first == 0x45 => V4,
            6 => V6,
            _ => return None,
        };
        let tcp = bytes.get(ip..)?.first_chunk::<20>()?;
        let all = ip + usize::from(tcp[12] >> 4) * 4;
        if all < ip + 20 || bytes.len() < all {
            return None;
        }
        let mut headers = Self {
            bytes: [0; LONGEST],
            len: all,
            ip,
            next: 0,
        };
        headers.bytes[..all].copy_from_slice(&bytes[..all]);
        let ends = u32::from(tcp[13] & FIN != 0) + u32::from(tcp[13] & SYN != 0);
        let data = u32::try_from(len - all).ok()?;
        headers.next = headers.seq().wrapping_add(data).wrapping_add(ends);

        let tcp_alone = match ip {
            // "Don't fragment" does not make it a fragment.
            V4 => {
                let fragment = u16_at(bytes, 6) & 0xbfff != 0;
                bytes[9] == TCP && !fragment && headers.ip_checksum() == u16_at(bytes, 10)
            }
            _ => bytes[6] == TCP,
        };
        let stated = usize::from(u16_at(bytes, length_at(first)));
        let plain = tcp[12] & 0x0f == 0 && tcp[13] & URG == 0 && u16_at(tcp, 18) == 0;
        (tcp_alone && plain && stated + uncounted(first) == len).then_some(headers)
    }

    /// The bytes of both headers.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Whether both are of one connection, in one direction.
    pub fn same_connection(&self, other: &Self) -> bool {
        let addresses = if self.ip == V4 { 12..V4 } else { 8..V6 };
        let ports = self.ip..self.ip + 4;
        self.ip == other.ip
            && self.bytes[ports.clone()] == other.bytes[ports]
            && self.bytes[addresses.clone()] == other.bytes[addresses]
    }

    /// The first bytes of an opening packet with these headers, in place of as many original ones.
    pub fn opening(&self, context: usize) -> [u8; OPENING_HEAD] {
        let mut head = [0; OPENING_HEAD];
        head.copy_from_slice(&self.bytes[..OPENING_HEAD]);
        let at = length_at(head[0]);
        head[at..at + 2].copy_from_slice(&(context as u16).to_be_bytes());
        toggle_opening(&mut head);
        head
    }

    /// Writes the compressed form of the headers `now`, a packet of the same connection, relative to these:
    /// those of the previous packet or of the one that opened the context. Returns its length, or none if the
    /// context has to be opened anew.
    pub fn shortened(
        &self,
        now: &Self,
        context: usize,
        form: Form,
        short: &mut [u8; LONGEST_SHORT],
    ) -> Option<usize> {
        let (old, new) = (self.tcp(), now.tcp());
        let anchored = form == Form::Anchored;
        let moved = now.seq().wrapping_sub(self.next);
        let follows = (moved == 0 || anchored) && new[13] & !PSH == ACK;
        if self.ip != now.ip || !follows || self.lasting() != now.lasting() {
            return None;
        }
        let mut changes = 0;
        let mut at = FIELDS_AT;
        let mut put = |bytes: &[u8]| {
            short[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let further = |from: &[u8], to: &[u8], at| u32_at(to, at).wrapping_sub(u32_at(from, at));
        if moved != 0 {
            changes |= MOVED;
            write_number(moved, &mut put);
        }
        let ack = further(old, new, 8);
        if ack != 0 {
            changes |= CHANGED_ACK;
            write_number(ack, &mut put);
        }
        if old[14..16] != new[14..16] {
            changes |= CHANGED_WINDOW;
            put(&new[14..16]);
        }
        let (before, options) = (self.options(), now.options());
        if before != options {
            if has_stamps(before) && has_stamps(options) {
                for (change, at) in [(CHANGED_STAMP, 4), (CHANGED_ECHO, 8)] {
                    let n = further(before, options, at);
                    if n != 0 {
                        changes |= change;
                        write_number(n, &mut put);
                    }
                }
            } else {
                changes |= CHANGED_OPTIONS;
                put(&[options.len() as u8]);
                put(options);
            }
        }
        if self.ip == V4 && u16_at(&now.bytes, 4) != u16_at(&self.bytes, 4).wrapping_add(1) {
            changes |= CHANGED_NUMBER;
            put(&now.bytes[4..6]);
        }
        if new[13] & PSH != 0 {
            changes |= PUSHED;
        }
        let [high, low] = [new[16], new[17]];
        short[..FIELDS_AT].copy_from_slice(&[
            if anchored { ANCHORED } else { SHORT },
            context as u8,
            now.class(),
            changes,
            high,
            low,
        ]);
        Some(at)
    }

    /// The context that a short or anchored packet names.
    pub fn context_of(short: &[u8]) -> Option<usize> {
        matches!(form(short)?, Form::Short | Form::Anchored).then(|| usize::from(short[1]))
    }

    /// Restores the headers of a short packet from these of the previous packet, or of an anchored one, and
    /// tells how many of its bytes encoded them. None if no correct sender would have written it.
    pub fn expanded(&self, short: &[u8]) -> Option<(Self, usize)> {
        let moves = match form(short)? {
            Form::Short => 0,
            Form::Anchored => MOVED,
            Form::Whole | Form::Opening => return None,
        };
        let (head, fields) = short.split_first_chunk::<FIELDS_AT>()?;
        let [_, _, class, changes, high, low] = *head;
        let mut fields = Fields(fields);
        let (mut now, ip) = (*self, self.ip);
        now.set(ip + 4, self.next);
        if changes & moves != 0 {
            now.advance(ip + 4, fields.number()?);
        }
        if changes & CHANGED_ACK != 0 {
            now.advance(ip + 8, fields.number()?);
        }
        if changes & CHANGED_WINDOW != 0 {
            now.bytes[ip + 14..ip + 16].copy_from_slice(fields.take(2)?);
        }
        let stamps = [(CHANGED_STAMP, ip + 24), (CHANGED_ECHO, ip + 28)];
        let stamps = stamps
            .into_iter()
            .filter(|(change, _)| changes & change != 0);
        for (_, at) in stamps {
            if !has_stamps(self.options()) {
                return None;
            }
            now.advance(at, fields.number()?);
        }
        if changes & CHANGED_OPTIONS != 0 {
            let len = usize::from(*fields.take(1)?.first()?);
            let options = fields.take(len)?;
            if len % 4 != 0 || len > MOST_OPTIONS {
                return None;
            }
            now.len = ip + 20 + len;
            now.bytes[ip + 20..].fill(0);
            now.bytes[ip + 20..now.len].copy_from_slice(options);
            now.bytes[ip + 12] = (((20 + len) / 4) << 4) as u8;
        }
        now.bytes[ip + 13] = if changes & PUSHED == 0 {
            ACK
        } else {
            ACK | PSH
        };
        now.bytes[ip + 16..ip + 18].copy_from_slice(&[high, low]);

        if ip == V4 {
            let number = match changes & CHANGED_NUMBER {
                0 => u16_at(&self.bytes, 4).wrapping_add(1),
                _ => u16_at(fields.take(2)?, 0),
            };
            now.bytes[4..6].copy_from_slice(&number.to_be_bytes());
        }
        let (first, data) = (self.bytes[0], fields.0.len());
        let stated = u16::try_from(now.len + data - uncounted(first)).ok()?;
        let at = length_at(first);
        now.bytes[at..at + 2].copy_from_slice(&stated.to_be_bytes());
        now.set_class(class);
        now.next = now.seq().wrapping_add(data as u32);
        (changes & MOVED & !moves == 0).then_some((now, short.len() - data))
    }

    fn tcp(&self) -> &[u8] {
        &self.bytes[self.ip..self.len]
    }

    fn options(&self) -> &[u8] {
        &self.tcp()[20..]
    }

    /// Sequence number of the first byte.
    pub fn seq(&self) -> u32 {
        u32_at(self.tcp(), 4)
    }

    /// The number after the last byte.
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// Whether it begins a connection.
    pub fn begins(&self) -> bool {
        self.tcp()[13] & SYN != 0
    }

    /// Fields that stay constant within a connection: flags and fragment offset, time to live, protocol; the
    /// flow label of IPv6.
    fn lasting(&self) -> [u8; 5] {
        let [_, class, label, more, ..] = self.bytes;
        let of = |at: usize| self.bytes[at];
        match self.ip {
            V4 => [of(6), of(7), of(8), of(9), 0],
            _ => [class & 0x0f, label, more, of(6), of(7)],
        }
    }

    fn class(&self) -> u8 {
        match self.ip {
            V4 => self.bytes[1],
            _ => self.bytes[0] << 4 | self.bytes[1] >> 4,
        }
    }

    /// Must be the last change, because it recomputes the checksum of IPv4.
    fn set_class(&mut self, class: u8) {
        if self.ip == V4 {
            self.bytes[1] = class;
            let checksum = self.ip_checksum();
            self.bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            self.bytes[0] = 0x60 | class >> 4;
            self.bytes[1] = class << 4 | self.bytes[1] & 0x0f;
        }
    }

    /// The checksum of IPv4 (RFC 1071).
    fn ip_checksum(&self) -> u16 {
        let words = (0..V4).step_by(2).filter(|at| *at != 10);
        let sum: u32 = words.map(|at| u32::from(u16_at(&self.bytes, at))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        !((folded & 0xffff) + (folded >> 16)) as u16
    }

    fn set(&mut self, at: usize, to: u32) {
        self.bytes[at..at + 4].copy_from_slice(&to.to_be_bytes());
    }

    fn advance(&mut self, at: usize, by: u32) {
        self.set(at, u32_at(&self.bytes, at).wrapping_add(by));
    }
}

/// Offset of the length field in a header with this first byte.
const fn length_at(first: u8) -> usize {
    if first >> 4 == 4 { 2 } else { 4 }
}

/// Bytes that the length field does not count.
const fn uncounted(first: u8) -> usize {
    if first >> 4 == 4 { 0 } else { V6 }
}

fn has_stamps(options: &[u8]) -> bool {
    options.len() == STAMPS_LEN && options.starts_with(&STAMPS)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

/// The fields after the head of a short packet, read front to back.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        u32::try_from(airlane_base::varint::read(&mut self.0)?).ok()
    }
}

fn write_number(mut number: u32, put: &mut impl FnMut(&[u8])) {
    while number >= 0x80 {
        put(&[number as u8 | 0x80]);
        number >>= 7;
    }
    put(&[number as u8]);
}
