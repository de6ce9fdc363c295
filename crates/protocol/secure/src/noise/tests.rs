//! The published vector of the pattern, both ends of a handshake, and what they refuse.

use super::*;

/// Cacophony's vectors, as the Noise wiki publishes them: `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s`.
const PROLOGUE: &str = "4a6f686e2047616c74";
const INITIATOR: [&str; 2] = [
    "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
    "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
];
const RESPONDER: [&str; 2] = [
    "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
];
const RESPONDER_PUBLIC: &str = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62";
/// The pre-shared key, then payload and message, from initiator and responder in turn.
const PSK: &str = "54686973206973206d7920417573747269616e20706572737065637469766521";
const MESSAGES: [(&str, &str); 4] = [
    (
        "4c756477696720766f6e204d69736573",
        concat!(
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944001e21de9f98ddd8",
            "e2ad57527207feb56253c9c94a9e496782ecfcb2a75fbcaf1b52948cc48daefe660c62119ab50009",
            "80c84831215f2441eba616548e832985464cf17e51ee93109008399a21f7e13f",
        ),
    ),
    (
        "4d757272617920526f746862617264",
        concat!(
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843cb765f2caef0751b",
            "8f007572dab0322217755c0632f365717edbf34d33e87a",
        ),
    ),
    (
        "462e20412e20486179656b",
        "8153ca9833bc3c1b91a7e66e5f4d4f5b59bf9e64c2f20d15f0bba7",
    ),
    (
        "4361726c204d656e676572",
        "07af0c9c86e1b4e80f36b04ff7688d51141af3debd0332f0a705ef",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn end(keys: [&str; 2], peer: Option<&str>) -> HandshakeState {
    let [local, ephemeral] = keys.map(bytes);
    let (prologue, peer) = (bytes(PROLOGUE), peer.map(bytes));
    let psk: [u8; KEY_LEN] = bytes(PSK).try_into().expect("32 bytes");
    let primitives = Box::new(Primitives {
        seed: [0; 32],
        known: None,
    });
    let builder = Builder::with_resolver(PATTERN.parse().unwrap(), primitives)
        .local_private_key(&local)
        .unwrap()
        .prologue(&prologue)
        .unwrap()
        .psk(PSK_AT, &psk)
        .unwrap()
        .fixed_ephemeral_key_for_testing_only(&ephemeral);
    match &peer {
        Some(peer) => builder.remote_public_key(peer).unwrap().build_initiator(),
        None => builder.build_responder(),
    }
    .expect("a complete set of keys")
}

#[test]
fn published_vector_of_the_pattern() {
    let mut ends = [end(INITIATOR, Some(RESPONDER_PUBLIC)), end(RESPONDER, None)];
    let mut room = [0; 200];
    for (at, (payload, message)) in MESSAGES.iter().take(2).enumerate() {
        let (payload, message) = (bytes(payload), bytes(message));
        let len = ends[at].write_message(&payload, &mut room).unwrap();
        assert_eq!(room[..len], message, "message {at}");
        let len = ends[1 - at].read_message(&message, &mut room).unwrap();
        assert_eq!(room[..len], payload, "payload {at}");
    }
    // The first message in each direction under the keys of the handshake.
    let [initiator, responder] = ends
        .each_mut()
        .map(|end| Split::of(end, DataCipher::ChaChaPoly));
    for ((payload, message), (send, receive)) in MESSAGES[2..].iter().zip([
        (&initiator.send, &responder.receive),
        (&responder.send, &initiator.receive),
    ]) {
        assert_eq!(send, receive);
        let (payload, message) = (bytes(payload), bytes(message));
        let len = ChaChaPoly(DataCipher::ChaChaPoly.key(send)).encrypt(0, &[], &payload, &mut room);
        assert_eq!(room[..len], message);
    }
}

fn keys() -> (PrivateKey, PrivateKey) {
    (PrivateKey::generate([1; 32]), PrivateKey::generate([2; 32]))
}

/// The responder's known keys: the initiator's.
fn known() -> KnownKeys {
    let id = PeerId(0);
    Arc::new(BTreeMap::from([(keys().0.public(), id)]))
}

fn initiate(fast_aes: bool) -> (Initiation, [u8; 105]) {
    let (private, peer) = keys();
    let mut noise = [0; 105];
    let offer = HandshakeOffer {
        timestamp: 77,
        fast_aes,
        preshared: false,
    };
    let state = Initiation::write(&private, (&peer.public(), None), [3; 32], offer, &mut noise);
    (state.expect("valid keys"), noise)
}

#[test]
fn both_ends_get_the_same_keys_and_the_responder_knows_who_and_when() {
    let (private, peer) = keys();
    let (mut initiation, noise) = initiate(false);
    let response =
        Response::read(&peer, [4; 32], &known(), &noise, &mut None).expect("what was written");
    let said = (response.key, response.offer.timestamp);
    assert_eq!(said, (private.public(), 77));
    let mut noise = [0; 49];
    let theirs = response.write(false, None, &mut noise).expect("room");
    let ours = initiation.finish(&noise).expect("what was written");
    assert_eq!(ours.send, theirs.receive);
    assert_eq!(ours.receive, theirs.send);
    assert_ne!(ours.send, ours.receive);
}

#[test]
fn data_is_encrypted_with_aes_where_both_ends_are_fast_at_it() {
    let (_, peer) = keys();
    for (ours, theirs) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut initiation, noise) = initiate(ours);
        let response =
            Response::read(&peer, [4; 32], &known(), &noise, &mut None).expect("what was written");
        let mut noise = [0; 49];
        let chosen = response
            .write(theirs, None, &mut noise)
            .expect("room")
            .cipher;
        let agreed = initiation.finish(&noise).expect("what was written").cipher;
        assert_eq!(chosen == DataCipher::AesGcm, ours && theirs);
        assert_eq!(agreed, chosen);
    }
}

