//! Which services the packets of a flow got, as the ports put them there.

/// Packets of one flow, by the direction of a link and the service. Few: it grows with the services that a flow meets,
/// and not with its packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served(Vec<(usize, u8, u64)>);

impl Served {
    /// The port at the near end of a direction has put a packet on a service.
    #[inline]
    pub(crate) fn add(&mut self, direction: usize, service: u8) {
        let known = self.0.iter_mut();
        let mut same = known.filter(|entry| (entry.0, entry.1) == (direction, service));
        match same.next() {
            Some((.., packets)) => *packets += 1,
            None => self.0.push((direction, service, 1)),
        }
    }

    /// The services of one direction that got packets, and how many.
    pub(crate) fn of(&self, direction: usize) -> impl Iterator<Item = (u8, u64)> {
        let here = self.0.iter().filter(move |entry| entry.0 == direction);
        here.map(|(_, service, packets)| (*service, *packets))
    }
}
