//! What a path of several links can offer, composed from the offers of each link's services (Xylomenos 1999,
//! section 8.3, in the manner of OPWA; section 10.4 of docs/spec/multi-service.md).
//!
//! ```text
//! loss         1 - (1 - l_1)(1 - l_2)...
//! delay        (d_1 + q_1) + (d_2 + q_2) + ...      q: the wait in the port in front of the link
//! throughput   min over links of B r e              rate, share of the service, effective goodput
//! ```
//!
//! Only services of one class combine: those equally reliable and alike in keeping the order. A link without
//! services combines with every class. Of the combinations of a class only the undominated ones are kept: the
//! Pareto set. It is built link by link, since what dominates on a part of a path dominates with any
//! continuation; so the number of combinations does not explode.

use serde::Serialize;

/// How far a service repairs losses: a property of its scheme, not a measured value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Nothing is repaired.
    None,
    /// Losses are repaired with limited effort.
    Limited,
    /// Losses are repaired until everything has arrived.
    Full,
}

/// What services must have in common to be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Class {
    /// How far losses are repaired.
    pub reliability: Reliability,
    /// Whether packets leave the link in order.
    pub in_order: bool,
}

/// What one link offers with one of its services.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// The service; none for a link without services.
    pub service: Option<u8>,
    /// Its class; none combines with all.
    pub class: Option<Class>,
    /// B r e: the expected throughput of the service, bit/s.
    pub capacity_bps: f64,
    /// Share of packets lost for good; none where the service cannot see its losses.
    pub loss: Option<f64>,
    /// One-way delay, including the queueing delay before the link, seconds.
    pub delay_s: f64,
}

/// What a path offers with one combination of services.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathOffer {
    /// The service of each link, in order; none for links without services.
    pub services: Vec<Option<u8>>,
    /// Their class; none if no link has services.
    pub class: Option<Class>,
    /// Expected throughput of a flow that always has data to send, bit/s.
    pub capacity_bps: f64,
    /// Share of packets lost for good; none where one of the services cannot see its losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// One-way delay, seconds.
    pub delay_s: f64,
}

impl PathOffer {
    /// The path without links: no loss, no delay, unlimited capacity.
    fn empty() -> Self {
        Self {
            services: vec![],
            class: None,
            capacity_bps: f64::INFINITY,
            loss_ratio: Some(0.0),
            delay_s: 0.0,
        }
    }

    /// The path extended by one link; none if the service is of another class.
    fn then(&self, offer: &Offer) -> Option<Self> {
        let class = match (self.class, offer.class) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        let mut services = self.services.clone();
        services.push(offer.service);
        Some(Self {
            services,
            class,
            capacity_bps: self.capacity_bps.min(offer.capacity_bps),
            loss_ratio: (self.loss_ratio.zip(offer.loss))
                .map(|(before, here)| 1.0 - (1.0 - before) * (1.0 - here)),
            delay_s: self.delay_s + offer.delay_s,
        })
    }

    /// Whether it dominates the other: same class, as good in everything and better in something.
    fn beats(&self, other: &Self) -> bool {
        // An offer of unknown loss cannot be compared with one of known loss.
        let comparable = self.loss_ratio.is_some() == other.loss_ratio.is_some();
        let as_good = self.capacity_bps >= other.capacity_bps
            && self.loss_ratio <= other.loss_ratio
            && self.delay_s <= other.delay_s;
        let better = self.capacity_bps > other.capacity_bps
            || self.loss_ratio < other.loss_ratio
            || self.delay_s < other.delay_s;
        self.class == other.class && comparable && as_good && better
    }
}

/// All undominated offers of a path. `links` holds each link's offers, in the order of the path.
pub fn compose(links: &[Vec<Offer>]) -> Vec<PathOffer> {
    let mut paths = vec![PathOffer::empty()];
    for offers in links {
        let longer = paths
            .iter()
            .flat_map(|path| offers.iter().filter_map(|offer| path.then(offer)));
        paths = pareto(longer.collect());
    }
    paths
}

