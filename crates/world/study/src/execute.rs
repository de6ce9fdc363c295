//! Runs the simulations that a plan needs and that the store does not have yet.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use airlane_base::random::fnv1a;
use rayon::prelude::*;

use crate::error::StudyError;
use crate::metrics::metrics;
use crate::plan::Plan;
use crate::store::{RunKey, Store};

/// The part of the work to do here: shard `index` (from 1) of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// The number of shards.
    pub count: u32,
}

impl Shard {
    /// All of the work.
    pub const ALL: Self = Self { index: 1, count: 1 };

    /// Reads `1/4`.
    pub fn parse(text: &str) -> Option<Self> {
        let (index, count) = text.split_once('/')?;
        let shard = Self {
            index: index.parse().ok()?,
            count: count.parse().ok()?,
        };
        (1..=shard.count).contains(&shard.index).then_some(shard)
    }

    /// Whether a run belongs to this shard.
    pub fn has(self, key: &RunKey) -> bool {
        let text = format!("{} {} {}", key.0, key.1, key.2);
        fnv1a(text.as_bytes()) % u64::from(self.count) == u64::from(self.index - 1)
    }

    /// The suffix in the name of the shard's result file, as [`Store::add`] takes it.
    pub fn suffix(self) -> String {
        match self {
            Self::ALL => String::new(),
            Self { index, count } => format!("-{index}-of-{count}"),
        }
    }
}

/// How many runs were done, and how many were known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Simulated now.
    pub run: u64,
    /// Taken from the store.
    pub known: u64,
    /// Left to other shards.
    pub others: u64,
}

/// Watches the execution of a plan, and provides the clock.
pub trait ExecutionWatch: Sync {
    /// Time since an arbitrary origin.
    fn now(&self) -> Duration;

    /// Reports that `left` runs remain, and take about `time`.
    fn about(&self, left: u64, time: Duration);

    /// Reports that `done` of `total` runs are done.
    fn at(&self, done: u64, total: u64);
}

/// Watches nothing.
impl ExecutionWatch for () {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn about(&self, _: u64, _: Duration) {}

    fn at(&self, _: u64, _: u64) {}
}

impl Plan {
    /// The key of every result that the plan needs, sorted by repetition, then world.
    pub fn keys(&self) -> Vec<RunKey> {
        self.queue().map(|(_, key)| key).collect()
    }

    /// The keys of all runs in their order, each with the index of its world.
    fn queue(&self) -> impl Iterator<Item = (usize, RunKey)> {
        let most = self.repetitions.iter().copied().max().unwrap_or(0);
        (0..most).flat_map(move |run| {
            let worlds = self.worlds.iter().zip(&self.repetitions).enumerate();
            worlds
                .filter(move |(_, (_, repetitions))| run < **repetitions)
                .map(move |(at, (world, _))| (at, (world.hash().to_owned(), self.seed, run)))
        })
    }

    /// Simulates what is missing on `threads` threads (0: one for each core). A few runs of each
    /// study come first, to estimate the duration of the others.
    ///
    /// # Errors
    /// If a result cannot be written, or the threads cannot be started.
    pub fn execute(
        &self,
        store: &mut Store,
        shard: Shard,
        threads: usize,
        watch: &impl ExecutionWatch,
    ) -> Result<Done, StudyError> {
        let mut done = Done::default();
        let mut jobs = vec![];
        for (world, key) in self.queue() {
            if store.get(&key).is_some() {
                done.known += 1;
            } else if shard.has(&key) {
                jobs.push((world, key));
            } else {
                done.others += 1;
            }
        }
        done.run = jobs.len() as u64;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| StudyError::Results(format!("cannot start threads: {e}")))?;
        let suffix = shard.suffix();
        let (finished, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let store = Mutex::new(store);
        let total = done.run;
        let one = |(world, key): Job| -> Result<(usize, Duration), StudyError> {
            if failed.load(Ordering::Relaxed) {
                return Ok((world, Duration::ZERO));
            }
            let began = watch.now();
            let (names, values) = metrics(&self.worlds[world].run(key.1, key.2));
            let took = watch.now().saturating_sub(began);
            let mut store = store
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let added = store.add(key, names, values, &suffix);
            drop(store);
            failed.fetch_or(added.is_err(), Ordering::Relaxed);
            watch.at(finished.fetch_add(1, Ordering::Relaxed) + 1, total);
            added.map(|()| (world, took))
        };
        let all = |jobs: Vec<Job>| {
            pool.install(|| {
                let each = jobs.into_par_iter().with_max_len(1).map(one);
                each.collect::<Result<Vec<_>, _>>()
            })
        };
        let strata = self.strata();
        let (first, mut rest) = sample(jobs, &strata);
        let took = all(first)?;
        if !rest.is_empty() {
            let work = expected(&took, &rest, &strata);
            let threads = pool.current_num_threads() as f64;
            watch.about(rest.len() as u64, work.div_f64(threads));
        }
        // Sorted by repetition, then by hash, which is an arbitrary order: so from the first runs
        // on, the remaining runs take as long on average as those that are done.
        rest.sort_by(|(_, a), (_, b)| (a.2, &a.0).cmp(&(b.2, &b.0)));
        all(rest)?;
        Ok(done)
    }

