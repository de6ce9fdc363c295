//! Any loss, duplication and reordering, with frequent renewals of keys: what is opened was sent, and is opened once; a
//! renewal loses nothing in flight; and the session recovers when the path does.

use std::collections::BTreeSet;

use airlane_base::Duration;
use proptest::prelude::*;

use super::world::{DELAY, Fate, World, node};
use crate::Limits;

const SECOND: Duration = Duration::from_secs(1);

/// Short lifetimes of keys, so that a run of seconds has many of them.
fn hasty() -> Limits {
    Limits {
        rekey_after: SECOND * 5,
        rekey_after_messages: 60,
        reject_after: SECOND * 15,
        retry: SECOND,
        jitter: Duration::from_millis(200),
        give_up_after: SECOND * 10,
        keepalive: SECOND * 2,
        ..Limits::default()
    }
}

fn cases(n: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig::with_cases(asked.and_then(|n| n.parse().ok()).unwrap_or(n))
}

fn late(most_ms: u64) -> impl Strategy<Value = Duration> {
    (0..=most_ms).prop_map(Duration::from_millis)
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        4 => Just(vec![DELAY]),
        3 => Just(vec![]),
        2 => late(1_000).prop_map(|at| vec![at]),
        1 => prop::collection::vec(late(8_000), 2..4),
    ];
    prop::collection::vec(fate.prop_map(Fate), 0..400)
}

#[derive(Clone, Copy, Debug)]
enum Act {
    /// An end sends this many payloads.
    Send(usize, u8),
    Wait(u64),
    /// An end renews its keys early.
    Rekey(usize),
    /// An end restarts.
    Restart(usize, bool),
    /// The path is dead for this long.
    Dead(u64),
}

fn acts(restarts: bool) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => (0usize..2, 1u8..20).prop_map(|(end, n)| Act::Send(end, n)),
        12 => (0u64..1_500).prop_map(Act::Wait),
        2 => (0usize..2).prop_map(Act::Rekey),
        u32::from(restarts) => (0usize..2, any::<bool>()).prop_map(|(end, knows)| Act::Restart(end, knows)),
        u32::from(restarts) => (0u64..30_000).prop_map(Act::Dead),
    ];
    prop::collection::vec(act, 1..60)
}

/// Payloads sealed at each end, and the counter that makes the next one unique.
#[derive(Default)]
struct Sent {
    payloads: [BTreeSet<Vec<u8>>; 2],
    next: u32,
}

impl Sent {
    fn send(&mut self, world: &mut World, end: usize) -> bool {
        let payload = [&[end as u8][..], &self.next.to_be_bytes()].concat();
        self.next += 1;
        let sealed = world.send(end, &payload).is_ok();
        if sealed {
            self.payloads[end].insert(payload);
        }
        sealed
    }

    /// What was opened was sent by the other end, and was opened once.
    fn check(&self, world: &World) -> Result<(), TestCaseError> {
        for end in [0, 1] {
            let once: BTreeSet<_> = world.got[end].iter().cloned().collect();
            prop_assert_eq!(once.len(), world.got[end].len(), "twice at end {}", end);
            prop_assert!(once.is_subset(&self.payloads[1 - end]), "never sent");
        }
        Ok(())
    }
}

fn act(world: &mut World, sent: &mut Sent, act: Act, seed: u8) {
    match act {
        Act::Send(end, n) => (0..n).for_each(|_| {
            sent.send(world, end);
        }),
        Act::Wait(ms) => world.run_for(Duration::from_millis(ms)),
        Act::Rekey(end) => {
            let peer = world.peer(end);
            world.ends[end].rekey(world.now, peer);
        }
        Act::Restart(end, knows) => {
            let address = knows.then_some(world.addresses[1 - end]);
            world.ends[end] = node(world.now, end, address, hasty(), seed);
        }
        Act::Dead(ms) => {
            world.dead = true;
            world.run_for(Duration::from_millis(ms));
            world.dead = false;
        }
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn only_sent_messages_open_once_and_the_session_recovers(
        knows in prop::sample::select(vec![[true, true], [true, false], [false, true]]),
        fates in fates(),
        acts in acts(true),
    ) {
        let mut world = World::with_limits(knows, [hasty(); 2]);
        let mut sent = Sent::default();
        world.fates = fates.into();
        for (at, &next) in acts.iter().enumerate() {
            act(&mut world, &mut sent, next, at as u8);
            sent.check(&world)?;
        }
        // A node that forgot the peer's address cannot initiate; if both have, neither can.
        let forgotten = [0, 1].iter().all(|&end| world.ends[end].address(world.peer(end)).is_none());
        prop_assume!(!forgotten);
        // From here on the path works. Allow for the silence, a handshake that waits for its turn, and one more.
        world.fates.clear();
        for _ in 0..80 {
            for end in [0, 1] {
                sent.send(&mut world, end);
            }
            world.run_for(Duration::from_millis(100));
        }
        sent.check(&world)?;
        for end in [0, 1] {
            let before = world.got[1 - end].len();
            prop_assert!(sent.send(&mut world, end), "no keys at end {}", end);
            world.run_for(DELAY * 2);
            prop_assert_eq!(world.got[1 - end].len(), before + 1, "from end {}", end);
        }
        sent.check(&world)?;
    }

    /// Without losses every sealed payload arrives, whatever its delay and however many handshakes happen meanwhile,
    /// crossing or not.
    #[test]
    fn renewal_loses_nothing_in_flight(
        knows in prop::sample::select(vec![[true, true], [true, false], [false, true]]),
        delays in prop::collection::vec(late(900), 400),
        acts in acts(false),
    ) {
        let mut world = World::with_limits(knows, [hasty(); 2]);
        let mut sent = Sent::default();
        world.fates = delays.into_iter().map(|at| Fate(vec![at])).collect();
        for &next in &acts {
            act(&mut world, &mut sent, next, 0);
        }
        world.run_for(SECOND * 2);
        sent.check(&world)?;
        for end in [0, 1] {
            prop_assert_eq!(world.got[1 - end].len(), sent.payloads[end].len());
        }
    }
}
