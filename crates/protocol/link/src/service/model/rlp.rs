//! Worlds of RLP and RLP/OOS.

use super::check;
use super::world::{Channel, World, timers};
use crate::config::{Keepalives, RlpConfig, SchemeConfig};
use crate::wire::{Codec, HeaderProfile};

fn rlp(window: u8, retries: u32) -> RlpConfig {
    RlpConfig {
        window: Some(window.into()),
        retries: Some(retries),
        timers: timers(),
        keepalives: Some(Keepalives::Limit(2)),
        ..RlpConfig::default()
    }
}

/// Live numbers do not repeat: reordering and duplication are unbounded.
#[test]
fn live_in_any_order() {
    for scheme in [
        SchemeConfig::Rlp(rlp(2, 2)),
        SchemeConfig::RlpOos(rlp(2, 1)),
    ] {
        let codec = Codec::new(HeaderProfile::Live);
        check(World::new(
            scheme,
            codec,
            (3, 3),
            Channel::reordering(u8::MAX),
        ));
    }
}

/// On a radio link original frames keep their order.
#[test]
fn study_rlp_on_a_radio_link() {
    let channel = Channel {
        originals_in_order: true,
        ..Channel::reordering(2)
    };
    for (scheme, modulus) in [
        (SchemeConfig::Rlp(rlp(3, 1)), 8),
        (SchemeConfig::RlpOos(rlp(3, 1)), 8),
        (SchemeConfig::Rlp(rlp(3, 1)), 9),
    ] {
        let codec = Codec::new(HeaderProfile::Study).with_modulus(modulus);
        check(World::new(scheme, codec, (4, 2), channel));
    }
}
