//! The plainest tunnel (`plain-tun-packets`): one thread carries packets between a TUN device and a UDP socket, one
//! per system call, without encryption. Its cost is that of the kernel's interfaces.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use rustix::event::{PollFd, PollFlags, poll};
use tun_rs::DeviceBuilder;

use airlane_testkit::live::LiveError;
use airlane_testkit::program::Program;

use super::site::{NAMES, ToolSite};

/// An Ethernet frame minus the headers of IPv4 and UDP.
pub(super) const MTU: u16 = 1500 - 28;
const PORT: u16 = 7008;
const INTERFACE: &str = "plain0";
/// Packets of one direction before the other gets its turn.
const TURN: usize = 64;

/// Starts a forwarder at both ends: this one, or the one with offloads.
pub(super) fn start(
    site: &ToolSite<'_>,
    offload: bool,
) -> Result<(Vec<Program>, String), LiveError> {
    let mut programs = Vec::new();
    for (end, name) in NAMES.into_iter().enumerate() {
        let mut command = site.hosts[end].command(&site.programs.own);
        command.args(["plain-tun", INTERFACE]);
        command.arg(format!("192.0.2.{}:{PORT}", end + 1));
        command.arg(format!("192.0.2.{}:{PORT}", 2 - end));
        if offload {
            command.arg("--offload");
        }
        let mut program = Program::start(command, site.directory, name)?;
        program.wait_until(|| site.has(end, INTERFACE))?;
        site.address(end, INTERFACE)?;
        programs.push(program);
    }
    Ok((programs, INTERFACE.to_owned()))
}

/// Forwards until the process ends.
///
/// # Errors
/// If the device or the socket cannot be opened, or fails permanently.
pub fn forward(interface: &str, listen: SocketAddr, peer: SocketAddr) -> io::Result<()> {
    let device = DeviceBuilder::new().name(interface).mtu(MTU).build_sync()?;
    device.set_nonblocking(true)?;
    let socket = UdpSocket::bind(listen)?;
    socket.connect(peer)?;
    socket.set_nonblocking(true)?;
    let mut buffer = [0; 2048];
    loop {
        let mut ready = [
            PollFd::new(&device, PollFlags::IN),
            PollFd::new(&socket, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        for _ in 0..TURN {
            if !step(&mut buffer, |b| device.recv(b), |b| socket.send(b))? {
                break;
            }
        }
        for _ in 0..TURN {
            if !step(&mut buffer, |b| socket.recv(b), |b| device.send(b))? {
                break;
            }
        }
    }
}

/// Whether the next packet may succeed: nothing to read, no buffer space, the other end not up yet, not an IP packet
/// (EINVAL), or the device still down (EIO).
pub(super) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused)
        || matches!(error.raw_os_error(), Some(5 | 22))
}

/// Carries one packet. Returns false if there was none.
fn step(
    buffer: &mut [u8],
    from: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    to: impl FnOnce(&[u8]) -> io::Result<usize>,
) -> io::Result<bool> {
    use io::ErrorKind::{Interrupted, WouldBlock};
    let length = match from(buffer) {
        Ok(length) => length,
        Err(e) if matches!(e.kind(), WouldBlock | Interrupted) => return Ok(false),
        Err(e) if is_passing(&e) => return Ok(true),
        Err(e) => return Err(e),
    };
    match to(&buffer[..length]) {
        // Lack of buffer space is a loss like any other.
        Err(e) if !is_passing(&e) => Err(e),
        _ => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_forwards_a_whole_packet_and_accepts_none() {
        let mut buffer = [0; 8];
        let mut seen = Vec::new();
        let read = |b: &mut [u8]| {
            b[..3].copy_from_slice(b"abc");
            Ok(3)
        };
        let carried = step(&mut buffer, read, |b| {
            seen.extend_from_slice(b);
            Ok(b.len())
        });
        assert!(carried.unwrap());
        assert_eq!(seen, b"abc");
        let none = |_: &mut [u8]| Err(io::ErrorKind::WouldBlock.into());
        assert!(!step(&mut buffer, none, |_| panic!("nothing to send")).unwrap());
        let full = |_: &[u8]| Err(io::ErrorKind::WouldBlock.into());
        assert!(step(&mut buffer, |_| Ok(1), full).unwrap());
    }

    #[test]
    fn a_vanished_device_ends_the_loop() {
        let gone = |_: &mut [u8]| Err(io::ErrorKind::NotFound.into());
        assert!(step(&mut [0; 8], gone, |b| Ok(b.len())).is_err());
    }
}
