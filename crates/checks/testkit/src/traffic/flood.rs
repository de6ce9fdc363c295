//! A flood from an unknown sender to a node with keys: datagrams that look like those of a secure session, at a given
//! rate.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use airlane_base::Streams;

/// Lengths of an initiation, a response, a cookie, frames, and an invalid message.
const LENGTHS: [usize; 6] = [144, 92, 64, 200, 1400, 7];
/// The number of different datagrams, made in advance so that generating them does not limit the flood.
const KINDS: usize = 600;
const TICK: Duration = Duration::from_millis(1);

/// Sends `per_second` datagrams to `target` until stopped. Returns how many were sent.
///
/// # Errors
/// If there is no socket.
pub fn flood(target: SocketAddr, per_second: u64, stop: &AtomicBool) -> io::Result<u64> {
    let any: SocketAddr = match target {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    let mut rng = Streams::new(1, 0).stream("flood");
    let datagrams: Vec<Vec<u8>> = (0..KINDS)
        .map(|i| {
            let length = LENGTHS[i % LENGTHS.len()];
            let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            // A valid message type, and zero reserved bytes.
            bytes[..4].copy_from_slice(&[1 + (i / LENGTHS.len() % 4) as u8, 0, 0, 0]);
            bytes
        })
        .collect();
    let begun = Instant::now();
    let (mut sent, mut missed) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * per_second as f64) as u64;
        let owed = due.saturating_sub(sent + missed);
        // Datagrams that the machine could not send in time are not sent later in one burst.
        let burst = owed.min(per_second / 100);
        for i in 0..burst {
            let datagram = &datagrams[(sent + i) as usize % KINDS];
            // A full buffer does not end the flood.
            let _as_good_as_sent = socket.send_to(datagram, target);
        }
        (sent, missed) = (sent + burst, missed + owed - burst);
        std::thread::sleep(TICK);
    }
    Ok(sent)
}
