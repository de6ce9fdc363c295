//! Worlds of the schemes that lose nothing.

use super::{Channel, Codec, SchemeConfig, World, check, timers};
use crate::config::{SrConfig, WindowConfig};
use crate::wire::HeaderProfile;

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

/// Two numbers of four: the largest window that there can be, first in, first out.
fn half_the_ring(scheme: SchemeConfig, packets: u8, timeouts: u8) {
    check(World {
        scheme,
        codec: Codec::new(HeaderProfile::Study).with_bits(2),
        window: 2,
        packets,
        timeouts,
        channel: Channel {
            room: 2,
            doubles: 1,
            overtakes: 0,
            originals_in_order: false,
        },
    });
}

/// Reordering up to the stated bound, the modulus less two windows.
fn reordered(scheme: SchemeConfig, bits: u32, window: u8, packets: u8, timeouts: u8) {
    check(World {
        scheme,
        codec: Codec::new(HeaderProfile::Study).with_bits(bits),
        window,
        packets,
        timeouts,
        channel: Channel {
            room: 2,
            doubles: 1,
            overtakes: (1 << bits) - 2 * window,
            originals_in_order: false,
        },
    });
}

#[test]
fn gbn_with_half_the_ring() {
    half_the_ring(SchemeConfig::Gbn(one_timer(2)), 6, 4);
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
    for (bits, window, packets, timeouts) in [(2, 1, 5, 5), (3, 2, 4, 3), (3, 3, 4, 2)] {
        let scheme = SchemeConfig::Gbn(one_timer(window));
        reordered(scheme, bits, window, packets, timeouts);
    }
}

#[test]
fn sr_reordered() {
    for (bits, window, packets, timeouts) in [(2, 1, 5, 5), (3, 2, 4, 3), (3, 3, 4, 2)] {
        reordered(
            SchemeConfig::Sr(sr(window)),
            bits,
            window,
            packets,
            timeouts,
        );
    }
}

#[test]
fn sr_m1_reordered() {
    for (bits, window, packets, timeouts) in [(2, 1, 5, 5), (3, 2, 4, 3), (3, 3, 4, 2)] {
        reordered(
            SchemeConfig::SrM1(sr(window)),
            bits,
            window,
            packets,
            timeouts,
        );
    }
}

#[test]
fn sr_m2_reordered() {
    for (bits, window, packets, timeouts) in [(2, 1, 5, 5), (3, 2, 4, 3), (3, 3, 4, 2)] {
        reordered(
            SchemeConfig::SrM2(sr(window)),
            bits,
            window,
            packets,
            timeouts,
        );
    }
}

#[test]
fn sr_bitmap_reordered() {
    for (bits, window, packets, timeouts) in [(2, 1, 5, 5), (3, 2, 4, 3), (3, 3, 4, 2)] {
        let scheme = SchemeConfig::SrBitmap(one_timer(window));
        reordered(scheme, bits, window, packets, timeouts);
    }
}