#[test]
fn a_cipher_that_was_not_offered_is_refused() {
    let (_, peer) = keys();
    for choice in [DataCipher::AesGcm.code(), 2, 255] {
        let (mut initiation, noise) = initiate(false);
        let mut response =
            Response::read(&peer, [4; 32], &known(), &noise, &mut None).expect("what was written");
        let mut noise = [0; 49];
        let set = response.state.set_psk(PSK_AT.into(), &NO_PSK);
        set.expect("the pattern has one there");
        let written = response.state.write_message(&[choice], &mut noise);
        assert_eq!(written.ok(), Some(49));
        assert_eq!(initiation.finish(&noise).err(), Some(Refused::Forged));
    }
}

#[test]
fn every_bit_of_both_messages_counts() {
    let (_, peer) = keys();
    let (mut initiation, noise) = initiate(true);
    for bit in 0..noise.len() * 8 {
        let mut changed = noise;
        changed[bit / 8] ^= 1 << (bit % 8);
        // X25519 ignores the highest bit of a point, but the transcript hash does not.
        let refused = Response::read(&peer, [4; 32], &known(), &changed, &mut None).err();
        assert_eq!(refused, Some(Refused::Forged), "bit {bit}");
    }
    let mut noise_back = [0; 49];
    let response =
        Response::read(&peer, [4; 32], &known(), &noise, &mut None).expect("what was written");
    let theirs = response.write(true, None, &mut noise_back).expect("room");
    for bit in 0..noise_back.len() * 8 {
        let mut changed = noise_back;
        changed[bit / 8] ^= 1 << (bit % 8);
        let refused = initiation.finish(&changed).err();
        assert_eq!(refused, Some(Refused::Forged), "bit {bit}");
    }
    // After all that, the genuine response still completes the handshake.
    let ours = initiation.finish(&noise_back).expect("what was written");
    assert_eq!(ours.send, theirs.receive);
}

#[test]
fn points_of_small_order_are_refused() {
    let (_, peer) = keys();
    let mut noise = initiate(true).1;
    noise[..32].fill(0);
    assert_eq!(
        Response::read(&peer, [4; 32], &known(), &noise, &mut None).err(),
        Some(Refused::Forged)
    );
    let dh = X25519::new(None);
    assert!(matches!(dh.dh(&[0; 32], &mut [0; 32]), Err(Error::Dh)));
}
