//! Runs what a plan needs and the store does not have yet.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use airlane_base::random::fnv1a;
use rayon::prelude::*;

use crate::error::StudyError;
use crate::metrics::metrics;
use crate::plan::Plan;
use crate::store::{Key, Store};

/// Which part of the work is done here: shard `index` (from 1) of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    pub index: u32,
    /// Of how many.
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

    /// Whether a run is done here.
    pub fn has(self, key: &Key) -> bool {
        let text = format!("{} {} {}", key.0, key.1, key.2);
        fnv1a(text.as_bytes()) % u64::from(self.count) == u64::from(self.index - 1)
    }

    /// What the file of its results has in its name, as [`Store::add`] takes it.
    pub fn suffix(self) -> String {
        match self {
            Self::ALL => String::new(),
            Self { index, count } => format!("-{index}-of-{count}"),
        }
    }
}

/// What was done and what was there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Simulated now.
    pub run: u64,
    /// Taken from the store.
    pub known: u64,
    /// Left to other shards.
    pub others: u64,
}

impl Plan {
    /// Every result that the plan needs, sorted by repetition, then world.
    pub fn keys(&self) -> Vec<Key> {
        self.queue().map(|(_, key)| key).collect()
    }

    /// The same, each with the index of its world.
    fn queue(&self) -> impl Iterator<Item = (usize, Key)> {
        let most = self.repetitions.iter().copied().max().unwrap_or(0);
        (0..most).flat_map(move |run| {
            let worlds = self.worlds.iter().zip(&self.repetitions).enumerate();
            worlds
                .filter(move |(_, (_, repetitions))| run < **repetitions)
                .map(move |(at, (world, _))| (at, (world.hash().to_owned(), self.seed, run)))
        })
    }

    /// Simulates what is missing on `threads` threads (0: one for each core). `progress` is told
    /// how many of how many are done.
    ///
    /// # Errors
    /// If a result cannot be written, or the threads cannot be started.
    pub fn execute(
        &self,
        store: &mut Store,
        shard: Shard,
        threads: usize,
        progress: impl Fn(u64, u64) + Sync,
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
        // Repetition by repetition, in each in the order of hashes, which is none: then what is left
        // takes as long for each run as what is done, from the first runs on.
        jobs.sort_by(|(_, a), (_, b)| (a.2, &a.0).cmp(&(b.2, &b.0)));
        done.run = jobs.len() as u64;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| StudyError::Results(format!("cannot start threads: {e}")))?;
        let suffix = shard.suffix();
        let (finished, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let store = Mutex::new(store);
        let total = jobs.len() as u64;
        let one = |(world, key): (usize, Key)| -> Result<(), StudyError> {
            if failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let (names, values) = metrics(&self.worlds[world].run(key.1, key.2));
            let mut store = store
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let added = store.add(key, names, values, &suffix);
            drop(store);
            failed.fetch_or(added.is_err(), Ordering::Relaxed);
            progress(finished.fetch_add(1, Ordering::Relaxed) + 1, total);
            added
        };
        pool.install(|| {
            jobs.into_par_iter()
                .with_max_len(1)
                .map(one)
                .collect::<Result<(), _>>()
        })?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_part_the_work() {
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
