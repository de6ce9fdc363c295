//! The buffer constraint of RLP (section 7.6 of docs/spec/multi-service.md): the receiver must give up in
//! less time than the sender takes to overwrite its buffer,
//!
//! ```text
//! T_detect + N T_nak < W T_d
//! ```
//!
//! Here time is real: end 0 always has a packet to send and puts one frame after the other on the link, T_d
//! each, repairs first; requests leave in no time. The channel loses any frames, but at most `run` originals
//! in a row, so that a loss is detected `T_detect = run T_d` after the frame should have arrived. In these
//! worlds the receiver runs out of buffer, and gives a hole up before its timers expire, exactly when the
//! constraint is violated.
//!
//! The other consequence is that the sender has overwritten a requested frame. Counted from when the frame
//! was put on the link, the last request arrives after `T_d + D + T_detect + (N - 1) T_nak + D`, and the
//! sender keeps the frame for `W T_d`.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use airlane_base::{Duration, Instant};
use stateright::{Checker, Model, Property};

use super::world::{End, Numbered, Relative};
use crate::config::{FixedTimers, Keepalives, RlpConfig, SchemeConfig, TimersConfig};
use crate::context::{Context, Output};
use crate::flow::Lane;
use crate::service::Service;
use crate::wire::{Codec, Frame, FrameKind, HeaderProfile};

/// T_d; the unit of time is a quarter of it.
const FRAME: u64 = 4;

#[derive(Clone, Copy, Debug)]
struct Link {
    window: u8,
    retries: u32,
    nak: u64,
    delay: u64,
    /// Maximum number of originals lost in a row.
    run: u8,
    packets: u8,
}

#[derive(Clone, Debug)]
struct State {
    ends: [End; 2],
    /// Frames in flight, in order of arrival.
    air: VecDeque<(Instant, usize, Frame<Numbered>)>,
    now: Instant,
    /// When the link will have finished the current frame.
    free_at: Instant,
    lost_in_a_row: u8,
    /// Whether a hole was given up although no timer had expired.
    overrun: bool,
    /// A normalised hash of the fields above, equal for equivalent states.
    key: u64,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Arrival,
    Timeout,
    Departure,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    /// Processes the next event.
    Go,
    /// Loses the frame that would arrive next.
    Lose,
}

