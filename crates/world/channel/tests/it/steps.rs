//! A queued frame leaves at the rate in force when it is sent, whenever it was handed over.

use airlane_base::{Duration, Instant, QueueLimit, Rate, Streams};
use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig, LinkRate, RateSteps};
use proptest::prelude::*;

fn channel(every: Duration, bps: &[u64]) -> Channel<usize> {
    let rates = bps.iter().map(|bps| Rate::from_bps(*bps).unwrap());
    let rate = LinkRate::Steps(RateSteps::new(every, rates.collect()).unwrap());
    let config = ChannelConfig {
        rate: rate.mean().unwrap(),
        delay: Duration::ZERO,
        queue: QueueLimit::Packets(100_000),
    };
    let errors = ErrorModel::new(
        &ErrorModelConfig::None,
        config.rate,
        Streams::new(1, 0),
        "x",
    );
    Channel::new(config, errors).with_rate(&rate)
}

/// The departure of each frame.
fn departures(channel: &mut Channel<usize>) -> Vec<Instant> {
    let next = || {
        let at = channel.poll_timeout()?;
        channel.poll_deliver(at).map(|_| at)
    };
    std::iter::from_fn(next).collect()
}

/// A hundred frames of 1250 B (10 kbit) handed over at once; departures in ms.
fn queue(every: Duration, bps: &[u64]) -> Vec<u64> {
    let mut channel = channel(every, bps);
    for id in 0..100 {
        channel.send(Instant::ORIGIN, 1_250, id).unwrap();
    }
    let left = departures(&mut channel);
    left.iter().map(|at| at.as_nanos() / 1_000_000).collect()
}

#[test]
fn a_queue_drains_at_the_rate_after_the_step() {
    let second = Duration::from_secs(1);
    // 20 frames in the first second at 0.2 Mbit/s, and the other 80 in 40 ms at 20 Mbit/s.
    let up = queue(second, &[200_000, 20_000_000]);
    assert_eq!((up[0], up[19], up[99]), (50, 1_000, 1_040));
    // 80 frames in 40 ms at 20 Mbit/s; of the next one 8 kbit leave at 0.2 Mbit/s and 2 kbit at 20 Mbit/s again.
    let down = queue(Duration::from_millis(40), &[20_000_000, 200_000]);
    assert_eq!((down[79], down[80]), (40, 80));
}

proptest! {
    /// Frames leave back to back, and between any two departures no more bytes leave than the rates carry, which the
    /// test adds up step by step.
    #[test]
    fn no_more_leaves_than_the_rates_carry(
        every_us in 1u64..200_000,
        kbps in prop::collection::vec(8u64..100_000, 1..5),
        frames in prop::collection::vec((0u64..5_000, 1usize..3_000), 2..80),
    ) {
        let bps: Vec<u64> = kbps.iter().map(|kbps| kbps * 1_000).collect();
        let every = Duration::from_micros(every_us);
        let mut channel = channel(every, &bps);
        let mut now = Instant::ORIGIN;
        let mut left = vec![];
        for (id, &(us, len)) in frames.iter().enumerate() {
            now += Duration::from_micros(us);
            left.push((now, channel.send(now, len, id).unwrap(), len));
        }
        prop_assert_eq!(departures(&mut channel).len(), frames.len());
        // Bits times nanoseconds from the origin, added up step by step.
        let carried = |until: Instant| {
            let (mut sum, mut at, mut step) = (0u128, 0, 0usize);
            while at < until.as_nanos() {
                let next = (at + every.as_nanos()).min(until.as_nanos());
                sum += u128::from(bps[step % bps.len()]) * u128::from(next - at);
                (at, step) = (next, step + 1);
            }
            sum
        };
        let mut free = Instant::ORIGIN;
        for (came, departed, len) in &left {
            let start = free.max(*came);
            let bits = *len as u128 * 8_000_000_000;
            let could = carried(*departed) - carried(start);
            prop_assert!(could >= bits, "{len} B from {start:?} to {departed:?}");
            // Nor does it leave later: a nanosecond earlier it was not complete.
            let before = carried(*departed - Duration::from_nanos(1)) - carried(start);
            prop_assert!(before < bits, "{len} B from {start:?} to {departed:?}");
            free = *departed;
        }
        // Either all that could leave has left, or nothing waited.
        let used = channel.utilisation(free);
        prop_assert!(used <= 1.0, "{used}");
    }

    /// A cycle of one rate is a constant rate.
    #[test]
    fn steps_of_one_rate_are_that_rate(
        every_us in 1u64..100_000,
        bps in 1_000u64..100_000_000,
        lens in prop::collection::vec(1usize..3_000, 1..60),
    ) {
        let mut steps = channel(Duration::from_micros(every_us), &[bps, bps]);
        let mut constant = channel(Duration::from_secs(1), &[bps]).with_rate(&LinkRate::Constant(Rate::from_bps(bps).unwrap()));
        for len in lens {
            let a = steps.send(Instant::ORIGIN, len, 0);
            prop_assert_eq!(a, constant.send(Instant::ORIGIN, len, 0));
        }
        let at = steps.free_at();
        prop_assert_eq!(steps.utilisation(at), constant.utilisation(at));
    }
}
