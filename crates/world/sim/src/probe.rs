//! Delay statistics of a run: exact moments, and quantiles from a histogram.

use airlane_base::Duration;

/// Bits per second, over a non-zero time.
pub(crate) fn rate_bps(bytes: u64, time: Duration) -> Option<f64> {
    (time.as_nanos() > 0).then(|| bytes as f64 * 8.0 / time.as_secs_f64())
}

/// The interarrival jitter of RFC 3550, section 6.4.1 and appendix A.8, of packets in the order of their arrival.
/// Each direction has its own; the mean is over both.
#[derive(Clone, Debug, Default)]
pub(crate) struct JitterProbe {
    /// By direction: the delay of the previous packet, and the current J, ns.
    ways: [(Option<u64>, f64); 2],
    sum: f64,
    count: u64,
}

impl JitterProbe {
    #[inline]
    pub(crate) fn record(&mut self, way: usize, delay: Duration) {
        let ns = delay.as_nanos();
        let (before, jitter) = &mut self.ways[way];
        if let Some(before) = before.replace(ns) {
            *jitter += (ns.abs_diff(before) as f64 - *jitter) / 16.0;
            self.sum += *jitter;
            self.count += 1;
        }
    }

    /// Mean of J after each packet but the first of its direction, seconds.
    pub(crate) fn mean_s(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64 / 1e9)
    }
}

/// Sub-buckets of an octave: a bucket is at most 1/32 of its value wide.
const SUB: u32 = 32;
const SUB_BITS: u32 = 5;

/// Statistics of the delays of delivered packets, or of page times.
///
/// Sums are integers, so that they do not depend on the order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayProbe {
    count: u64,
    /// The first delay: the sums are of differences to it, which keeps squares small.
    origin: u64,
    sum: i128,
    squares: u128,
    max: u64,
    /// Counts by bucket; grows to the largest delay seen, at most 15 kB.
    histogram: Vec<u64>,
}

impl DelayProbe {
    #[inline]
    pub(crate) fn record(&mut self, delay: Duration) {
        let ns = delay.as_nanos();
        if self.count == 0 {
            self.origin = ns;
        }
        self.count += 1;
        let difference = i128::from(ns) - i128::from(self.origin);
        self.sum += difference;
        let distance = u128::from(ns.abs_diff(self.origin));
        self.squares = self.squares.saturating_add(distance * distance);
        self.max = self.max.max(ns);
        let bucket = bucket_of(ns);
        match self.histogram.get_mut(bucket) {
            Some(count) => *count += 1,
            None => self.begin_bucket(bucket),
        }
    }

