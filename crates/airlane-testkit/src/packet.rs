//! Packets that stand for bytes and know who they are.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use airlane_base::Payload;
use airlane_base::random::fnv1a;
use airlane_link::{FlowKey, Packet};

/// A numbered packet for one service: its DS code point is the number of the service, which is how
/// the classes of a [`Setup`](crate::Setup) read it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TestPacket {
    /// Its number among the packets of the same sender.
    pub id: u64,
    /// Service number, 0 to 15.
    pub service: u8,
    /// Bytes that it stands for.
    pub len: usize,
    /// What the image of coded bytes has beyond the check of its number; 0 in every packet.
    residue: u64,
    copy: Copied,
}

impl TestPacket {
    /// A packet for a service.
    pub fn new(service: u8, id: u64, len: usize) -> Self {
        Self {
            id,
            service,
            len,
            residue: 0,
            copy: Copied::default(),
        }
    }

    /// Stands for the checksums that real packets have.
    fn check(id: u64, service: u8) -> u64 {
        let mut bytes = [service; 9];
        bytes[..8].copy_from_slice(&id.to_le_bytes());
        fnv1a(&bytes) >> 24
    }

    /// The same, and every copy of it counted while it exists.
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
        let mut image = [self.service; 14];
        image[..8].copy_from_slice(&self.id.to_le_bytes());
        let check = Self::check(self.id, self.service) ^ self.residue;
        image[9..].copy_from_slice(&check.to_le_bytes()[..5]);
        image
    }

    fn coded(&self, image: &[u8], len: usize) -> Self {
        let mut whole = [0; 14];
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
        let packet = self.coded(image, len);
        (packet.residue == 0).then_some(packet)
    }
}

impl Packet for TestPacket {
    fn flow(&self) -> FlowKey {
        FlowKey {
            dscp: self.service,
            protocol: airlane_link::flow::UDP,
            src: Ipv4Addr::new(10, 0, 0, 1).into(),
            dst: Ipv4Addr::new(10, 0, 0, 2).into(),
            src_port: 1,
            dst_port: 2,
        }
    }
}

/// How many copies of packets exist: what a port keeps, seen from outside.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicUsize>);

impl Tally {
    /// Copies that exist now.
    pub fn copies(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts itself while it lives. All are equal: a copy is as good as the packet.
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
