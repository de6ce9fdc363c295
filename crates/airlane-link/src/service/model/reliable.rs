//! Worlds of the schemes that lose nothing.

use super::check;
use super::world::{Channel, World, timers};
use crate::config::{Order, SchemeConfig, SrConfig, WindowConfig};
use crate::wire::{Codec, HeaderProfile};

fn sr(window: u8) -> SrConfig {
    SrConfig {
        window: Some(window.into()),
        timers: timers(),
        ..SrConfig::default()
    }
}

fn one_timer(window: u8) -> WindowConfig {
    WindowConfig {
        window: Some(window.into()),
        timers: timers(),
        ..WindowConfig::default()
    }
}

/// As many numbers as the window needs at least, first in, first out.
fn fewest_numbers(scheme: SchemeConfig, modulus: u64, packets: u8, timeouts: u8) {
    check(World {
        window: scheme.window().unwrap_or(0) as u8,
        scheme,
        codec: Codec::new(HeaderProfile::Study).with_modulus(modulus),
        packets,
        timeouts,
        channel: Channel {
            room: 2,
            doubles: 1,
            overtakes: 0,
            originals_in_order: false,
        },
        barrier: None,
        back: 0,
    });
}

/// Two numbers of four, and of five: the largest window of a selective repeat scheme.
fn half_the_ring(scheme: SchemeConfig, packets: u8, timeouts: u8) {
    fewest_numbers(scheme.clone(), 4, packets, timeouts);
    fewest_numbers(scheme, 5, packets, timeouts);
}

/// Reordering up to the stated bound, the modulus less two windows.
fn reordered(scheme: SchemeConfig, modulus: u8, window: u8, packets: u8, timeouts: u8) {
    check(World {
        scheme,
        codec: Codec::new(HeaderProfile::Study).with_modulus(modulus.into()),
        window,
        packets,
        timeouts,
        channel: Channel {
            room: 2,
            doubles: 1,
            overtakes: modulus - 2 * window,
            originals_in_order: false,
        },
        barrier: None,
        back: 0,
    });
}

#[test]
fn gbn_with_half_the_ring() {
    half_the_ring(SchemeConfig::Gbn(one_timer(2)), 6, 4);
}

#[test]
fn gbn_with_all_numbers_but_one() {
    for modulus in [3, 4] {
        let window = modulus - 1;
        fewest_numbers(SchemeConfig::Gbn(one_timer(window)), modulus.into(), 6, 3);
    }
}

#[test]
fn sr_with_half_the_ring() {
    half_the_ring(SchemeConfig::Sr(sr(2)), 6, 4);
}

#[test]
fn sr_m1_with_half_the_ring() {
    half_the_ring(SchemeConfig::SrM1(sr(2)), 6, 4);
}

#[test]
fn sr_m2_with_half_the_ring() {
    half_the_ring(SchemeConfig::SrM2(sr(2)), 6, 4);
}

#[test]
fn sr_bitmap_with_half_the_ring() {
    half_the_ring(SchemeConfig::SrBitmap(one_timer(2)), 6, 4);
}

#[test]
fn gbn_reordered() {
    for (modulus, window, packets, timeouts) in [(4, 1, 5, 5), (8, 2, 4, 3), (8, 3, 4, 2)] {
        let scheme = SchemeConfig::Gbn(one_timer(window));
        reordered(scheme, modulus, window, packets, timeouts);
    }
}

#[test]
fn sr_reordered() {
    for (modulus, window, packets, timeouts) in [(4, 1, 5, 5), (8, 2, 4, 3), (8, 3, 4, 2)] {
        reordered(
            SchemeConfig::Sr(sr(window)),
            modulus,
            window,
            packets,
            timeouts,
        );
    }
}

#[test]
fn sr_m1_reordered() {
    for (modulus, window, packets, timeouts) in [(4, 1, 5, 5), (8, 2, 4, 3), (8, 3, 4, 2)] {
        reordered(
            SchemeConfig::SrM1(sr(window)),
            modulus,
            window,
            packets,
            timeouts,
        );
    }
}

#[test]
fn sr_m2_reordered() {
    for (modulus, window, packets, timeouts) in [(4, 1, 5, 5), (8, 2, 4, 3), (8, 3, 4, 2)] {
        reordered(
            SchemeConfig::SrM2(sr(window)),
            modulus,
            window,
            packets,
            timeouts,
        );
    }
}

#[test]
fn sr_bitmap_reordered() {
    for (modulus, window, packets, timeouts) in [(4, 1, 5, 5), (8, 2, 4, 3), (8, 3, 4, 2)] {
        let scheme = SchemeConfig::SrBitmap(one_timer(window));
        reordered(scheme, modulus, window, packets, timeouts);
    }
}

/// Two flows by turns, each in its order, and one packet that overtakes none.
fn by_flow(scheme: SchemeConfig, modulus: u64, packets: u8, timeouts: u8, barrier: Option<u8>) {
    check(World {
        window: scheme.window().unwrap_or(0) as u8,
        scheme,
        codec: Codec::new(HeaderProfile::Study).with_modulus(modulus),
        packets,
        timeouts,
        channel: Channel {
            room: 2,
            doubles: 1,
            overtakes: 0,
            originals_in_order: false,
        },
        barrier,
        back: 0,
    });
}

fn flows(window: u8) -> SrConfig {
    SrConfig {
        order: Order::Flow,
        ..sr(window)
    }
}

#[test]
fn sr_m2_by_flow() {
    by_flow(SchemeConfig::SrM2(flows(3)), 6, 5, 3, None);
    by_flow(SchemeConfig::SrM2(flows(3)), 6, 5, 2, Some(2));
}

#[test]
fn sr_and_sr_m1_by_flow() {
    by_flow(SchemeConfig::Sr(flows(3)), 6, 5, 2, None);
    by_flow(SchemeConfig::SrM1(flows(3)), 6, 5, 2, None);
}
