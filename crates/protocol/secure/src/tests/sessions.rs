//! Handshakes, renewal, restarts, roaming and changes of the peer list, over a path without loss.

use airlane_base::Duration;

use super::world::{DELAY, Fate, World, address, key, node};

use crate::{AcceptedDatagram, Limits, PeersError, Refused, SealError, SecurePeer, Wall};

const SECOND: Duration = Duration::from_secs(1);

fn initiations(world: &World) -> [u64; 2] {
    [0, 1].map(|end| world.ends[end].counters().initiations_sent)
}

fn current(world: &World, end: usize) -> &crate::keypair::Keypair {
    let peer = &world.ends[end].peers[&world.peer(end)];
    peer.current.as_deref().expect("a session")
}

#[test]
fn either_end_can_begin() {
    for beginner in [0, 1] {
        let mut world = World::new([beginner == 0, beginner == 1]);
        world.run_for(DELAY * 4);
        assert!(world.is_established());
        world.assert_works();
        for end in [0, 1] {
            let counters = world.ends[end].counters();
            assert_eq!((counters.established, counters.exchanges), (1, 1));
            assert_eq!(counters.refused.total(), 0);
            assert_eq!(current(&world, end).initiator, end == beginner);
        }
    }
}

#[test]
fn handshakes_that_cross_end_in_one_session() {
    for (first, late) in [(0, 2), (0, 3), (0, 4), (0, 6), (1, 3), (1, 4), (1, 6)] {
        let mut world = World::new([true, true]);
        // One initiation is in flight as long as the other, or longer.
        world.timeout(first);
        world.fates.push_back(Fate(vec![DELAY / 2 * late]));
        world.drain(first);
        world.run_for(SECOND);
        assert_eq!(initiations(&world), [1, 1]);
        assert!(world.is_established());
        world.assert_works();
        assert_ne!(current(&world, 0).initiator, current(&world, 1).initiator);
        // The session lives on like any other, with one handshake when it is due.
        for _ in 0..130 {
            world.run_for(SECOND);
            world.assert_works();
        }
        assert_eq!(initiations(&world).iter().sum::<u64>(), 3);
    }
}

#[test]
fn the_responder_waits_until_the_initiator_has_the_keys() {
    let mut world = World::new([true, false]);
    world.timeout(0);
    let initiation = world.intercept(0);
    world.arrive(1, address(1), initiation.bytes()).unwrap();
    let response = world.intercept(1);
    assert_eq!(world.seal(1, b"early").unwrap_err(), SealError::NoSession);
    world.arrive(0, address(2), response.bytes()).unwrap();
    let confirmation = world.intercept(0);
    assert_eq!(world.seal(1, b"early").unwrap_err(), SealError::NoSession);
    let received = world.arrive(1, address(1), confirmation.bytes());
    assert!(matches!(received, Ok(AcceptedDatagram::Keepalive { .. })));
    assert!(world.seal(1, b"now").is_ok());
    assert_eq!(world.ends[1].counters().unsealed, 2);
}

#[test]
fn keys_are_renewed_by_their_initiator_while_they_are_used() {
    let mut world = World::established();
    for second in 1..=1_000 {
        world.run_for(SECOND);
        world.assert_works();
        let expected = 1 + second / 121;
        let [begun, none] = initiations(&world);
        assert!(begun.abs_diff(expected) <= 1, "{begun} in {second} s");
        assert_eq!(none, 0);
    }
    let counters = world.ends[0].counters();
    assert_eq!(counters.established, counters.initiations_sent);
}

#[test]
fn keys_are_renewed_after_so_many_messages() {
    let few = Limits {
        rekey_after_messages: 10,
        reject_after_messages: 1_000,
        ..Limits::default()
    };
    let mut world = World::with_limits([true, false], [few; 2]);
    world.run_for(SECOND);
    for _ in 0..200 {
        world.run_for(SECOND);
        world.assert_works();
    }
    // Every ten seconds because of the number of messages, and never faster than the retries.
    let begun = initiations(&world).iter().sum::<u64>();
    assert!((15..=41).contains(&begun), "{begun}");
}

#[test]
fn keys_are_not_used_beyond_their_count() {
    let few = Limits {
        reject_after_messages: 10,
        ..Limits::default()
    };
    let mut world = World::with_limits([true, false], [few; 2]);
    world.run_for(SECOND);
    // One message was the confirmation.
    for _ in 0..9 {
        assert!(world.seal(0, b"x").is_ok());
    }
    assert_eq!(world.seal(0, b"x").unwrap_err(), SealError::NoSession);
    world.run_for(SECOND * 6);
    assert!(world.seal(0, b"x").is_ok(), "with the next keys");
}

