//! The properties that always hold, and the situations that must be reached.

use std::collections::BTreeSet;

use stateright::Property;

use super::world::{End, State, World};
use crate::config::SchemeConfig;
use crate::wire::{FrameKind, Layout};

type Properties = Vec<Property<World>>;

/// All properties of a world, by the guarantees of its scheme.
pub(super) fn of(world: &World) -> Properties {
    let mut all = of_all(world);
    match &world.scheme {
        SchemeConfig::Rlp(_) => all.extend(of_rlp(world).into_iter().chain(of_rlp_in_order())),
        SchemeConfig::RlpOos(_) => all.extend(of_rlp(world).into_iter().chain(of_rlp_oos())),
        SchemeConfig::Gbn(_) => all.extend(of_reliable(world).into_iter().chain(of_gbn())),
        SchemeConfig::Sr(_) | SchemeConfig::SrM1(_) => {
            all.extend(of_reliable(world).into_iter().chain(of_one_nak(world)));
        }
        SchemeConfig::SrM2(_) => {
            all.extend(of_reliable(world).into_iter().chain(of_sr_m2(world)));
        }
        SchemeConfig::SrBitmap(_) => {
            all.extend(of_reliable(world).into_iter().chain(of_sr_bitmap(world)));
        }
        SchemeConfig::GsmRlp(_) => all.extend(of_gsm_rlp(world)),
        other => unreachable!("no world has {}", other.kind()),
    }
    all
}

fn always(name: &'static str, holds: fn(&World, &State) -> bool) -> Property<World> {
    Property::always(name, holds)
}

fn sometimes(name: &'static str, holds: fn(&World, &State) -> bool) -> Property<World> {
    Property::sometimes(name, holds)
}

fn all_arrived(world: &World, state: &State) -> bool {
    let arrived = state.ends.each_ref().map(|end| end.delivered.len());
    arrived == [world.back, world.packets].map(usize::from)
}

/// Both assignments of the ends to sender and receiver.
fn both_ways(state: &State) -> [[&End; 2]; 2] {
    let [one, other] = &state.ends;
    [[one, other], [other, one]]
}

fn of_all(world: &World) -> Properties {
    let mut all = vec![
        always("each packet goes up once", |_, state| {
            state.ends.iter().all(|end| {
                let delivered = &end.delivered;
                delivered.iter().collect::<BTreeSet<_>>().len() == delivered.len()
            })
        }),
        always("only packets that were sent go up", |_, state| {
            both_ways(state)
                .into_iter()
                .all(|[sender, receiver]| receiver.delivered.iter().all(|id| *id < sender.sent))
        }),
        sometimes("everything arrives", all_arrived),
        sometimes("a frame is sent again", |_, state| {
            let again = |kind| kind == FrameKind::Retransmission;
            state.air[1].iter().any(|f| again(f.frame.header.kind))
        }),
        sometimes("a frame comes in vain", |world, state| {
            let books = &state.ends[1].ledger;
            // A receiver that discards out-of-order frames cannot recognise duplicates of them.
            let refused = match &world.scheme {
                SchemeConfig::GsmRlp(_) => books.out_of_window,
                _ => 0,
            };
            books.late + books.duplicates + refused > 0
        }),
    ];
    if u64::from(world.packets) > world.codec.space(&Layout::SEQ).modulus() {
        all.push(sometimes("numbers come round", |world, state| {
            state.ends[1].delivered.len() as u64 > world.codec.space(&Layout::SEQ).modulus()
        }));
    }
    all
}

