//! Packets that stand for bytes and carry an identity.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use airlane_base::Payload;
use airlane_base::random::fnv1a;
use airlane_link::pack::contents::{AGGREGATE_HEAD, FRAGMENT_HEAD, len_together};
use airlane_link::pack::{Contents, Divisible, Fragment};
use airlane_link::{FlowKey, Packet};

/// A numbered packet for one service. Its DSCP is the number of the service, which the classes of a
/// [`Setup`](crate::Setup) match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TestPacket {
    /// Its number among the packets of the same sender.
    pub id: u64,
    /// Service number, 0 to 15.
    pub service: u8,
    /// The sender's flow that it belongs to; not part of coded bytes.
    pub flow: u16,
    /// The length that it stands for, bytes.
    pub len: usize,
    /// The difference between an image of coded bytes and a packet's image with the same number; 0 in every packet.
    residue: u64,
    /// The payload, if it is not a single packet.
    other: Option<Arc<Other>>,
    copy: Copied,
}

/// A payload that is not a single packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Other {
    /// Several packets.
    Together(Vec<TestPacket>),
    /// A fragment of a packet, from one offset to another.
    Part(Fragment, TestPacket, (u16, u16)),
    /// An image of coded bytes, with another length than a packet's image.
    Image(Vec<u8>),
}

/// Length of a packet's image. Other images begin with this marker.
const IMAGE: usize = 14;
const OTHERS: [u8; IMAGE] = [0xff; IMAGE];

impl TestPacket {
    /// A packet for a service.
    pub fn new(service: u8, id: u64, len: usize) -> Self {
        Self {
            id,
            service,
            flow: 0,
            len,
            residue: 0,
            other: None,
            copy: Copied::default(),
        }
    }

    /// The same packet in another flow of its sender.
    #[must_use]
    pub fn of_flow(self, flow: u16) -> Self {
        Self { flow, ..self }
    }

    /// Takes the place of the checksums of real packets.
    fn check(id: u64, service: u8) -> u64 {
        let mut bytes = [service; 9];
        bytes[..8].copy_from_slice(&id.to_le_bytes());
        fnv1a(&bytes) >> 24
    }

    /// A payload other than a single packet, of this length.
    fn of(other: Other, len: usize) -> Self {
        Self {
            other: Some(Arc::new(other)),
            ..Self::new(0xff, u64::MAX, len)
        }
    }

    /// The packets in this payload, whole or in part.
    pub fn all(&self) -> Vec<Self> {
        match self.other.as_deref() {
            None => vec![self.clone()],
            Some(Other::Together(packets)) => packets.clone(),
            Some(Other::Part(_, packet, _)) => vec![packet.clone()],
            Some(Other::Image(_)) => vec![],
        }
    }

    fn write(&self, image: &mut Vec<u8>) {
        let at = image.len();
        image.resize(at + IMAGE, self.service);
        image[at..at + 8].copy_from_slice(&self.id.to_le_bytes());
        let check = Self::check(self.id, self.service) ^ self.residue;
        image[at + 9..].copy_from_slice(&check.to_le_bytes()[..5]);
        image.extend_from_slice(&(self.len as u16).to_le_bytes());
    }

    fn read(image: &[u8]) -> Option<Self> {
        let (packet, len) = image.split_at_checked(IMAGE)?;
        let len = u16::from_le_bytes(len.try_into().ok()?);
        Self::new(0, 0, 0).recovered(packet, len.into())
    }

    fn read_other(image: &[u8], len: usize) -> Option<Self> {
        const EACH: usize = IMAGE + 2;
        let rest = image.strip_prefix(&OTHERS)?;
        let (&[count, index, high, low, last, ..], rest) = (rest.first_chunk::<9>()?, &rest[9..]);
        let which = Fragment {
            packet: u16::from_be_bytes([high, low]),
            index,
            last: last != 0,
        };
        let place = image.get(IMAGE + 5..IMAGE + 9)?;
        let place = (
            u16::from_le_bytes([place[0], place[1]]),
            u16::from_le_bytes([place[2], place[3]]),
        );
        let (packets, padding) = rest.split_at_checked(usize::from(count.max(1)) * EACH)?;
        let packets: Option<Vec<_>> = packets.chunks(EACH).map(Self::read).collect();
        let mut packets = packets?;
        let other = match count {
            0 => Self::of(Other::Part(which, packets.pop()?, place), len),
            _ => Self::of(Other::Together(packets), len),
        };
        (padding.iter().all(|byte| *byte == 0)).then_some(other)
    }

    /// Counts the packet and all its copies while they exist.
    #[must_use]
    pub fn counted(self, tally: &Tally) -> Self {
        tally.0.fetch_add(1, Ordering::Relaxed);
        Self {
            copy: Copied(Some(Arc::clone(&tally.0))),
            ..self
        }
    }
}