impl Link {
    fn next_event(&self, state: &State) -> Option<(Instant, Event)> {
        let arrival = state.air.front().map(|(at, ..)| (*at, Event::Arrival));
        let timeout = state.ends[1].service.poll_timeout();
        let timeout = timeout.map(|at| (at, Event::Timeout));
        let departs = state.ends[0].sent < self.packets;
        let departure = departs.then_some((state.free_at, Event::Departure));
        // At the same time, arrivals precede timeouts.
        let all = [arrival, timeout, departure];
        all.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn with_context<R>(
        state: &mut State,
        end: usize,
        call: impl FnOnce(&mut Service<Numbered>, &mut Context<'_, Numbered>) -> R,
    ) -> R {
        let mut out = Output::default();
        let this = &mut state.ends[end];
        let mut cx = Context::new(state.now, &mut out, &mut this.ledger);
        let result = call(&mut this.service, &mut cx);
        let delivered = out
            .payloads
            .into_iter()
            .map(|delivered| delivered.payload.0);
        this.delivered.extend(delivered);
        result
    }

    fn fly(&self, state: &mut State, to: usize, left: Instant, frame: Frame<Numbered>) {
        let at = left + Duration::from_nanos(self.delay);
        let place = state.air.partition_point(|(other, ..)| *other <= at);
        state.air.insert(place, (at, to, frame));
    }

    /// Requests leave at once.
    fn ask(&self, state: &mut State) {
        let now = state.now;
        while let Some(frame) = Self::with_context(state, 1, |service, cx| {
            let frame = service
                .scheme_mut()
                .poll_any(cx, &mut None, Lane::default())?;
            service.start_timers(&frame.header, now);
            Some(frame)
        }) {
            self.fly(state, 0, now, frame);
        }
    }

    fn depart(&self, state: &mut State) {
        let left = state.now + Duration::from_nanos(FRAME);
        let mut packet = Some(Numbered(state.ends[0].sent));
        let frame = Self::with_context(state, 0, |service, cx| {
            let frame = service
                .scheme_mut()
                .poll_any(cx, &mut packet, Lane::default())?;
            service.start_timers(&frame.header, left);
            Some(frame)
        });
        if let Some(frame) = frame {
            state.free_at = left;
            state.ends[0].sent += u8::from(frame.header.kind == FrameKind::Data);
            self.fly(state, 1, left, frame);
        }
    }

    fn key(state: &State) -> u64 {
        let mut key = Relative::new(state.now, 0);
        let [sender, receiver] = &state.ends;
        sender.service.add_to(&mut key);
        receiver.service.add_to(&mut key);
        receiver.delivered.hash(&mut key);
        state.air.iter().for_each(|flight| flight.hash(&mut key));
        let stale = sender.ledger.stale_naks > 0;
        let free_at = state.free_at.max(state.now);
        (free_at, sender.sent, stale).hash(&mut key);
        (state.lost_in_a_row, state.overrun).hash(&mut key);
        key.finish()
    }
}

impl Model for Link {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let value = |n| Duration::from_nanos(n).into();
        let scheme = SchemeConfig::Rlp(RlpConfig {
            window: Some(self.window.into()),
            retries: Some(self.retries),
            timers: Some(TimersConfig::Fixed(FixedTimers {
                ack: value(1),
                nak: value(self.nak),
                keepalive: value(1),
                rto: value(1),
            })),
            keepalives: Some(Keepalives::Limit(0)),
            ..RlpConfig::default()
        });
        // This world is not about sequence numbers.
        let end = || End::new(&scheme, Codec::new(HeaderProfile::Study));
        let mut state = State {
            ends: [end(), end()],
            air: VecDeque::new(),
            now: Instant::from_nanos(100),
            free_at: Instant::from_nanos(100),
            lost_in_a_row: 0,
            overrun: false,
            key: 0,
        };
        state.key = Self::key(&state);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let Some((_, event)) = self.next_event(state) else {
            return;
        };
        actions.push(Action::Go);
        if event == Event::Arrival
            && let Some((.., frame)) = state.air.front()
            && (frame.header.kind != FrameKind::Data || state.lost_in_a_row < self.run)
        {
            actions.push(Action::Lose);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        let (at, event) = self.next_event(&state)?;
        state.now = at;
        match event {
            Event::Departure => self.depart(&mut state),
            Event::Timeout => {
                Self::with_context(&mut state, 1, |service, cx| {
                    service.scheme_mut().handle_timeout(cx)
                });
                self.ask(&mut state);
            }
            Event::Arrival => {
                let (_, to, frame) = state.air.pop_front()?;
                let original = frame.header.kind == FrameKind::Data;
                if action == Action::Lose {
                    state.lost_in_a_row += u8::from(original);
                } else {
                    if original {
                        state.lost_in_a_row = 0;
                    }
                    let before = state.ends[1].ledger.given_up;
                    Self::with_context(&mut state, to, |service, cx| {
                        service.handle_frame(cx, frame);
                    });
                    state.overrun |= state.ends[1].ledger.given_up > before;
                    self.ask(&mut state);
                }
            }
        }
        state.key = Self::key(&state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("in order", |_, state: &State| {
                state.ends[1].delivered.is_sorted()
            }),
            Property::sometimes("overrun", |_, state: &State| state.overrun),
            Property::sometimes("stale", |_, state: &State| {
                state.ends[0].ledger.stale_naks > 0
            }),
            Property::sometimes("given up in time", |_, state: &State| {
                !state.overrun && state.ends[1].ledger.given_up > 0
            }),
        ]
    }
}

#[test]
fn the_receiver_is_overrun_exactly_when_the_published_constraint_fails() {
    let (mut held, mut failed, mut overwritten) = (0, 0, 0);
    for window in [2u8, 3, 4] {
        for retries in [1u32, 2] {
            for nak in [3, 4, 5, 8] {
                for run in [1u8, 2] {
                    let link = Link {
                        window,
                        retries,
                        nak,
                        delay: 1,
                        run,
                        packets: window + run + 2,
                    };
                    let detect = u64::from(run) * FRAME;
                    let buffer = u64::from(window) * FRAME;
                    let constraint = detect + u64::from(retries) * nak < buffer;
                    let checker = link.checker().spawn_bfs().join();
                    assert!(checker.discovery("in order").is_none(), "{link:?}");
                    let overrun = checker.discovery("overrun").is_some();
                    assert_eq!(overrun, !constraint, "{link:?}");

                    let last_request = detect + FRAME + u64::from(retries - 1) * nak + 2;
                    let stale = checker.discovery("stale").is_some();
                    if constraint {
                        assert_eq!(stale, last_request >= buffer, "{link:?}");
                        overwritten += u32::from(stale);
                        assert!(checker.discovery("given up in time").is_some(), "{link:?}");
                        held += 1;
                    } else {
                        failed += 1;
                    }
                }
            }
        }
    }
    let reached = [held - overwritten, failed, overwritten];
    assert!(reached.iter().all(|n| *n > 3), "{reached:?}");
}