#[test]
fn an_idle_session_is_silent_and_ends_by_itself() {
    let mut world = World::established();
    let before = initiations(&world);
    world.run_for(SECOND * 1_000);
    assert_eq!(initiations(&world), before);
    assert!(!world.is_established());
    assert_eq!(world.ends[0].poll_timeout(), None);
    assert_eq!(world.send(0, b"wake up"), Err(SealError::NoSession));
    world.run_for(SECOND);
    world.assert_works();
}

#[test]
fn expired_keys_are_refused() {
    let mut world = World::established();
    let message = world.seal(0, b"late").unwrap();
    world.now += Limits::default().reject_after;
    let before = world.snapshot(1);
    assert_eq!(
        world.arrive(1, address(1), message.bytes()),
        Err(Refused::Expired)
    );
    assert_eq!(world.snapshot(1), before);
    assert_eq!(world.seal(0, b"late").unwrap_err(), SealError::NoSession);
}

#[test]
fn the_responder_renews_when_the_initiator_cannot() {
    let mut world = World::established();
    // Its clock is set back: its timestamps are refused, except for one that must grow anyway.
    let peer = world.peer(1);
    let future = world.wall(0).as_nanos() + 1_000_000_000_000_000;
    world.ends[1].peers.get_mut(&peer).unwrap().heard_timestamp = Some(future);
    for _ in 0..200 {
        world.run_for(SECOND);
        world.assert_works();
    }
    assert!(world.refused(1, Refused::OldInitiation) >= 2);
    assert_eq!(initiations(&world)[1], 1);
}

#[test]
fn data_without_an_answer_is_answered_by_an_empty_message() {
    let mut world = World::established();
    world.send(0, b"one way").unwrap();
    world.run_for(SECOND * 9);
    assert_eq!(world.ends[1].counters().keepalives_sent, 0);
    world.run_for(SECOND * 2);
    assert_eq!(world.ends[1].counters().keepalives_sent, 1);
    world.run_for(SECOND * 30);
    assert_eq!(world.ends[1].counters().keepalives_sent, 1);
    assert_eq!(initiations(&world), [1, 0], "nothing was wrong");
}

#[test]
fn initiations_stop_without_traffic() {
    let mut world = World::new([true, false]);
    world.dead = true;
    world.run_for(SECOND * 1_000);
    let [begun, _] = initiations(&world);
    // After 0.5, 1, 2 and 4 s, then every 5 to 5.33 s.
    assert!((20..=22).contains(&begun), "{begun} in 90 s");
    assert_eq!(world.ends[0].poll_timeout(), None);
    // They go on as long as there is something to send.
    for _ in 0..500 {
        let _no_session = world.send(0, b"anybody?");
        world.run_for(SECOND);
    }
    let more = initiations(&world)[0] - begun;
    assert!((90..=100).contains(&more), "{more} in 500 s");
    world.dead = false;
    world.run_for(SECOND * 6);
    world.assert_works();
}

#[test]
fn keys_that_an_outage_outlived_are_renewed_within_a_second_of_its_end() {
    let mut world = World::established();
    world.dead = true;
    for _ in 0..300 {
        world.run_for(SECOND);
        // Both ends want a session all the time, as a link does.
        for end in [0, 1] {
            let peer = world.peer(end);
            let now = world.now;
            world.ends[end].rekey(now, peer);
        }
    }
    assert!(!world.is_established());
    let before: u64 = initiations(&world).iter().sum();
    world.dead = false;
    world.run_for(SECOND);
    world.assert_works();
    let after: u64 = initiations(&world).iter().sum();
    assert!(after - before <= 4, "{after} after {before}");
}

#[test]
fn a_restarted_peer_begins_at_once() {
    let mut world = World::established();
    world.assert_works();
    world.ends[1] = node(world.now, 1, Some(address(1)), Limits::default(), 200);
    // A message for the old process.
    world.send(0, b"lost").unwrap();
    world.run_for(SECOND);
    assert_eq!(world.refused(1, Refused::UnknownIndex), 1);
    world.assert_works();
    assert_eq!(initiations(&world), [1, 1]);
}

