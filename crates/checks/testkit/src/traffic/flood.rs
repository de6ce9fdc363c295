//! What a stranger sends at a node that has keys: datagrams that look like the secure session's, as many
//! as are asked for.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use airlane_base::Streams;

/// Lengths of an initiation, a response, a cookie, frames, and of nothing at all.
const LENGTHS: [usize; 6] = [144, 92, 64, 200, 1400, 7];
/// Different datagrams, made beforehand: making them must not be what limits the flood.
const KINDS: usize = 600;
const TICK: Duration = Duration::from_millis(1);

/// Sends `per_second` datagrams at `target` until told to stop. How many were sent.
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
            // A type that exists, and reserved bytes as they should be.
            bytes[..4].copy_from_slice(&[1 + (i / LENGTHS.len() % 4) as u8, 0, 0, 0]);
            bytes
        })
        .collect();
    let begun = Instant::now();
    let (mut sent, mut missed) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let due = (begun.elapsed().as_secs_f64() * per_second as f64) as u64;
        let behind = due.saturating_sub(sent + missed);
        // What the machine could not send in time is not made up for in one burst.
        let burst = behind.min(per_second / 100);
        for i in 0..burst {
            let datagram = &datagrams[(sent + i) as usize % KINDS];
            // A full buffer is no reason to stop.
            let _as_good_as_sent = socket.send_to(datagram, target);
        }
        (sent, missed) = (sent + burst, missed + behind - burst);
        std::thread::sleep(TICK);
    }
    Ok(sent)
}
