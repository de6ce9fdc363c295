//! Worlds of the reliable schemes.

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

fn study(modulus: u64) -> Codec {
    Codec::new(HeaderProfile::Study).with_modulus(modulus)
}

/// The smallest number space that the window allows, on a FIFO channel.
fn fewest_numbers(scheme: SchemeConfig, modulus: u64, inputs: (u8, u8)) {
    check(World::new(
        scheme,
        study(modulus),
        inputs,
        Channel::reordering(0),
    ));
}

/// Windows of two with four and with five numbers: the largest for selective repeat.
fn half_the_ring(scheme: SchemeConfig) {
    fewest_numbers(scheme.clone(), 4, (6, 4));
    fewest_numbers(scheme, 5, (6, 4));
}

/// Reordering up to the stated bound, the modulus less two windows.
fn reordered(scheme: impl Fn(u8) -> SchemeConfig) {
    for (modulus, window, inputs) in [(4, 1, (5, 5)), (8, 2, (4, 3)), (8, 3, (4, 2))] {
        let channel = Channel::reordering(modulus - 2 * window);
        check(World::new(
            scheme(window),
            study(modulus.into()),
            inputs,
            channel,
        ));
    }
}

#[test]
fn gbn_with_half_the_ring() {
    half_the_ring(SchemeConfig::Gbn(one_timer(2)));
}

#[test]
fn gbn_with_all_numbers_but_one() {
    for modulus in [3, 4] {
        let scheme = SchemeConfig::Gbn(one_timer(modulus - 1));
        fewest_numbers(scheme, modulus.into(), (6, 3));
    }
}

#[test]
fn sr_with_half_the_ring() {
    half_the_ring(SchemeConfig::Sr(sr(2)));
}

#[test]
fn sr_m1_with_half_the_ring() {
    half_the_ring(SchemeConfig::SrM1(sr(2)));
}

#[test]
fn sr_m2_with_half_the_ring() {
    half_the_ring(SchemeConfig::SrM2(sr(2)));
}

#[test]
fn sr_bitmap_with_half_the_ring() {
    half_the_ring(SchemeConfig::SrBitmap(one_timer(2)));
}

#[test]
fn gbn_reordered() {
    reordered(|window| SchemeConfig::Gbn(one_timer(window)));
}

#[test]
fn sr_reordered() {
    reordered(|window| SchemeConfig::Sr(sr(window)));
}

#[test]
fn sr_m1_reordered() {
    reordered(|window| SchemeConfig::SrM1(sr(window)));
}

#[test]
fn sr_m2_reordered() {
    reordered(|window| SchemeConfig::SrM2(sr(window)));
}

#[test]
fn sr_bitmap_reordered() {
    reordered(|window| SchemeConfig::SrBitmap(one_timer(window)));
}

/// Two alternating flows, each in order, and one packet that overtakes none.
fn by_flow(scheme: fn(SrConfig) -> SchemeConfig, timeouts: u8, barrier: Option<u8>) {
    let scheme = scheme(SrConfig {
        order: Order::Flow,
        ..sr(3)
    });
    check(World {
        barrier,
        ..World::new(scheme, study(6), (5, timeouts), Channel::reordering(0))
    });
}

#[test]
fn sr_m2_by_flow() {
    by_flow(SchemeConfig::SrM2, 3, None);
    by_flow(SchemeConfig::SrM2, 2, Some(2));
}

#[test]
fn sr_and_sr_m1_by_flow() {
    by_flow(SchemeConfig::Sr, 2, None);
    by_flow(SchemeConfig::SrM1, 2, None);
}
