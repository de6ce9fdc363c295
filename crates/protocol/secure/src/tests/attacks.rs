//! What an attacker may send. Each test compares the whole state of an end before and after, and then shows that the
//! genuine message still works.

use airlane_base::Duration;
use proptest::prelude::*;

use super::world::{World, address, key, socket_address};
use crate::mac::MacKeys;
use crate::message::{INITIATION_LEN, initiation};
use crate::noise::{HandshakeOffer, Initiation};
use crate::{
    AcceptedDatagram, COOKIE_REPLY_LEN, Limits, PeerAddress, PrivateKey, RESPONSE_LEN, Refused,
    SealError, Secure, Transmit,
};

const SECOND: Duration = Duration::from_secs(1);

/// Every way to change one bit, to truncate and to lengthen a message is refused and changes nothing. `free` is the
/// number of bytes at the end that are not protected.
fn refuses_all_changes(world: &mut World, end: usize, message: &Transmit, free: usize) {
    let (before, from) = (world.snapshot(end), address(13));
    let genuine = message.bytes();
    let counted = world.ends[end].counters().refused.total();
    let mut tried = 0;
    let mut refuse = |bytes: &[u8]| {
        let received = world.arrive(end, from, bytes);
        assert!(received.is_err(), "{received:?} for {bytes:x?}");
        assert!(world.ends[end].poll_transmit().is_none(), "it was answered");
        tried += 1;
    };
    for bit in 0..(genuine.len() - free) * 8 {
        let mut changed = genuine.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        refuse(&changed);
    }
    for len in 0..genuine.len() {
        refuse(&genuine[..len]);
    }
    for more in 1..20 {
        refuse(&[genuine, &[0; 20][..more]].concat());
    }
    assert_eq!(world.snapshot(end), before);
    assert_eq!(world.ends[end].counters().refused.total(), counted + tried);
}

#[test]
fn changed_messages_of_every_type_change_nothing() {
    let mut world = World::new([true, false]);
    world.timeout(0);
    let initiation = world.intercept(0);
    // mac2 is checked only under load.
    refuses_all_changes(&mut world, 1, &initiation, 16);
    world.arrive(1, address(1), initiation.bytes()).unwrap();
    let response = world.intercept(1);
    refuses_all_changes(&mut world, 0, &response, 16);
    world.arrive(0, address(2), response.bytes()).unwrap();
    let confirmation = world.intercept(0);
    refuses_all_changes(&mut world, 1, &confirmation, 0);
    world.arrive(1, address(1), confirmation.bytes()).unwrap();
    let data = world.seal(1, b"to whom it may concern").unwrap();
    refuses_all_changes(&mut world, 0, &data, 0);
    world.arrive(0, address(2), data.bytes()).unwrap();
    assert_eq!(world.got[0], [b"to whom it may concern"]);
    world.assert_works();
}

/// mac1 requires no secret, so the rest must hold without it.
#[test]
fn forgers_who_know_the_public_key_change_nothing() {
    let mut world = World::new([true, false]);
    world.timeout(0);
    let initiation = world.intercept(0);
    let macs = MacKeys::of(&key(1).public());
    let before = world.snapshot(1);
    for at in 8..INITIATION_LEN - 32 {
        let mut changed = initiation.bytes().to_vec();
        changed[at] ^= 0x10;
        macs.sign(&mut changed, None);
        world.now += SECOND; // so many at once would count as load
        assert_eq!(world.arrive(1, address(13), &changed), Err(Refused::Forged));
    }
    assert_eq!(world.snapshot(1), before);
    world.arrive(1, address(1), initiation.bytes()).unwrap();
    let response = world.intercept(1);
    let macs = MacKeys::of(&key(0).public());
    let before = world.snapshot(0);
    for at in 12..RESPONSE_LEN - 32 {
        let mut changed = response.bytes().to_vec();
        changed[at] ^= 0x10;
        macs.sign(&mut changed, None);
        world.now += SECOND;
        assert_eq!(world.arrive(0, address(13), &changed), Err(Refused::Forged));
    }
    assert_eq!(world.snapshot(0), before);
    world.arrive(0, address(2), response.bytes()).unwrap();
}

