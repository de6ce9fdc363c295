//! Model checking of the schemes as they are shipped: two ends, a channel that loses, duplicates and
//! reorders, few packets, tiny windows and sequence spaces, and every interleaving of events.
//!
//! A state consists of both services, the frames in flight, and the packets delivered. Time passes only when
//! a timer expires, but frames may be in flight for any time, so every order of arrivals and timeouts is
//! reached. Times are compared relative to now, and bookkeeping times (when a frame arrived or left, for the
//! ledger) are left out by type, so that equivalent states coincide: see [`world::Relative`]. "Always" is
//! proven for these worlds; "sometimes" shows that they contain the hard cases. Eventual delivery is left to
//! the property tests.

mod buffer;
mod gsm_rlp;
mod properties;
mod reliable;
mod rlp;
mod world;

use airlane_base::Instant;
use stateright::{Checker, Model, Property};

use crate::wire::FrameKind;
use world::{LONG_AGO, Numbered, State, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// An end gets its next packet.
    Offer(usize),
    /// The frame at this position arrives.
    Arrive(usize, usize),
    /// It arrives, and a duplicate stays in flight.
    ArriveAndStay(usize, usize),
    /// It is lost.
    Lose(usize, usize),
    /// The next timer expires.
    Timeout,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            ends: [self.end(), self.end()],
            air: Default::default(),
            now: Instant::from_nanos(LONG_AGO),
            doubled: 0,
            timeouts: 0,
            key: [0; 2],
        };
        state.key = self.key(&state);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (end, packets) in [self.packets, self.back].into_iter().enumerate() {
            if state.ends[end].sent < packets {
                actions.push(Action::Offer(end));
            }
        }
        if state.timeouts < self.timeouts {
            actions.push(Action::Timeout);
        }
        for to in 0..2 {
            for place in 0..state.air[to].len() {
                actions.push(Action::Lose(to, place));
                if !self.may_arrive(state, to, place) {
                    continue;
                }
                actions.push(Action::Arrive(to, place));
                let kind = state.air[to][place].frame.header.kind;
                let may_double = !self.channel.originals_in_order || kind != FrameKind::Data;
                if state.doubled < self.channel.doubles && may_double {
                    actions.push(Action::ArriveAndStay(to, place));
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Offer(end) => {
                let mut packet = Some(Numbered(state.ends[end].sent));
                self.input(&mut state, end, &mut packet, |_, _| {});
                if packet.is_some() {
                    return None;
                }
            }
            Action::Arrive(to, place) => {
                let flight = state.air[to].remove(place);
                self.arrive(&mut state, to, flight);
            }
            Action::ArriveAndStay(to, place) => {
                state.doubled += 1;
                let flight = state.air[to][place].clone();
                self.arrive(&mut state, to, flight);
            }
            Action::Lose(to, place) => {
                state.air[to].remove(place);
            }
            Action::Timeout => {
                let due = state
                    .ends
                    .iter()
                    .filter_map(|end| end.service.poll_timeout())
                    .min()?;
                state.timeouts += 1;
                state.now = state.now.max(due);
                for end in 0..2 {
                    let deadline = state.ends[end].service.poll_timeout();
                    if deadline.is_some_and(|deadline| deadline <= state.now) {
                        self.input(&mut state, end, &mut None, |service, cx| {
                            service.scheme_mut().handle_timeout(cx);
                        });
                        let next = state.ends[end].service.poll_timeout();
                        assert!(next.is_none_or(|next| next > state.now), "{state:?}");
                    }
                }
            }
        }
        state.key = self.key(&state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self)
    }
}

/// Whether worlds are checked that take minutes each, as `make fuzz` does.
fn deep() -> bool {
    std::env::var_os("PROPTEST_CASES").is_some()
}

fn check(world: World) {
    let checker = world.checker().threads(2).spawn_bfs().join();
    // A world that has collapsed to a few states would prove nothing.
    assert!(checker.unique_state_count() > 5_000);
    checker.assert_properties();
}