#[test]
fn a_restarted_peer_that_knows_nobody_is_found_again() {
    let mut world = World::established();
    world.assert_works();
    world.ends[1] = node(world.now, 1, None, Limits::default(), 200);
    for _ in 0..14 {
        world.send(0, b"lost").unwrap();
        world.run_for(SECOND);
    }
    assert_eq!(initiations(&world), [1, 0]);
    assert_eq!(world.refused(1, Refused::UnknownIndex), 14);
    world.send(0, b"lost").unwrap();
    world.run_for(SECOND * 2);
    assert_eq!(initiations(&world), [2, 0], "after 15 s of silence");
    world.assert_works();
}

#[test]
fn a_restarted_peer_with_a_slow_clock_is_found_by_the_other() {
    let mut world = World::established();
    world.rekey_and_run(1);
    world.ends[1] = node(world.now, 1, Some(address(1)), Limits::default(), 200);
    world.walls[1] = Duration::ZERO;
    for _ in 0..17 {
        let _lost = world.send(0, b"anybody?");
        world.run_for(SECOND);
    }
    assert!(world.refused(0, Refused::OldInitiation) >= 2);
    world.assert_works();
}

impl World {
    /// One end renews its keys now.
    pub(super) fn rekey_and_run(&mut self, end: usize) {
        let peer = self.peer(end);
        self.run_for(SECOND * 6);
        self.ends[end].rekey(self.now, peer);
        self.run_for(SECOND);
    }
}

/// An end that only asks learns the same and leaves no trace. The peer continues to call, and the next end at that
/// address need not wait until the peer has given up keys that are gone.
#[test]
fn a_probing_end_is_answered_and_leaves_no_session() {
    for (knows, psk) in [
        ([true, false], None),
        ([false, true], None),
        ([true, true], Some(7)),
    ] {
        let mut world = World::new(knows);
        world.preshare([psk, psk]);
        world.ends[0].only_ask();
        world.run_for(SECOND * 2);
        let (asking, asked) = (world.peer(0), world.peer(1));
        assert!(world.ends[0].is_established(world.now, asking), "{knows:?}");
        assert_eq!(world.ends[0].address(asking), Some(address(2)));
        assert_eq!(world.ends[0].counters().responses_sent, 0);
        assert!(!world.ends[1].is_established(world.now, asked));
        assert!(world.seal(1, b"anybody?").is_err());
        // An end with the same key starts, and knows no more than before.
        let known = knows[0].then_some(address(2));
        world.ends[0] = node(world.now, 0, known, Limits::default(), 200);
        world.preshare([psk, psk]);
        world.run_for(Limits::default().retry + SECOND);
        assert!(world.is_established(), "{knows:?}");
        world.assert_works();
    }
    // With another pre-shared key, or one at one end alone, there is no answer, and the end that asks knows why.
    for preshared in [[Some(1), Some(2)], [Some(1), None], [None, Some(1)]] {
        let mut world = World::new([false, true]);
        world.preshare(preshared);
        world.ends[0].only_ask();
        world.run_for(SECOND * 8);
        assert!(!world.ends[0].is_established(world.now, world.peer(0)));
        let refused = world.ends[0].counters().refused;
        assert!(refused.of(Refused::Preshared) > 0, "{preshared:?}");
    }
}

#[test]
fn a_reflected_initiation_is_recognised() {
    let mut world = World::new([true, false]);
    let wall = Wall::from_unix(Duration::from_secs(1));
    world.ends[0].handle_timeout(world.now, wall);
    let call = world.ends[0].poll_transmit().unwrap();
    let mut plain = [0; 64];
    let back = world.ends[0].handle_datagram(world.now, call.to, call.bytes(), &mut plain);
    assert_eq!(back, Err(Refused::Own));
    // Another node with the same key takes it for a peer's, of which it has no valid MAC.
    let mut twin = node(world.now, 0, None, Limits::default(), 200);
    let other = twin.handle_datagram(world.now, call.to, call.bytes(), &mut plain);
    assert_eq!(other, Err(Refused::Mac1));
}

#[test]
fn a_peer_may_roam() {
    let mut world = World::established();
    world.assert_works();
    let peer = world.peer(1);
    world.addresses[0] = address(9);
    let message = world.seal(0, b"I moved").unwrap();
    let received = world.arrive(1, address(9), message.bytes()).unwrap();
    let data = AcceptedDatagram::Data {
        peer,
        len: 7,
        bound: false,
        address_changed: true,
    };
    assert_eq!(received, data);
    assert_eq!(world.ends[1].address(peer), Some(address(9)));
    world.assert_works();
}