fn of_reliable(world: &World) -> Properties {
    let mut all = match by_flow(world) {
        true => of_flows(world),
        false => vec![always(
            "packets go up without gaps and in order",
            |_, state| {
                let delivered = &state.ends[1].delivered;
                delivered.iter().copied().eq(0..delivered.len() as u8)
            },
        )],
    };
    all.extend([
        always("no more than a window is outstanding", |world, state| {
            let arrived = state.ends[1].delivered.len() as u8;
            state.ends[0].sent - arrived <= world.window
        }),
        always("only what has arrived is acknowledged", |_, state| {
            let [sender, receiver] = &state.ends;
            let (kept, held) = (sender.service.kept(), receiver.service.held());
            (0..sender.sent).all(|id| {
                kept.contains(&id) || receiver.delivered.contains(&id) || held.contains(&id)
            })
        }),
        sometimes("everything is acknowledged", |world, state| {
            all_arrived(world, state) && state.ends.iter().all(|end| end.service.scheme().is_idle())
        }),
        sometimes("a timeout sends again", |_, state| {
            state.ends[0].ledger.timeouts > 0
        }),
        sometimes("a lost tail arrives", |world, state| {
            state.ends[0].ledger.timeouts > 0 && all_arrived(world, state)
        }),
        // Nothing is in flight, the receiver owes nothing, and the sender still holds packets that have been
        // delivered.
        sometimes("an acknowledgment is lost", |_, state| {
            let [sender, receiver] = &state.ends;
            let kept = sender.service.kept();
            state.air.iter().all(Vec::is_empty)
                && receiver.service.scheme().is_idle()
                && kept.iter().any(|id| receiver.delivered.contains(id))
        }),
    ]);
    let asks = !matches!(
        world.scheme,
        SchemeConfig::Gbn(_) | SchemeConfig::SrBitmap(_)
    );
    if asks && world.channel.overtakes > 0 && world.window > 1 {
        all.push(sometimes("a request comes in vain", |_, state| {
            state.ends[0].ledger.stale_naks > 0
        }));
    }
    if world.window > 1 {
        all.push(sometimes("a frame comes behind a hole", |_, state| {
            let receiver = &state.ends[1];
            !receiver.service.held().is_empty() || receiver.ledger.out_of_window > 0
        }));
    }
    all
}

/// Whether the order is kept only within flows.
fn by_flow(world: &World) -> bool {
    world.end().service.scheme().frames().layout == &Layout::LANES
}

/// Undelivered packets that must precede this one.
fn missing_before<'a>(world: &'a World, state: &'a State, id: u8) -> impl Iterator<Item = u8> + 'a {
    let lane = world.lane(id);
    let same = move |other: &u8| lane.behind_all || world.lane(*other).number == lane.number;
    let up = &state.ends[1].delivered;
    (0..id).filter(same).filter(|other| !up.contains(other))
}

fn of_flows(world: &World) -> Properties {
    let mut all = vec![
        always(
            "the packets of a flow go up without gaps and in order",
            |world, state| {
                let up = &state.ends[1].delivered;
                up.iter().enumerate().all(|(at, id)| {
                    let lane = world.lane(*id);
                    let own =
                        |other: &u8| lane.behind_all || world.lane(*other).number == lane.number;
                    (0..*id).filter(own).all(|other| up[..at].contains(&other))
                })
            },
        ),
        always(
            "nobody waits for the hole of another flow",
            |world, state| {
                let held = state.ends[1].service.held();
                held.into_iter()
                    .all(|id| missing_before(world, state, id).next().is_some())
            },
        ),
        sometimes("a packet overtakes another flow's hole", |_, state| {
            !state.ends[1].delivered.is_sorted()
        }),
    ];
    if world.barrier.is_some() {
        all.push(sometimes(
            "a packet waits for another flow",
            |world, state| {
                let held = state.ends[1].service.held();
                held.into_iter().any(|id| {
                    let number = world.lane(id).number;
                    let mut missing = missing_before(world, state, id);
                    world.barrier == Some(id)
                        && missing.all(|other| world.lane(other).number != number)
                })
            },
        ));
    }
    all
}

fn of_gbn() -> Properties {
    vec![always("nothing is asked for", |_, state| {
        state.ends[1].asked.iter().all(|n| *n == 0)
    })]
}

/// SR and SR/M1.
fn of_one_nak(world: &World) -> Properties {
    let mut all = vec![always("a frame is asked for once", |_, state| {
        state.ends[1].asked.iter().all(|n| *n <= 1)
    })];
    if world.window > 1 {
        all.push(sometimes("a frame is asked for", |_, state| {
            state.ends[1].asked.contains(&1)
        }));
    }
    all
}

