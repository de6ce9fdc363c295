//! For any input, frames are conserved, stay in order, respect the queue limit, and take exactly their serialisation and
//! propagation time.

use airlane_base::{Duration, Instant, Probability, QueueLimit, Rate, Streams};
use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig};
use proptest::prelude::*;

fn limits() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0u64..20).prop_map(QueueLimit::Packets),
        (0u64..20_000).prop_map(QueueLimit::Bytes),
    ]
}

proptest! {
    #[test]
    fn agrees_with_a_queue_that_is_simulated_naively(
        bps in 1_000u64..1_000_000_000,
        delay_ns in 0u64..100_000_000,
        queue in limits(),
        loss in 0.0f64..0.5,
        frames in prop::collection::vec((0u64..2_000_000, 1usize..3_000), 1..300),
    ) {
        let rate = Rate::from_bps(bps).unwrap();
        let delay = Duration::from_nanos(delay_ns);
        let uniform = ErrorModelConfig::Uniform { rate: Probability::new(loss).unwrap() };
        let [errors, mut draws] =
            [(); 2].map(|()| ErrorModel::new(&uniform, rate, Streams::new(1, 0), "prop"));
        let mut channel = Channel::new(ChannelConfig { rate, delay, queue }, errors);

        let mut now = Instant::ORIGIN;
        // The naive model: start and departure of every accepted frame, in order.
        let mut accepted: Vec<(Instant, Instant, usize)> = Vec::new();
        let mut expected = Vec::new();
        for (i, &(wait, len)) in frames.iter().enumerate() {
            now += Duration::from_nanos(wait);
            let waiting = accepted.iter().filter(|f| f.0 > now);
            let (packets, bytes) = waiting.fold((0, 0), |(n, b), f| (n + 1, b + f.2));
            let free = accepted.last().map_or(Instant::ORIGIN, |f| f.1);
            let idle = free <= now;
            let fits = match queue {
                QueueLimit::Packets(limit) => packets < limit,
                QueueLimit::Bytes(limit) => (bytes + len) as u64 <= limit,
            };
            let answer = channel.send(now, len, i);
            if idle || fits {
                let start = free.max(now);
                let ns = (len as u128 * 8 * 1_000_000_000).div_ceil(u128::from(bps));
                let departs = start + Duration::from_nanos(ns as u64);
                prop_assert_eq!(answer, Ok(departs));
                accepted.push((start, departs, len));
                if !draws.loses(start, departs, len) {
                    expected.push((departs + delay, i));
                }
            } else {
                prop_assert_eq!(answer, Err(i));
            }
        }

        let mut arrived = Vec::new();
        while let Some(at) = channel.poll_timeout() {
            if at > Instant::ORIGIN {
                let early = at - Duration::from_nanos(1);
                prop_assert_eq!(channel.poll_deliver(early), None);
            }
            let item = channel.poll_deliver(at).expect("poll_timeout promised a frame");
            arrived.push((at, item));
        }
        prop_assert_eq!(arrived, expected);

        let s = channel.stats();
        prop_assert_eq!(s.offered.frames, frames.len() as u64);
        prop_assert_eq!(s.offered.bytes, frames.iter().map(|f| f.1 as u64).sum::<u64>());
        prop_assert_eq!(
            s.offered.frames,
            s.dropped_queue.frames + s.lost_air.frames + s.delivered.frames
        );
        prop_assert_eq!(
            s.offered.bytes,
            s.dropped_queue.bytes + s.lost_air.bytes + s.delivered.bytes
        );
    }
}