#[test]
fn repeated_messages_of_every_type_change_nothing() {
    let mut world = World::new([true, false]);
    world.timeout(0);
    let initiation = world.intercept(0);
    world.arrive(1, address(1), initiation.bytes()).unwrap();
    let response = world.intercept(1);
    let refuse = |world: &mut World, end, message: &Transmit, reason| {
        let before = world.snapshot(end);
        let received = world.arrive(end, address(13), message.bytes());
        assert_eq!(received, Err(reason));
        assert_eq!(world.snapshot(end), before);
        assert_eq!(world.refused(end, reason), 1);
    };
    refuse(&mut world, 1, &initiation, Refused::OldInitiation);
    world.arrive(0, address(2), response.bytes()).unwrap();
    refuse(&mut world, 0, &response, Refused::UnknownIndex);
    let confirmation = world.intercept(0);
    world.arrive(1, address(1), confirmation.bytes()).unwrap();
    refuse(&mut world, 1, &confirmation, Refused::Replayed);
    let data = world.seal(0, b"once").unwrap();
    for _ in 0..crate::WINDOW {
        let message = world.seal(0, b"later").unwrap();
        world.arrive(1, address(1), message.bytes()).unwrap();
    }
    refuse(&mut world, 1, &data, Refused::BehindWindow);
    world.assert_works();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the low bits of the counter are changed to, nothing moves, and every unopened message far below the
    /// newest can still be opened, once.
    #[test]
    fn forged_low_bits_move_nothing(
        late in 0..crate::WINDOW as usize - 1,
        forged in prop::collection::vec(
            prop_oneof![any::<u32>(), 0u32..20_000, (1u32 << 31) - 9..(1u32 << 31) + 9_000],
            1..20,
        ),
    ) {
        let mut world = World::established();
        let messages: Vec<_> = (0..crate::WINDOW)
            .map(|n| world.seal(0, &n.to_be_bytes()).unwrap())
            .collect();
        world.arrive(1, address(1), messages.last().unwrap().bytes()).unwrap();
        let before = world.snapshot(1);
        let genuine = messages[late].bytes();
        for low in forged {
            let mut changed = genuine.to_vec();
            changed[4..8].copy_from_slice(&low.to_be_bytes());
            if changed != genuine {
                prop_assert!(world.arrive(1, address(13), &changed).is_err());
            }
        }
        prop_assert_eq!(world.snapshot(1), before);
        prop_assert!(world.arrive(1, address(1), genuine).is_ok());
        prop_assert_eq!(world.arrive(1, address(1), genuine), Err(Refused::Replayed));
        world.assert_works();
    }
}

#[test]
fn a_bound_message_opens_only_with_the_same_binding() {
    let mut world = World::established();
    assert_eq!(
        world.seal_bound(0, b"early").err(),
        Some(SealError::Unbound)
    );
    world.bind(0, Some(7));
    let message = world.seal_bound(0, b"seven").unwrap();
    let before = world.snapshot(1);
    let refused = world.arrive(1, address(1), message.bytes());
    assert_eq!(refused, Err(Refused::Unbound));
    assert_eq!(world.snapshot(1), before);
    world.bind(1, Some(8));
    let before = world.snapshot(1);
    let refused = world.arrive(1, address(1), message.bytes());
    assert_eq!(refused, Err(Refused::Forged), "bound to something else");
    // Claiming that it is not bound does not help either.
    let mut unbound = message.bytes().to_vec();
    unbound[0] ^= 0x40;
    assert_eq!(world.arrive(1, address(1), &unbound), Err(Refused::Forged));
    assert_eq!(world.snapshot(1), before);
    world.bind(1, Some(7));
    refuses_all_changes(&mut world, 1, &message, 0);
    let received = world.arrive(1, address(1), message.bytes());
    assert!(matches!(
        received,
        Ok(AcceptedDatagram::Data { bound: true, .. })
    ));
    // Unbound messages still open, and are reported as unbound.
    let free = world.seal(0, b"free").unwrap();
    let received = world.arrive(1, address(1), free.bytes());
    assert!(matches!(
        received,
        Ok(AcceptedDatagram::Data { bound: false, .. })
    ));
    world.assert_works();
}

/// An initiation recorded before a restart is answered, because its age cannot be known. It must not change the peer's
/// address, nor replace a session.
#[test]
fn replayed_initiations_move_no_peer_and_replace_no_session() {
    let mut world = World::established();
    let peer = world.peer(1);
    world.ends[0].rekey(world.now, world.peer(0));
    world.now += SECOND * 6;
    world.timeout(0);
    let recorded = world.intercept(0);
    world.ends[1] = super::world::node(world.now, 1, Some(address(1)), Limits::default(), 9);
    world.run_for(SECOND);
    world.assert_works();
    let other = world.seal(1, b"in use").unwrap();
    // Since its restart, end 1 has seen only its own initiation.
    assert_eq!(world.ends[1].peers[&peer].heard_timestamp, None);
    world.arrive(1, address(13), recorded.bytes()).unwrap();
    assert_eq!(world.intercept(1).to, address(13));
    assert_eq!(world.ends[1].address(peer), Some(address(1)));
    assert!(world.arrive(0, address(2), other.bytes()).is_ok());
    world.assert_works();
}

