//! Worlds of GSM's radio link protocol.

use airlane_gsm::{Persistence, Repair};

use super::world::{Channel, World, timers};
use super::{check, deep};
use crate::config::{GsmRlpConfig, SchemeConfig};
use crate::wire::{Codec, HeaderProfile};

fn world(repair: Repair, window: u8, codec: Codec, inputs: (u8, u8), channel: Channel) -> World {
    let scheme = SchemeConfig::GsmRlp(GsmRlpConfig {
        window: Some(window.into()),
        persistence: Persistence::Polls(0),
        repair,
        timers: timers(),
        ..GsmRlpConfig::default()
    });
    World::new(scheme, codec, inputs, channel)
}

/// FIFO with any delay: half of the numbers may be in flight where out-of-order frames are kept, and all but
/// one where they are not.
#[test]
fn the_largest_windows_in_flight_are_safe() {
    let least = [(Repair::Selective, 4, 2), (Repair::GoBack, 3, 2)];
    let larger = [(Repair::Selective, 5, 2), (Repair::GoBack, 4, 3)];
    let larger = larger.into_iter().filter(|_| deep());
    for (repair, modulus, window) in least.into_iter().chain(larger) {
        let codec = Codec::new(HeaderProfile::Study).with_modulus(modulus);
        let packets = modulus as u8 + 1;
        check(world(repair, window, codec, (packets, 4), Channel::RADIO));
    }
}

/// Both ends send, and both may give up at once.
#[test]
fn both_ways() {
    let codec = Codec::new(HeaderProfile::Study).with_modulus(4);
    check(World {
        back: 1,
        ..world(
            Repair::Selective,
            2,
            codec,
            (2, 3 + u8::from(deep())),
            Channel::RADIO,
        )
    });
}

/// On a live link frames are reordered and duplicated without bound.
#[test]
fn live_in_any_order() {
    let codec = Codec::new(HeaderProfile::Live);
    let any = Channel::reordering(u8::MAX);
    check(world(Repair::Selective, 2, codec, (3, 3), any));
}
