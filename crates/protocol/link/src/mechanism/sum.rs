//! The XOR of packets: all that an XOR code keeps of a block, whatever the number of its packets.

use airlane_base::Payload;

use super::blocks::Store;

/// Images and lengths of packets, combined by XOR.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    image: Vec<u8>,
    len: u16,
    longest: usize,
}

impl Sum {
    /// Adds a packet, or the parity of others; `coded_len` is the XOR of their lengths.
    pub(crate) fn add(&mut self, payload: &impl Payload, coded_len: u16) {
        let image = payload.image();
        let image = image.as_ref();
        if self.image.len() < image.len() {
            self.image.resize(image.len(), 0);
        }
        for (sum, byte) in self.image.iter_mut().zip(image) {
            *sum ^= byte;
        }
        self.len ^= coded_len;
        self.longest = self.longest.max(payload.len());
    }

    /// The XOR of the lengths.
    pub(crate) const fn coded_len(&self) -> u16 {
        self.len
    }

    /// The parity of the packets added, as long as the longest of them.
    pub(crate) fn parity<P: Payload>(&self, lender: &P) -> P {
        lender.coded(&self.image, self.longest)
    }

    /// The missing packet, if this is the sum of the parity and all other packets.
    pub(crate) fn missing<P: Payload>(&self, lender: &P) -> Option<P> {
        lender.recovered(&self.image, usize::from(self.len))
    }
}

impl Store for Sum {
    fn clear(&mut self) {
        self.image.clear();
        (self.len, self.longest) = (0, 0);
    }
}

/// The length of a packet for [`Sum::add`]; no frame exceeds 16 bits.
pub(crate) fn coded_len(packet: &impl Payload) -> u16 {
    packet.len() as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_one_packet_is_recovered(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..20),
            which: prop::sample::Index,
        ) {
            let mut sender = Sum::default();
            packets.iter().for_each(|p| sender.add(p, coded_len(p)));
            let parity = sender.parity(&packets[0]);
            let longest = packets.iter().map(Vec::len).max().unwrap();
            prop_assert_eq!(parity.len(), longest);

            let lost = which.index(packets.len());
            let mut receiver = Sum::default();
            receiver.add(&parity, sender.coded_len());
            for (_, p) in packets.iter().enumerate().filter(|(i, _)| *i != lost) {
                receiver.add(p, coded_len(p));
            }
            let missing = receiver.missing(&parity);
            prop_assert_eq!(missing.as_ref(), Some(&packets[lost]));
            sender.clear();
            prop_assert!(sender.parity(&packets[0]).is_empty());
        }
    }
}
