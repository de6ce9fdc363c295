//! Input from unknown senders to a test's server, and what must hold for all of it: for fuzzing and for this crate's
//! tests. Each function panics if it does not hold.

use std::sync::atomic::AtomicBool;

use crate::clock::LocalClock;
use crate::control::{Finish, Line, Reply, ServerResult, TestOrder};
use crate::download::{Acknowledgment, Sender};
use crate::server_state::ServerState;
use crate::token::{TOKEN_LEN, TestToken};
use crate::{echo, voice};

/// The token of the running test.
pub const TOKEN: [u8; TOKEN_LEN] = [7; TOKEN_LEN];

/// A control connection: each line is a message or an error, and none takes more memory than the limit.
pub fn lines(mut bytes: &[u8]) {
    let (mut line, mut number) = (Line::default(), 0_u32);
    while !bytes.is_empty() && !line.is_too_long() {
        let (used, has_ended) = line.take(bytes);
        assert!(used > 0 && used <= bytes.len());
        bytes = &bytes[used..];
        if has_ended && !line.is_too_long() {
            let _message_or_not = match number % 4 {
                0 => line.read::<TestOrder>().is_ok(),
                1 => line.read::<Reply>().is_ok(),
                2 => line.read::<Finish>().is_ok(),
                _ => line.read::<ServerResult>().is_ok(),
            };
            number += 1;
        }
    }
}

/// A datagram to the echo port: only requests with the test's token are answered, and "WHO?" where that is enabled; a
/// reply repeats the fields of its request.
pub fn echo(asked: &[u8; echo::LENGTH], welcoming: bool, heard_ns: u64) {
    let stop = AtomicBool::new(false);
    let state = ServerState::new(LocalClock::default(), u64::MAX, &stop);
    let _test = state.begin(TestToken(TOKEN), None, u64::MAX, 0);
    let mut packet = *asked;
    let answered = echo::reply(&mut packet, &state, welcoming, heard_ns);
    let is = |of: [u8; 4]| asked[..4] == of;
    let is_ours = asked[8..8 + TOKEN_LEN] == TOKEN;
    let may = is(echo::REQUEST) && is_ours || is(echo::WHO) && welcoming;
    assert_eq!(answered, may);
    match answered {
        true => {
            assert_eq!(echo::field(echo::HEARD, &packet), heard_ns);
            assert_eq!(packet[4..echo::HEARD], asked[4..echo::HEARD]);
        }
        false => assert_eq!(packet, *asked),
    }
}

/// A datagram to the ports of voice and of downloads: only those with the token are accepted, and no acknowledgment
/// affects a sender that has not sent the packet.
pub fn datagram(bytes: &[u8]) {
    if voice::parse(bytes, TestToken(TOKEN), 0).is_some() {
        assert_eq!(bytes[16..16 + TOKEN_LEN], TOKEN);
    }
    let Some((token, said)) = Acknowledgment::read(bytes) else {
        return;
    };
    let written = token.try_into().map(|token| said.write(TestToken(token)));
    assert_eq!(written.ok().as_ref().map(|bytes| &bytes[..]), Some(bytes));
    let mut sender = Sender::new(0);
    let mut sent = 0;
    while sender.poll(0).is_some() {
        sent += 1;
    }
    assert!(!sender.handle_ack(1, &said), "{said:?} of {sent}");
}