#[test]
fn a_peer_that_moved_unseen_is_sought_where_it_is_configured() {
    let mut world = World::established();
    let peer = world.peer(0);
    let message = world.seal(1, b"I moved").unwrap();
    world.arrive(0, address(9), message.bytes()).unwrap();
    assert_eq!(world.ends[0].address(peer), Some(address(9)));
    world.ends[0].forget_address(peer);
    assert_eq!(world.ends[0].address(peer), Some(address(2)));
    assert_eq!(world.seal(0, b"where are you").unwrap().to, address(2));
    // Its next message shows where it is.
    let message = world.seal(1, b"here").unwrap();
    world.arrive(0, address(9), message.bytes()).unwrap();
    assert_eq!(world.ends[0].address(peer), Some(address(9)));
    // Without a configured address, the last one is the best guess.
    let peer = world.peer(1);
    let before = world.ends[1].address(peer);
    world.ends[1].forget_address(peer);
    assert_eq!(world.ends[1].address(peer), before);
}

#[test]
fn an_old_message_moves_no_peer() {
    let mut world = World::established();
    let peer = world.peer(1);
    let old = world.seal(0, b"before").unwrap();
    let new = world.seal(0, b"after").unwrap();
    world.arrive(1, address(9), new.bytes()).unwrap();
    let late = world.arrive(1, address(1), old.bytes()).unwrap();
    assert!(matches!(
        late,
        AcceptedDatagram::Data {
            address_changed: false,
            ..
        }
    ));
    assert_eq!(world.ends[1].address(peer), Some(address(9)));
    // Nor does a message under retired keys, however new it is among them.
    let retired = world.seal(0, b"in flight").unwrap();
    world.ends[1].rekey(world.now, peer);
    world.addresses[0] = address(9);
    world.run_for(SECOND * 6);
    world.assert_works();
    assert!(world.arrive(1, address(1), retired.bytes()).is_ok());
    assert_eq!(world.ends[1].address(peer), Some(address(9)));
}

#[test]
fn keys_can_be_changed_at_both_ends() {
    let mut world = World::established();
    world.assert_works();
    let old = world.peer(0);
    let in_flight = world.seal(1, b"under the old key").unwrap();
    // End 1 gets a new private key, and end 0 is told.
    let fresh = crate::PrivateKey::generate([77; 32]);
    let replaced = SecurePeer {
        preshared: None,
        key: fresh.public(),
        address: Some(address(2)),
    };
    world.ends[0]
        .set_peers(world.now, std::slice::from_ref(&replaced))
        .unwrap();
    assert_eq!(
        world.arrive(0, address(2), in_flight.bytes()),
        Err(Refused::UnknownIndex)
    );
    assert_eq!(
        world.ends[0].seal(world.now, old, &[b"x"], &mut [0; 100]),
        Err(SealError::UnknownPeer)
    );
    // The old key is no longer accepted. A removed peer leaves no index by which its messages could be found.
    let alone = crate::peer::Indices::default();
    world.ends[0].set_peers(world.now, &[]).unwrap();
    assert_eq!(format!("{:?}", world.ends[0].indices), format!("{alone:?}"));
    world.ends[0]
        .set_peers(world.now, std::slice::from_ref(&replaced))
        .unwrap();
    let ours = world.peer(1);
    world.now += SECOND * 6;
    world.ends[1].rekey(world.now, ours);
    world.timeout(1);
    let initiation = world.intercept(1);
    let before = world.snapshot(0);
    assert_eq!(
        world.arrive(0, address(2), initiation.bytes()),
        Err(Refused::UnknownKey)
    );
    assert_eq!(world.snapshot(0), before);
    // The new key is.
    let peer = SecurePeer {
        preshared: None,
        key: key(0).public(),
        address: None,
    };
    let limits = Limits::default();
    world.ends[1] = crate::Secure::new(world.now, fresh, &[peer], limits, [7; 32]).unwrap();
    world.run_for(SECOND);
    let new = world.ends[0].peer(&replaced.key).unwrap();
    assert_ne!(new, old);
    assert!(world.ends[0].is_established(world.now, new));
}