fn pareto(paths: Vec<PathOffer>) -> Vec<PathOffer> {
    let unbeaten = |path: &&PathOffer| !paths.iter().any(|other| other.beats(path));
    paths.iter().filter(unbeaten).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FULL: Class = Class {
        reliability: Reliability::Full,
        in_order: true,
    };
    const RAW: Class = Class {
        reliability: Reliability::None,
        in_order: true,
    };

    fn offer(service: u8, class: Class, capacity_bps: f64, loss: f64, delay_s: f64) -> Offer {
        Offer {
            service: Some(service),
            class: Some(class),
            capacity_bps,
            loss: Some(loss),
            delay_s,
        }
    }

    #[test]
    fn two_wireless_links_and_a_wire_between_them() {
        let radio = |rate: f64| {
            vec![
                offer(0, RAW, rate, 0.05, 0.1),
                offer(1, FULL, 0.8 * rate, 0.0, 0.3),
            ]
        };
        let wire = vec![Offer {
            service: None,
            class: None,
            capacity_bps: 2e6,
            loss: Some(0.0),
            delay_s: 0.05,
        }];
        let paths = compose(&[radio(14_400.0), wire, radio(64_000.0)]);
        assert_eq!(paths.len(), 2, "a raw and a repaired link do not combine");
        assert_eq!(paths[0].services, [Some(0), None, Some(0)]);
        assert_eq!(paths[0].capacity_bps, 14_400.0);
        assert!((paths[0].loss_ratio.unwrap() - 0.0975).abs() < 1e-12);
        assert!((paths[0].delay_s - 0.25).abs() < 1e-12);
        assert_eq!(paths[1].services, [Some(1), None, Some(1)]);
        assert_eq!(paths[1].class, Some(FULL));
        assert_eq!(paths[1].capacity_bps, 11_520.0);
        assert_eq!(paths[1].loss_ratio, Some(0.0));
        assert!((paths[1].delay_s - 0.65).abs() < 1e-12);
    }

    #[test]
    fn an_invisible_loss_is_not_zero() {
        let blind = Offer {
            loss: None,
            ..offer(0, RAW, 10.0, 0.0, 0.1)
        };
        let seen = offer(0, RAW, 20.0, 0.1, 0.1);
        let paths = compose(&[vec![seen], vec![blind]]);
        assert_eq!(paths[0].loss_ratio, None);
        assert_eq!(paths[0].capacity_bps, 10.0);
    }

    #[test]
    fn dominated_offers_are_left_out() {
        let link = vec![
            offer(1, FULL, 10.0, 0.0, 0.2),
            offer(2, FULL, 12.0, 0.0, 0.3),
            offer(3, FULL, 9.0, 0.0, 0.2),
            // No other offer of its class dominates it.
            offer(4, RAW, 1.0, 0.5, 9.0),
        ];
        let services: Vec<Option<u8>> = compose(&[link]).iter().map(|p| p.services[0]).collect();
        assert_eq!(services, [Some(1), Some(2), Some(4)]);
        assert!(compose(&[vec![offer(1, FULL, 1.0, 0.0, 0.1)], vec![]]).is_empty());
    }

    proptest! {
        /// Pruning link by link leaves the same set as pruning all combinations at the end.
        #[test]
        fn agrees_with_all_combinations(
            links in prop::collection::vec(
                prop::collection::vec((any::<bool>(), 1u8..5, 0u8..4, 1u8..5), 1..5),
                1..4,
            ),
        ) {
            let links: Vec<Vec<Offer>> = links
                .iter()
                .map(|offers| {
                    let offers = offers.iter().enumerate();
                    offers
                        .map(|(i, (full, rate, loss, delay))| {
                            let class = if *full { FULL } else { RAW };
                            // Sums and products of quarters are exact.
                            offer(i as u8, class, f64::from(*rate), f64::from(*loss) / 4.0, f64::from(*delay))
                        })
                        .collect()
                })
                .collect();
            let mut all = vec![PathOffer::empty()];
            for offers in &links {
                all = all
                    .iter()
                    .flat_map(|path| offers.iter().filter_map(|offer| path.then(offer)))
                    .collect();
            }
            prop_assert_eq!(values(compose(&links)), values(pareto(all)));
        }
    }

    /// Distinct values of offers without their services: of equal offers both are kept.
    fn values(paths: Vec<PathOffer>) -> Vec<String> {
        let mut values: Vec<String> = paths
            .iter()
            .map(|p| {
                format!(
                    "{:?} {} {:?} {}",
                    p.class, p.capacity_bps, p.loss_ratio, p.delay_s
                )
            })
            .collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}
