//! The state that the server's threads share: the current test, and whether to continue it.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::LocalClock;
use crate::token::TestToken;

/// The shared state of all threads of a server.
pub(crate) struct ServerState<'a> {
    pub(crate) watch: LocalClock,
    /// When the server's lifetime ends.
    end_ns: u64,
    stop: &'a AtomicBool,
    test: Mutex<Option<Arc<Test>>>,
    /// Connections that carry a file or pages.
    pub(crate) connections: Gate,
    /// Control connections: the client being served, and some that are told that it is.
    pub(crate) clients: Gate,
}

/// A running test.
pub(crate) struct Test {
    pub(crate) token: TestToken,
    /// The address of its order, if the test may only send to proven addresses.
    client: Option<IpAddr>,
    /// Addresses from which a TCP connection has shown the token: the handshake proves them.
    proven: Mutex<Vec<IpAddr>>,
    /// Its latest end.
    end_ns: u64,
    watch: LocalClock,
    over: AtomicBool,
    bytes_left: AtomicU64,
    /// The source address of the client's voice.
    pub(crate) caller: Mutex<Option<SocketAddr>>,
}

/// Concurrent connections of a test: more than a client ever has.
const MOST_CONNECTIONS: usize = 16;
const MOST_CLIENTS: usize = 8;

impl<'a> ServerState<'a> {
    pub(crate) fn new(watch: LocalClock, end_ns: u64, stop: &'a AtomicBool) -> Self {
        Self {
            watch,
            end_ns,
            stop,
            test: Mutex::new(None),
            connections: Gate::new(MOST_CONNECTIONS),
            clients: Gate::new(MOST_CLIENTS),
        }
    }

    /// Whether the server is stopping.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.watch.now_ns() >= self.end_ns
    }

    /// Begins a test, unless one is running.
    pub(crate) fn begin(
        &self,
        token: TestToken,
        client: Option<IpAddr>,
        end_ns: u64,
        most_bytes: u64,
    ) -> Option<Arc<Test>> {
        let mut on = lock(&self.test);
        if on.is_some() {
            return None;
        }
        let test = Arc::new(Test {
            token,
            client,
            proven: Mutex::new(Vec::new()),
            end_ns,
            watch: self.watch,
            over: AtomicBool::new(false),
            bytes_left: AtomicU64::new(most_bytes),
            caller: Mutex::new(None),
        });
        *on = Some(Arc::clone(&test));
        Some(test)
    }

    /// Ends the running test.
    pub(crate) fn end(&self) {
        if let Some(test) = lock(&self.test).take() {
            test.over.store(true, Ordering::Relaxed);
        }
    }

    /// The running test.
    pub(crate) fn test(&self) -> Option<Arc<Test>> {
        lock(&self.test).clone()
    }

    /// The running test, if the token belongs to it.
    pub(crate) fn test_of(&self, token: &[u8]) -> Option<Arc<Test>> {
        self.test().filter(|test| test.token.0 == token)
    }
}

/// Limits how many may be inside at once.
pub(crate) struct Gate {
    inside: AtomicUsize,
    most: usize,
}

impl Gate {
    const fn new(most: usize) -> Self {
        Self {
            inside: AtomicUsize::new(0),
            most,
        }
    }

    /// Admits one, if there is room, until the returned guard is dropped.
    pub(crate) fn admit(&self) -> Option<Admitted<'_>> {
        let before = self.inside.fetch_add(1, Ordering::Relaxed);
        let admitted = Admitted(self);
        (before < self.most).then_some(admitted)
    }
}

pub(crate) struct Admitted<'a>(&'a Gate);

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Test {
    /// Records the source of a TCP connection that has shown the token.
    pub(crate) fn prove(&self, at: SocketAddr) {
        let (at, mut proven) = (at.ip().to_canonical(), lock(&self.proven));
        if proven.len() < MOST_CONNECTIONS && !proven.contains(&at) {
            proven.push(at);
        }
    }

    /// Whether the test may send to this address: only to that of its order, or to one proven by a handshake.
    pub(crate) fn may_send_to(&self, at: SocketAddr) -> bool {
        let at = at.ip().to_canonical();
        self.client
            .is_none_or(|client| at == client || lock(&self.proven).contains(&at))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.watch.now_ns() >= self.end_ns
    }

    /// Spends some of the bytes that the test may send; false if too few are left.
    pub(crate) fn spend(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        let left = &self.bytes_left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken.is_err() {
            left.store(0, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.bytes_left.load(Ordering::Relaxed) == 0
    }
}

/// The data is consistent at any time, also after a panic in another thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn state(stop: &AtomicBool) -> ServerState<'_> {
        ServerState::new(LocalClock::default(), u64::MAX, stop)
    }

    #[test]
    fn one_test_runs_at_a_time_and_is_identified_by_its_token() {
        let stop = AtomicBool::new(false);
        let state = state(&stop);
        let tokens = [TestToken([1; 16]), TestToken([2; 16])];
        let test = state.begin(tokens[0], HERE, u64::MAX, 100).unwrap();
        assert!(state.begin(tokens[1], HERE, u64::MAX, 100).is_none());
        assert!(state.test_of(&tokens[0].0).is_some());
        assert!(state.test_of(&tokens[1].0).is_none());
        assert!(state.test_of(&[]).is_none());
        assert!(!test.is_over());
        assert!(test.may_send_to("127.0.0.1:7".parse().unwrap()));
        assert!(test.may_send_to("[::ffff:127.0.0.1]:7".parse().unwrap()));
        assert!(!test.may_send_to("192.0.2.1:7".parse().unwrap()));
        test.prove("192.0.2.1:80".parse().unwrap());
        assert!(test.may_send_to("192.0.2.1:7".parse().unwrap()));
        assert!(!test.may_send_to("192.0.2.2:7".parse().unwrap()));
        state.end();
        assert!(test.is_over());
        assert!(state.test_of(&tokens[0].0).is_none());
        assert!(state.begin(tokens[1], HERE, u64::MAX, 100).is_some());
    }

    #[test]
    fn a_test_ends_by_itself_and_sends_no_more_than_it_may() {
        let stop = AtomicBool::new(false);
        let state = state(&stop);
        let test = state.begin(TestToken([1; 16]), HERE, 0, 100).unwrap();
        assert!(test.is_over());
        assert!(test.spend(60) && test.spend(40) && test.is_used_up());
        assert!(!test.spend(1));
        state.end();
        let test = state.begin(TestToken([1; 16]), HERE, 0, 100).unwrap();
        // A remainder that is too small counts as used up.
        assert!(!test.spend(101) && test.is_used_up());
    }

    #[test]
    fn a_full_gate_admits_nobody() {
        let gate = Gate::new(3);
        let all: Vec<_> = (0..3).map(|_| gate.admit()).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(gate.admit().is_none() && gate.admit().is_none());
        drop(all);
        assert!(gate.admit().is_some());
    }
}