#[test]
fn peers_that_stay_keep_their_sessions() {
    let mut world = World::established();
    let kept = SecurePeer {
        preshared: None,
        key: key(1).public(),
        address: Some(address(2)),
    };
    let third = SecurePeer {
        preshared: None,
        key: key(2).public(),
        address: None,
    };
    let before = world.peer(0);
    world.ends[0]
        .set_peers(world.now, &[third, kept.clone()])
        .unwrap();
    assert_eq!(world.peer(0), before);
    world.assert_works();
    let statuses: Vec<_> = world.ends[0].status(world.now).collect();
    assert_eq!(statuses.len(), 2);
    assert!(statuses[0].session_age.is_some() && statuses[1].session_age.is_none());
    // A configured address that changes takes effect.
    let moved = SecurePeer {
        preshared: None,
        address: Some(address(8)),
        ..kept
    };
    world.ends[0].set_peers(world.now, &[moved]).unwrap();
    assert_eq!(world.ends[0].address(before), Some(address(8)));
}

#[test]
fn bad_lists_of_peers_change_nothing() {
    let mut world = World::established();
    let peer = |end| SecurePeer {
        preshared: None,
        key: key(end).public(),
        address: None,
    };
    let before = world.snapshot(0);
    let refused = world.ends[0].set_peers(world.now, &[peer(2), peer(2)]);
    assert_eq!(refused, Err(PeersError::Twice(key(2).public())));
    let refused = world.ends[0].set_peers(world.now, &[peer(0)]);
    assert_eq!(refused, Err(PeersError::Own(key(0).public())));
    assert_eq!(world.snapshot(0), before);
}

#[test]
fn short_buffers_are_reported_and_change_nothing() {
    let mut world = World::established();
    let (peer, before) = (world.peer(0), world.snapshot(0));
    let refused = world.ends[0].seal(world.now, peer, &[b"abc", b"de"], &mut [0; 28]);
    let needed = SealError::NoRoom {
        needed: 29,
        room: 28,
    };
    assert_eq!(refused, Err(needed));
    assert_eq!(world.snapshot(0), before);
    let message = world.seal(0, b"abcde").unwrap();
    let before = world.snapshot(1);
    let refused =
        world.ends[1].handle_datagram(world.now, address(1), message.bytes(), &mut [0; 4]);
    assert_eq!(refused, Err(Refused::NoRoom));
    assert_eq!(world.snapshot(1), before);
}

#[test]
fn payloads_are_put_together_from_parts() {
    let mut world = World::established();
    let (peer, mut out) = (world.peer(0), [0; 100]);
    let parts: [&[u8]; 3] = [b"head", b"", b"body"];
    let sealed = world.ends[0]
        .seal(world.now, peer, &parts, &mut out)
        .unwrap();
    assert_eq!((sealed.len, sealed.to), (8 + crate::OVERHEAD, address(2)));
    world.arrive(1, address(1), &out[..sealed.len]).unwrap();
    assert_eq!(world.got[1], [b"headbody"]);
}

#[test]
fn unsent_messages_are_bounded_and_counted() {
    let mut world = World::established();
    let data = world.seal(1, b"x").unwrap();
    world.arrive(0, address(2), data.bytes()).unwrap();
    let peer = world.peer(0);
    for _ in 0..100 {
        let peer = world.ends[0].peers.get_mut(&peer).unwrap();
        peer.on_received(world.now, &Limits::default(), 1);
        world.now += SECOND;
        world.ends[0].send_keepalive(world.now, world.peer(0));
    }
    assert_eq!(world.ends[0].counters().queue_full, 100 - 64);
}

/// After a sleep, or in a copy of the machine, nothing old is left: no keys, and no way to derive the same ones.
#[test]
fn a_renewed_end_has_no_old_keys_and_draws_new_ones() {
    let mut world = World::new([true, true]);
    world.run_for(SECOND);
    assert!(world.is_established());
    let before = current(&world, 0).local;
    let now = world.now;
    world.ends[0].renew(now, [77; 32]);
    let peer = world.peer(0);
    assert!(!world.ends[0].is_established(now, peer));
    // Meanwhile the other end's messages cannot be opened, and nothing needs to notify it first.
    world.run_for(SECOND);
    assert!(world.is_established());
    assert_ne!(current(&world, 0).local, before);
    world.assert_works();
    // Another seed gives another handshake: two copies of one end do not derive the same keys.
    let ephemeral = |seed| {
        let mut world = World::new([true, false]);
        world.ends[0].renew(world.now, [seed; 32]);
        world.timeout(0);
        let message = world.ends[0].poll_transmit().map(|m| m.bytes().to_vec());
        message.expect("a handshake begins")
    };
    assert_ne!(ephemeral(1), ephemeral(2));
    assert_eq!(ephemeral(1), ephemeral(1));
}