/// A peer that has never called has the address of its data, not that of a replayed initiation.
#[test]
fn a_silent_peer_is_not_sought_at_a_replayed_address() {
    let mut world = World::established();
    let peer = world.peer(1);
    world.ends[0].rekey(world.now, world.peer(0));
    world.now += SECOND * 6;
    world.timeout(0);
    let recorded = world.intercept(0);
    world.ends[1] = super::world::node(world.now, 1, None, Limits::default(), 9);
    world.arrive(1, address(13), recorded.bytes()).unwrap();
    assert_eq!(world.intercept(1).to, address(13), "the answer alone");
    assert_eq!(world.ends[1].address(peer), None);
    world.ends[1].rekey(world.now, peer);
    world.timeout(1);
    assert!(world.ends[1].poll_transmit().is_none(), "nobody is called");
    // Its owner is found when it initiates itself.
    world.run_for(SECOND * 60);
    world.assert_works();
    assert_eq!(world.ends[1].address(peer), Some(address(1)));
}

fn stranger(n: u64) -> Vec<u8> {
    let mut private = [0; 32];
    private[..8].copy_from_slice(&n.to_be_bytes());
    let private = PrivateKey::generate(private);
    let mut message = [0; INITIATION_LEN];
    let noise = initiation(&mut message, n as u32);
    let offer = HandshakeOffer {
        timestamp: n,
        fast_aes: false,
        preshared: false,
    };
    Initiation::write(
        &private,
        (&key(1).public(), None),
        [n as u8; 32],
        offer,
        noise,
    )
    .expect("valid keys");
    MacKeys::of(&key(1).public()).sign(&mut message, None);
    message.to_vec()
}

#[test]
fn strangers_are_refused() {
    let mut world = World::established();
    let before = world.snapshot(1);
    let received = world.arrive(1, address(13), &stranger(1));
    assert_eq!(received, Err(Refused::UnknownKey));
    assert_eq!(world.snapshot(1), before);
    assert!(world.ends[1].poll_transmit().is_none());
    let mut private = [0; 32];
    private[..8].copy_from_slice(&1_u64.to_be_bytes());
    let key = PrivateKey::generate(private).public();
    assert_eq!(world.ends[1].last_stranger(), Some(&key));
}

#[test]
fn a_flood_costs_few_exchanges_and_the_session_survives() {
    let mut world = World::established();
    let counters = *world.ends[1].counters();
    let flood: Vec<_> = (1..20).map(stranger).collect();
    for n in 0..1_000 {
        world.now += Duration::from_micros(900);
        let from = socket_address([203, 0, 113, (n % 250) as u8], 7);
        assert!(world.arrive(1, from, &flood[n % flood.len()]).is_err());
        while let Some(answer) = world.ends[1].poll_transmit() {
            assert_eq!(answer.to, from);
            assert!(answer.bytes().len() < INITIATION_LEN, "it amplifies");
        }
    }
    let limit = u64::from(Limits::default().handshakes_per_second);
    assert_eq!(
        world.ends[1].counters().exchanges,
        counters.exchanges + limit
    );
    assert_eq!(world.ends[1].counters().cookies_sent, 1_000 - limit);
    world.assert_works();
}

/// End 1 is always under load.
fn loaded() -> World {
    let loaded = Limits {
        handshakes_per_second: 0,
        ..Limits::default()
    };
    World::with_limits([true, false], [Limits::default(), loaded])
}

#[test]
fn under_load_a_cookie_must_be_shown() {
    let mut world = loaded();
    let before = world.snapshot(1);
    world.timeout(0);
    let first = world.intercept(0);
    assert_eq!(
        world.arrive(1, address(1), first.bytes()),
        Err(Refused::Load)
    );
    let reply = world.intercept(1);
    assert_eq!(reply.bytes().len(), COOKIE_REPLY_LEN);
    assert_eq!(world.snapshot(1), before, "no state was kept");
    assert_eq!(
        world.ends[1].counters().exchanges,
        0,
        "nothing was computed"
    );
    refuses_all_changes(&mut world, 0, &reply, 0);
    let received = world.arrive(0, address(2), reply.bytes());
    assert!(matches!(received, Ok(AcceptedDatagram::Cookie { .. })));
    // Replaying the same cookie changes nothing.
    let before = world.snapshot(0);
    assert_eq!(
        world.arrive(0, address(2), reply.bytes()),
        Err(Refused::UnknownIndex)
    );
    assert_eq!(world.snapshot(0), before);
    // The next initiation shows it, but only from the address it was issued to.
    world.now += SECOND * 6;
    world.timeout(0);
    let second = world.intercept(0);
    for elsewhere in [address(13), socket_address([192, 0, 2, 1], 4_001)] {
        assert_eq!(
            world.arrive(1, elsewhere, second.bytes()),
            Err(Refused::Load)
        );
        world.intercept(1);
    }
    for bit in 0..INITIATION_LEN * 8 {
        let mut changed = second.bytes().to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let refused = world.arrive(1, address(1), &changed).unwrap_err();
        assert!(matches!(
            refused,
            Refused::Load | Refused::Mac1 | Refused::Type | Refused::Length | Refused::UnknownIndex
        ));
        while world.ends[1].poll_transmit().is_some() {}
    }
    assert_eq!(world.ends[1].counters().exchanges, 0);
    let received = world.arrive(1, address(1), second.bytes());
    assert!(matches!(received, Ok(AcceptedDatagram::Handshake { .. })));
}

