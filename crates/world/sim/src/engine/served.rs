//! Which services carried the packets of a flow, as the ports assigned them.

/// Packets of one flow, by direction of a link and service. Short: it grows with the services that a flow uses, not
/// with its packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Served(Vec<(usize, u8, u64)>);

impl Served {
    /// The port at the near end of a direction has assigned a packet to a service.
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
