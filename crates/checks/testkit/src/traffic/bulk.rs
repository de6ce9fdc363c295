//! One TCP connection at full speed, for links of gigabits per second.
//!
//! Unlike the file of the probe, the content is not checked: on a small machine that would take CPU time from the
//! link under test.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use airlane_probe::is_timeout;
use socket2::SockRef;

use super::GLANCE;

/// The bulk connection's port.
pub const BULK_PORT: u16 = 5002;

/// Bytes per call, as in common tools.
const CHUNK: usize = 128 * 1024;

/// Waits for one connection and sends on it until `stop` is set or the receiver closes it.
///
/// # Errors
/// If the port cannot be opened, the kernel lacks the congestion control, or sending fails before `stop` is set.
pub fn bulk_send(address: IpAddr, congestion_control: &str, stop: &AtomicBool) -> io::Result<()> {
    let listener = TcpListener::bind((address, BULK_PORT))?;
    let socket = SockRef::from(&listener);
    socket.set_tcp_congestion(congestion_control.as_bytes())?;
    // The timeout of accept lets the loop check its deadline.
    socket.set_read_timeout(Some(GLANCE))?;
    let stopped = || stop.load(Ordering::Relaxed);
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(e) if is_timeout(&e) && stopped() => return Ok(()),
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    };
    stream.set_write_timeout(Some(GLANCE))?;
    let chunk = vec![b'b'; CHUNK];
    while !stopped() {
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(e) if is_timeout(&e) || stopped() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Receives and counts until `stop` is set.
///
/// # Errors
/// If there is no server, or the connection ends before `stop` is set.
pub fn bulk_receive(server: IpAddr, received: &AtomicU64, stop: &AtomicBool) -> io::Result<()> {
    let server = SocketAddr::from((server, BULK_PORT));
    let stopped = || stop.load(Ordering::Relaxed);
    let mut stream = loop {
        match TcpStream::connect_timeout(&server, 10 * GLANCE) {
            Ok(stream) => break stream,
            Err(e) if stopped() => return Err(e),
            // The sender may still be opening its port.
            Err(_) => std::thread::sleep(GLANCE / 10),
        }
    };
    stream.set_read_timeout(Some(GLANCE))?;
    let mut buffer = vec![0; CHUNK];
    while !stopped() {
        match stream.read(&mut buffer) {
            Ok(0) if stopped() => break,
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                received.fetch_add(n as u64, Ordering::Relaxed);
            }
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
