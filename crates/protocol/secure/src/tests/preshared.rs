//! Pre-shared keys: both ends have the same one, or there is no session and one of them can tell why.

use airlane_base::Duration;

use super::world::{World, address, key};
use crate::mac::MacKeys;
use crate::{RESPONSE_LEN, Refused};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn ends_with_the_same_key_have_a_session_and_renew_it() {
    let mut world = World::new([true, true]);
    world.preshare([Some(7); 2]);
    world.run_for(SECOND);
    assert!(world.is_established());
    world.assert_works();
    // Over two renewals.
    for _ in 0..300 {
        world.run_for(SECOND);
        world.assert_works();
    }
    assert_eq!(
        world.refused(0, Refused::Preshared) + world.refused(1, Refused::Preshared),
        0
    );
}

#[test]
fn a_different_psk_is_reported_by_the_calling_end() {
    let mut world = World::new([true, false]);
    world.preshare([Some(7), Some(8)]);
    world.run_for(SECOND * 60);
    assert!(!world.is_established());
    let refused = world.refused(0, Refused::Preshared);
    assert!((10..40).contains(&refused), "{refused}");
    // The right key helps, without a restart.
    world.preshare([Some(8), Some(8)]);
    world.run_for(SECOND * 10);
    world.assert_works();
}

#[test]
fn a_psk_at_one_end_only_is_reported_by_the_called_end() {
    for keys in [[Some(7), None], [None, Some(7)]] {
        let mut world = World::new([true, false]);
        world.preshare(keys);
        world.run_for(SECOND * 60);
        assert!(!world.is_established(), "{keys:?}");
        let refused = world.refused(1, Refused::Preshared);
        assert!((10..200).contains(&refused), "{refused}");
        assert_eq!(world.ends[1].counters().responses_sent, 0);
        world.preshare([Some(7); 2]);
        world.run_for(SECOND * 10);
        world.assert_works();
    }
}

/// The key changes at one end, then at the other, and nothing is lost in between.
#[test]
fn another_key_is_used_from_the_next_handshake_on() {
    let mut world = World::established();
    world.preshare([Some(7), None]);
    for _ in 0..60 {
        world.run_for(SECOND);
        world.assert_works();
    }
    world.preshare([Some(7); 2]);
    for _ in 0..300 {
        world.run_for(SECOND);
        world.assert_works();
    }
}

/// An attacker with this end's private key and the other's public key, but without the pre-shared key, learns nothing
/// and completes nothing.
#[test]
fn a_stolen_private_key_is_not_enough() {
    let mut world = World::new([true, false]);
    world.preshare([None, Some(7)]);
    world.run_for(SECOND * 20);
    assert!(!world.is_established());
    // Claiming to have one does not help either.
    world.preshare([Some(0), Some(7)]);
    world.run_for(SECOND * 20);
    assert!(!world.is_established());
    let sealed = world.ends.each_ref().map(|end| end.counters().sealed);
    assert_eq!(sealed, [0, 0]);
}

#[test]
fn changed_responses_change_nothing_but_counters() {
    let mut world = World::new([true, false]);
    world.preshare([Some(7); 2]);
    world.timeout(0);
    let initiation = world.intercept(0);
    world.arrive(1, address(1), initiation.bytes()).unwrap();
    let response = world.intercept(1);
    let macs = MacKeys::of(&key(0).public());
    let before = world.snapshot(0);
    for at in 12..RESPONSE_LEN - 32 {
        let mut changed = response.bytes().to_vec();
        changed[at] ^= 0x10;
        macs.sign(&mut changed, None);
        world.now += SECOND;
        let received = world.arrive(0, address(13), &changed);
        assert_eq!(received, Err(Refused::Preshared));
    }
    assert_eq!(world.snapshot(0), before);
    world.arrive(0, address(2), response.bytes()).unwrap();
    world.run_for(SECOND);
    world.assert_works();
}