    /// For each world, the first study that has it: the worlds of a study take about equally long.
    fn strata(&self) -> Vec<usize> {
        let mut strata = vec![0; self.worlds.len()];
        let studies = self.variants.iter().flat_map(|variant| &variant.studies);
        for (index, study) in studies.enumerate().collect::<Vec<_>>().into_iter().rev() {
            for world in &study.worlds {
                strata[*world] = index;
            }
        }
        strata
    }
}

/// The index of a world, and which run of it.
type Job = (usize, RunKey);

/// How many runs of each study are used to estimate the duration of the others.
const SAMPLE: usize = 3;

/// Takes a few jobs out of each stratum, as far apart as possible, because axes run from one
/// extreme to the other.
fn sample(jobs: Vec<Job>, strata: &[usize]) -> (Vec<Job>, Vec<Job>) {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for (world, _) in &jobs {
        *counts.entry(strata[*world]).or_default() += 1;
    }
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    jobs.into_iter().partition(|(world, _)| {
        let count = counts[&strata[*world]];
        let at = seen.entry(strata[*world]).or_default();
        *at += 1;
        // The first, the last, and jobs evenly spaced between them.
        let last = SAMPLE.min(count) - 1;
        (0..=last).any(|i| *at - 1 == i * (count - 1) / last.max(1))
    })
}

/// The time that `rest` takes on one thread, if runs of a stratum take as long as the sampled ones.
fn expected(took: &[(usize, Duration)], rest: &[Job], strata: &[usize]) -> Duration {
    let mut of: BTreeMap<usize, (Duration, u32)> = BTreeMap::new();
    for (world, took) in took {
        let (sum, count) = of.entry(strata[*world]).or_default();
        (*sum, *count) = (*sum + *took, *count + 1);
    }
    let each = rest.iter().filter_map(|(world, _)| {
        let (sum, count) = of.get(&strata[*world])?;
        Some(*sum / *count)
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(worlds: &[usize]) -> Vec<Job> {
        let job = |(run, world): (usize, &usize)| (*world, (String::new(), 1, run as u64));
        worlds.iter().enumerate().map(job).collect()
    }

    #[test]
    fn a_sample_has_both_ends_and_the_middle_of_each_study() {
        // Worlds 0 to 6 belong to one study, 7 and 8 to another, 9 to a third.
        let strata = [0, 0, 0, 0, 0, 0, 0, 1, 1, 2];
        let all = jobs(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let (first, rest) = sample(all, &strata);
        let worlds = |jobs: &[Job]| jobs.iter().map(|(world, _)| *world).collect::<Vec<_>>();
        assert_eq!(worlds(&first), [0, 3, 6, 7, 8, 9]);
        assert_eq!(worlds(&rest), [1, 2, 4, 5]);
        assert_eq!(sample(vec![], &strata), (vec![], vec![]));
    }

    #[test]
    fn the_remaining_time_is_estimated_from_the_same_study() {
        let strata = [0, 0, 1];
        let ms = Duration::from_millis;
        let took = [(0, ms(10)), (1, ms(30)), (2, ms(500))];
        let rest = jobs(&[0, 0, 1, 2]);
        assert_eq!(expected(&took, &rest, &strata), ms(3 * 20 + 500));
    }

    #[test]
    fn shards_partition_the_work() {
        for text in ["0/2", "3/2", "1", "1/0", "a/b"] {
            assert_eq!(Shard::parse(text), None, "{text}");
        }
        let shards: Vec<Shard> = (1..=3).map(|i| Shard { index: i, count: 3 }).collect();
        let mut sizes = [0; 3];
        for run in 0..300 {
            let key = ("0123456789abcdef".to_owned(), 1, run);
            let owners: Vec<usize> = (0..3).filter(|i| shards[*i].has(&key)).collect();
            assert_eq!(owners.len(), 1);
            sizes[owners[0]] += 1;
        }
        assert!(sizes.iter().all(|size| *size > 60), "{sizes:?}");
        assert!(Shard::ALL.has(&("x".to_owned(), 0, 0)));
    }
}