    /// Counts the first delay that is longer than all before it.
    #[cold]
    fn begin_bucket(&mut self, bucket: usize) {
        self.histogram.resize(bucket, 0);
        self.histogram.push(1);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all delays, ns.
    pub(crate) fn total_ns(&self) -> i128 {
        i128::from(self.origin) * i128::from(self.count) + self.sum
    }

    /// Mean, seconds.
    pub(crate) fn mean_s(&self) -> Option<f64> {
        let n = self.samples()?;
        Some((self.origin as f64 + self.sum as f64 / n) / 1e9)
    }

    /// Standard deviation of the population, seconds.
    pub(crate) fn sd_s(&self) -> Option<f64> {
        let n = self.samples()?;
        let mean = self.sum as f64 / n;
        let variance = self.squares as f64 / n - mean * mean;
        Some(variance.max(0.0).sqrt() / 1e9)
    }

    /// Largest, seconds.
    pub(crate) fn max_s(&self) -> Option<f64> {
        self.samples().map(|_| self.max as f64 / 1e9)
    }

    /// The delay that a share `q` of all delays does not exceed, seconds; at most 1/32 too large.
    pub(crate) fn quantile_s(&self, q: f64) -> Option<f64> {
        let n = self.samples()?;
        let rank = ((n * q).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.histogram.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(bucket_end(bucket).min(self.max) as f64 / 1e9)
    }

    fn samples(&self) -> Option<f64> {
        (self.count > 0).then_some(self.count as f64)
    }
}

/// Values below 32 have their own buckets; above, the leading bit and the next five select one.
fn bucket_of(ns: u64) -> usize {
    let octave = (64 - ns.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let within = (ns >> octave) as u32;
    (octave * SUB + within) as usize
}

/// The largest value of a bucket.
fn bucket_end(bucket: usize) -> u64 {
    let bucket = bucket as u32;
    if bucket < 2 * SUB {
        return u64::from(bucket);
    }
    let octave = bucket / SUB - 1;
    let within = u64::from(bucket % SUB + SUB);
    ((within + 1) << octave).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB as usize;

    #[test]
    fn moments_of_a_few_delays() {
        let mut probe = DelayProbe::default();
        assert_eq!(probe.mean_s(), None);
        for ms in [100, 200, 300] {
            probe.record(Duration::from_millis(ms));
        }
        assert!((probe.mean_s().unwrap() - 0.2).abs() < 1e-12);
        // Population: sqrt((100^2 + 0 + 100^2) / 3) ms.
        assert!((probe.sd_s().unwrap() - 0.081_649_658).abs() < 1e-9);
        assert_eq!(probe.max_s(), Some(0.3));
    }

    #[test]
    fn jitter_follows_the_differences_of_delays() {
        let mut probe = JitterProbe::default();
        probe.record(0, Duration::from_millis(50));
        // The other direction is separate.
        probe.record(1, Duration::from_millis(500));
        assert_eq!(probe.mean_s(), None);
        probe.record(0, Duration::from_millis(66));
        assert_eq!(probe.mean_s(), Some(0.001));
        // J is 1 ms, then (15 * 1 + 16) / 16 ms.
        probe.record(0, Duration::from_millis(50));
        assert!((probe.mean_s().unwrap() - (1.0 + 31.0 / 16.0) / 2e3).abs() < 1e-15);
        // A constant difference makes J converge to it.
        for n in 0..100_000 {
            probe.record(0, Duration::from_millis(50 + 16 * (n % 2)));
        }
        assert!((probe.mean_s().unwrap() - 0.016).abs() < 1e-5);
    }

    #[test]
    fn equal_delays_have_no_deviation_at_all() {
        let mut probe = DelayProbe::default();
        for _ in 0..100_000 {
            probe.record(Duration::from_nanos(129_373_334));
        }
        assert_eq!(probe.sd_s(), Some(0.0));
        assert_eq!(probe.mean_s(), Some(0.129_373_334));
        assert_eq!(probe.quantile_s(0.5), Some(0.129_373_334));
    }

    proptest! {
        #[test]
        fn buckets_hold_their_values(ns: u64, shift in 0u32..64) {
            let ns = ns >> shift;
            let end = bucket_end(bucket_of(ns));
            prop_assert!(bucket_of(ns) < BUCKETS);
            prop_assert!(end >= ns && end - ns <= ns / 32, "{} in {}", ns, end);
            prop_assert_eq!(bucket_of(end), bucket_of(ns));
        }

        #[test]
        fn quantiles_are_near_those_of_the_sorted_list(
            mut delays in prop::collection::vec(0u64..1_000_000_000, 1..200),
            q in 0.0f64..1.0,
        ) {
            let mut probe = DelayProbe::default();
            delays.iter().for_each(|ns| probe.record(Duration::from_nanos(*ns)));
            delays.sort_unstable();
            let rank = ((delays.len() as f64 * q).ceil() as usize).max(1);
            let exact = delays[rank - 1] as f64 / 1e9;
            let found = probe.quantile_s(q).unwrap();
            prop_assert!(found >= exact - 1e-12 && found <= exact * (1.0 + 1.0 / 32.0) + 1e-9);
        }
    }
}
