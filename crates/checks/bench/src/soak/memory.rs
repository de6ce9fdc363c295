//! Checks that the memory of a process does not grow.
//!
//! A single step is not a leak: queues and pools keep the memory of their fullest moment. A leak
//! continues. So the life of a process is divided into thirds, and their medians must not increase
//! twice by more than noise plus one byte per frame carried in between: a leak of two bytes per
//! frame shows after three minutes of load. Shorter lives are not judged, because buffers are still
//! growing to their largest size.

use serde::Serialize;

/// The memory of a process at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemorySample {
    /// Time since its start, s.
    pub age_s: f64,
    /// Resident memory, bytes.
    pub resident: u64,
    /// Frames sent and received so far.
    pub frames: u64,
}

/// The memory of one process over its life.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Medians of the three thirds, bytes.
    pub medians: [u64; 3],
    /// The maximum, bytes.
    pub most: u64,
    /// Frames carried in a third.
    pub frames: u64,
    /// The allowed increase from one third to the next, bytes.
    pub bound: u64,
    /// Whether it stays within the bound.
    pub flat: bool,
}

/// Time to allocate what it needs, s: as long as the longest outage.
const WARMUP_S: f64 = 60.0;
/// Minimum length of a third, s.
const LEAST_S: f64 = 40.0;
/// Tolerance for the allocator, bytes.
const NOISE: u64 = 64 << 10;

impl Memory {
    /// Judges a life; none if it was too short.
    pub fn judge(samples: &[MemorySample]) -> Option<Self> {
        let from = samples.partition_point(|sample| sample.age_s < WARMUP_S);
        let samples = &samples[from..];
        let (first, last) = (samples.first()?, samples.last()?);
        if last.age_s - first.age_s < 3.0 * LEAST_S {
            return None;
        }
        let third = samples.len() / 3;
        if third == 0 {
            return None;
        }
        let medians = [0, 1, 2].map(|i| {
            let part = &samples[i * third..(i + 1) * third];
            let mut sizes: Vec<u64> = part.iter().map(|sample| sample.resident).collect();
            sizes.sort_unstable();
            sizes[third / 2]
        });
        let frames = (last.frames - first.frames) / 3;
        let bound = NOISE + frames;
        let rises = |a: u64, b: u64| b.saturating_sub(a) > bound;
        Some(Self {
            medians,
            most: samples.iter().map(|s| s.resident).max()?,
            frames,
            bound,
            flat: !(rises(medians[0], medians[1]) && rises(medians[1], medians[2])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(resident: impl Fn(u64) -> u64) -> Option<Memory> {
        let sample = |second: u64| MemorySample {
            age_s: second as f64,
            resident: resident(second),
            frames: second * 3_000,
        };
        Memory::judge(&(0..240).map(sample).collect::<Vec<_>>())
    }

    #[test]
    fn a_leak_is_detected_and_a_step_is_not_one() {
        const MB: u64 = 1 << 20;
        let noise = |second: u64| (second * 7_919 % 13) << 12;
        assert!(life(|second| 8 * MB + noise(second)).unwrap().flat);
        assert!(
            life(|second| if second < 130 { 8 * MB } else { 20 * MB })
                .unwrap()
                .flat
        );
        // A leak of two bytes per frame.
        let leak = life(|second| 8 * MB + noise(second) + second * 6_000).unwrap();
        assert!(!leak.flat, "{leak:?}");
        assert_eq!(Memory::judge(&[]), None);
        // Sparse samples do not fill the thirds.
        let seldom = [0.0, 100.0, 900.0].map(|age_s| MemorySample {
            age_s,
            resident: MB,
            frames: 0,
        });
        assert_eq!(Memory::judge(&seldom), None);
    }
}
