//! Peers with a common bottleneck share the capacity that their ports find there, by their weights.

use airlane_base::Instant;
use airlane_link::Below;

use super::Node;

impl Node {
    /// Detects ports with a common bottleneck, and shifts capacity between them.
    pub(crate) fn share_bottlenecks(&mut self, now: Instant) {
        if self.links.all.len() < 2 || now < self.bottlenecks.poll_timeout() {
            return;
        }
        let Self {
            bottlenecks,
            below_ports: seen,
            links,
            ..
        } = self;
        seen.clear();
        let links_seen = links.all.iter();
        seen.extend(links_seen.map(|(number, link)| Below {
            port: *number,
            weight: link.config.weight,
            seen: link.port.seen(now),
        }));
        bottlenecks.look(now, seen, |number, bps| {
            if let Some(link) = links.get_mut(number) {
                link.port.shift_found(now, bps);
            }
        });
        while let Some((a, b, together)) = self.bottlenecks.poll_change() {
            if let (Some(a), Some(b)) = (self.links.all.get(&a), self.links.all.get(&b)) {
                let (peer, other) = (&a.config.name, &b.config.name);
                match together {
                    true => tracing::info!(%peer, %other, "they share a bottleneck, by weight"),
                    false => tracing::info!(%peer, %other, "they no longer share a bottleneck"),
                }
            }
        }
    }

    /// Names of the peers that share a bottleneck with the link of this number.
    pub(crate) fn shares_with(&self, number: u8) -> Vec<String> {
        let others = self.links.all.iter();
        let others = others.filter(|(other, _)| self.bottlenecks.are_together(number, **other));
        others.map(|(_, link)| link.config.name.clone()).collect()
    }
}