impl Payload for TestPacket {
    fn len(&self) -> usize {
        self.len
    }

    fn image(&self) -> impl AsRef<[u8]> {
        let mut image = OTHERS.to_vec();
        match self.other.as_deref() {
            None => {
                image.clear();
                self.write(&mut image);
                image.truncate(IMAGE);
            }
            Some(Other::Image(bytes)) => image.clone_from(bytes),
            Some(Other::Together(packets)) => {
                image.extend_from_slice(&[packets.len() as u8, 0, 0, 0, 0, 0, 0, 0, 0]);
                packets.iter().for_each(|packet| packet.write(&mut image));
            }
            Some(Other::Part(which, packet, (from, to))) => {
                let [high, low] = which.packet.to_be_bytes();
                image.extend_from_slice(&[0, which.index, high, low, which.last.into()]);
                image.extend_from_slice(&from.to_le_bytes());
                image.extend_from_slice(&to.to_le_bytes());
                packet.write(&mut image);
            }
        }
        image
    }

    fn coded(&self, image: &[u8], len: usize) -> Self {
        if image.iter().skip(IMAGE).any(|byte| *byte != 0) {
            return Self::of(Other::Image(image.to_vec()), len);
        }
        let mut whole = [0; IMAGE];
        let known = image.len().min(whole.len());
        whole[..known].copy_from_slice(&image[..known]);
        let [a, b, c, d, e, f, g, h, service, v, w, x, y, z] = whole;
        let id = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Self {
            residue: u64::from_le_bytes([v, w, x, y, z, 0, 0, 0]) ^ Self::check(id, service),
            copy: self.copy.clone(),
            ..Self::new(service, id, len)
        }
    }

    fn recovered(&self, image: &[u8], len: usize) -> Option<Self> {
        if image.starts_with(&OTHERS) {
            return Self::read_other(image, len);
        }
        let packet = self.coded(image, len);
        (packet.residue == 0 && packet.other.is_none()).then_some(packet)
    }
}

impl Divisible for TestPacket {
    const DIVISIBLE: bool = true;

    fn contents(&self) -> Contents {
        match self.other.as_deref() {
            None => Contents::Packet,
            Some(Other::Together(_)) => Contents::Aggregate,
            Some(Other::Part(which, ..)) => Contents::Fragment(*which),
            Some(Other::Image(_)) => Contents::Malformed,
        }
    }

    fn aggregated(packets: &[Self]) -> Option<Self> {
        let lens = packets.iter().map(|packet| len_together(packet.len));
        let len = AGGREGATE_HEAD + lens.sum::<usize>();
        Some(Self::of(Other::Together(packets.to_vec()), len))
    }

    fn packets(&self, each: &mut dyn FnMut(Self)) {
        self.all().into_iter().for_each(each);
    }

    fn fragment(&self, which: Fragment, from: usize, to: usize) -> Option<Self> {
        let place = (from as u16, to as u16);
        let part = Other::Part(which, self.clone(), place);
        Some(Self::of(part, FRAGMENT_HEAD + to - from))
    }

    fn reassembled(fragments: &[Option<Self>]) -> Option<Self> {
        let mut whole: Option<(Self, u16)> = None;
        for fragment in fragments {
            let Other::Part(_, packet, (from, to)) = fragment.as_ref()?.other.as_deref()? else {
                return None;
            };
            let (first, at) = whole.get_or_insert((packet.clone(), 0));
            if *first != *packet || *at != *from {
                return None;
            }
            *at = *to;
        }
        let (packet, at) = whole?;
        (packet.len == usize::from(at)).then_some(packet)
    }
}

impl Packet for TestPacket {
    fn flow(&self) -> FlowKey {
        FlowKey {
            dscp: self.service,
            protocol: airlane_link::flow::UDP,
            src: Ipv4Addr::new(10, 0, 0, 1).into(),
            dst: Ipv4Addr::new(10, 0, 0, 2).into(),
            src_port: 1 + self.flow,
            dst_port: 2,
        }
    }
}

/// The number of existing copies of packets: a port's buffers, seen from outside.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicUsize>);

impl Tally {
    /// Copies that exist now.
    pub fn copies(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts itself while it exists. All values are equal: a copy is the same as the packet.
#[derive(Debug, Default)]
struct Copied(Option<Arc<AtomicUsize>>);

impl Clone for Copied {
    fn clone(&self) -> Self {
        if let Some(count) = &self.0 {
            count.fetch_add(1, Ordering::Relaxed);
        }
        Self(self.0.clone())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl PartialEq for Copied {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Copied {}

impl std::hash::Hash for Copied {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted() {
        let tally = Tally::default();
        let packet = TestPacket::new(0, 1, 10).counted(&tally);
        let copies = vec![packet.clone(); 3];
        assert_eq!(tally.copies(), 4);
        drop(copies);
        drop(packet);
        assert_eq!(tally.copies(), 0);
    }
}