#[test]
fn sessions_are_established_and_renewed_under_load() {
    let mut world = loaded();
    world.run_for(SECOND * 6);
    assert!(world.is_established());
    for _ in 0..600 {
        world.run_for(SECOND);
        world.assert_works();
    }
    let [first, second] = [0, 1].map(|end| *world.ends[end].counters());
    assert!(first.established >= 5, "{first:?}");
    assert!(second.cookies_sent >= 2, "cookies grow old: {second:?}");
}

#[test]
fn a_cookie_of_an_earlier_secret_is_refused() {
    let mut world = loaded();
    world.timeout(0);
    let first = world.intercept(0);
    let _load = world.arrive(1, address(1), first.bytes());
    let reply = world.intercept(1);
    world.arrive(0, address(2), reply.bytes()).unwrap();
    world.now += SECOND * 6;
    world.timeout(0);
    let second = world.intercept(0);
    world.now += SECOND * 120;
    assert_eq!(
        world.arrive(1, address(1), second.bytes()),
        Err(Refused::Load)
    );
}

/// A stranger therefore costs one exchange, not two.
#[test]
fn the_key_is_looked_up_before_the_second_exchange() {
    let mut world = World::established();
    let mut message = stranger(1);
    // The offer, which is decrypted only after the second exchange.
    message[100] ^= 1;
    MacKeys::of(&key(1).public()).sign(&mut message, None);
    let before = world.snapshot(1);
    let received = world.arrive(1, address(13), &message);
    assert_eq!(received, Err(Refused::UnknownKey));
    assert_eq!(world.snapshot(1), before);
    // With a known key it counts as a forgery.
    world.ends[0].rekey(world.now, world.peer(0));
    world.now += SECOND * 6;
    world.timeout(0);
    let mut message = world.intercept(0).bytes().to_vec();
    message[100] ^= 1;
    MacKeys::of(&key(1).public()).sign(&mut message, None);
    let received = world.arrive(1, address(1), &message);
    assert_eq!(received, Err(Refused::Forged));
}

/// Sends a stranger's initiations with valid cookies, one per millisecond, from each of the addresses in turn. Returns
/// how many were worth an exchange.
fn flood_with_cookies(world: &mut World, from: &[PeerAddress], messages: usize) -> u64 {
    let before = world.ends[1].counters().exchanges;
    for n in 0..messages {
        world.now += Duration::from_millis(1);
        let from = from[n % from.len()];
        let Secure {
            cookies, entropy, ..
        } = &mut world.ends[1];
        let cookie = cookies.cookie(world.now, from, entropy);
        let mut message = stranger(7);
        MacKeys::of(&key(1).public()).sign(&mut message, Some(&cookie));
        let refused = world.arrive(1, from, &message).unwrap_err();
        assert!(matches!(refused, Refused::UnknownKey | Refused::Rate));
        assert!(world.ends[1].poll_transmit().is_none());
    }
    world.ends[1].counters().exchanges - before
}

#[test]
fn exchanges_per_address_are_limited_even_with_cookies() {
    let mut world = loaded();
    world.run_for(SECOND * 6);
    assert!(world.is_established());
    let most = 3 * u64::from(Limits::default().handshakes_per_address);
    // Two seconds: the saved burst, plus twice the rate per second.
    let ports: Vec<_> = (1..=50)
        .map(|port| socket_address([203, 0, 113, 7], port))
        .collect();
    let exchanges = flood_with_cookies(&mut world, &ports, 2_000);
    assert!(
        (most - 1..=most).contains(&exchanges),
        "{exchanges} of {most}"
    );
    // A /64 network counts as one address.
    let hosts: Vec<PeerAddress> = (1..=50)
        .map(|host| format!("[2001:db8:0:7::{host}]:{host}").parse().unwrap())
        .collect();
    let exchanges = flood_with_cookies(&mut world, &hosts, 2_000);
    assert!(
        (most - 1..=most).contains(&exchanges),
        "{exchanges} of {most}"
    );
    assert!(world.refused(1, Refused::Rate) >= 3_800);
    // Meanwhile the peer, at another address, renews its keys.
    let established = world.ends[1].counters().established;
    for _ in 0..140 {
        flood_with_cookies(&mut world, &ports, 100);
        world.run_for(SECOND);
        world.assert_works();
    }
    assert!(world.ends[1].counters().established > established);
}