fn of_sr_m2(world: &World) -> Properties {
    let mut all = vec![];
    // That takes two holes, and a frame that reveals them.
    if world.window > 2 {
        all.push(sometimes("a request is repeated", |_, state| {
            state.ends[1].asked.iter().any(|n| *n > 1)
        }));
    }
    all
}

fn of_sr_bitmap(world: &World) -> Properties {
    let mut all = vec![always("nothing is asked for", |_, state| {
        state.ends[1].asked.iter().all(|n| *n == 0)
    })];
    // That takes a hole, a frame that reveals it, and one that reveals the loss of its repair.
    if world.window > 2 {
        all.push(sometimes(
            "a lost repair is noticed without a timer",
            |_, state| {
                let sender = &state.ends[0];
                sender.ledger.timeouts == 0 && sender.service.attempts() > 2
            },
        ));
    }
    all
}

/// RLP and RLP/OOS.
fn of_rlp(world: &World) -> Properties {
    let mut all = vec![
        always("a frame is asked for N times at most", |world, state| {
            let asked = state.ends[1].asked.iter().copied().max();
            asked.map(u32::from) <= retries(world)
        }),
        sometimes("a hole is given up", |_, state| {
            state.ends[1].ledger.given_up > 0
        }),
        sometimes("the overflow guard gives a hole up", |_, state| {
            state.ends[1].ledger.given_up > 0 && state.timeouts == 0
        }),
    ];
    if retries(world) > Some(1) {
        all.push(sometimes("a request is repeated", |_, state| {
            state.ends[1].asked.iter().any(|n| *n > 1)
        }));
    }
    all
}

fn retries(world: &World) -> Option<u32> {
    match &world.scheme {
        SchemeConfig::Rlp(c) | SchemeConfig::RlpOos(c) => c.retries,
        _ => None,
    }
}

fn of_rlp_in_order() -> Properties {
    vec![
        always("packets go up in order", |_, state| {
            state.ends[1].delivered.is_sorted()
        }),
        sometimes("a repair comes after giving up", |_, state| {
            let books = &state.ends[1].ledger;
            books.given_up > 0 && books.late > 0
        }),
    ]
}

fn of_rlp_oos() -> Properties {
    vec![sometimes("packets go up out of order", |_, state| {
        !state.ends[1].delivered.is_sorted()
    })]
}

/// GSM's radio link protocol.
fn of_gsm_rlp(world: &World) -> Properties {
    let mut all = vec![
        always("packets go up in order", |_, state| {
            state.ends.iter().all(|end| end.delivered.is_sorted())
        }),
        always("no more than a window is outstanding", |world, state| {
            let window = usize::from(world.window);
            state
                .ends
                .iter()
                .all(|end| end.service.kept().len() <= window)
        }),
        always(
            "what has not gone up is kept, or known to be lost",
            |_, state| {
                both_ways(state).into_iter().all(|[sender, receiver]| {
                    let kept = sender.service.kept();
                    (0..sender.sent).all(|id| {
                        receiver.delivered.contains(&id)
                            || kept.contains(&id)
                            || sender.lost.contains(&id)
                    })
                })
            },
        ),
        sometimes("everything is acknowledged", |world, state| {
            all_arrived(world, state) && state.ends.iter().all(|end| end.service.scheme().is_idle())
        }),
        sometimes("an end gives up", |_, state| {
            state.ends[0].ledger.resets > 0
        }),
        sometimes(
            "a packet that had gone up is counted as lost",
            |_, state| {
                let [sender, receiver] = &state.ends;
                let gone_up = |id: &u8| receiver.delivered.contains(id);
                sender.lost.iter().any(gone_up)
            },
        ),
        sometimes(
            "packets go up after both have begun anew",
            |world, state| {
                let [sender, receiver] = &state.ends;
                let last = world.packets - 1;
                let newest = receiver.delivered.last() == Some(&last);
                newest
                    && sender.lost.first().is_some_and(|lost| *lost < last)
                    && sender.service.scheme().is_idle()
            },
        ),
    ];
    if world.back > 0 {
        all.push(sometimes("both ends lose packets", |_, state| {
            state.ends.iter().all(|end| !end.lost.is_empty())
        }));
    }
    all
}
