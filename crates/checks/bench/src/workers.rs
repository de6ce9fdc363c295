//! Runs of other programs on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The results of `job` for 0 to `count - 1`, in order.
pub(crate) fn each<T: Send>(count: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let worker = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return found;
            }
            found.push((index, job(index)));
        }
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            let joined = thread.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_order() {
        assert_eq!(super::each(5, |i| i * i), [0, 1, 4, 9, 16]);
        assert!(super::each(0, |i| i).is_empty());
    }
}
