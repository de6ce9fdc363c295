//! The kernel's own traffic between namespaces.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::Namespace;

/// Echoes datagrams until it has seen `count`.
pub fn echo(
    namespace: &Namespace,
    address: SocketAddr,
    count: usize,
) -> std::thread::JoinHandle<()> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = namespace.thread(move || {
        let socket = UdpSocket::bind(address).unwrap();
        ready.send(()).unwrap();
        let mut buffer = [0; 2000];
        for _ in 0..count {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            socket.send_to(&buffer[..length], from).unwrap();
        }
    });
    is_ready.recv().unwrap();
    thread
}

/// Median round trip of `count` datagrams; none may be lost.
pub fn round_trip(
    namespace: &Namespace,
    from: SocketAddr,
    to: SocketAddr,
    count: usize,
) -> Duration {
    namespace.run(move || {
        let socket = UdpSocket::bind(from).unwrap();
        socket.connect(to).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        let mut times: Vec<_> = (0..count)
            .map(|i| {
                let start = Instant::now();
                socket.send(&[i as u8; 160]).unwrap();
                let mut buffer = [0; 2000];
                assert_eq!(socket.recv(&mut buffer).unwrap(), 160);
                assert_eq!(buffer[0], i as u8);
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[count / 2]
    })
}

/// Carries `bytes` over TCP and gives the time it took.
pub fn transfer(from: &Namespace, to: &Namespace, server: SocketAddr, bytes: usize) -> Duration {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let receiver = to.thread(move || {
        let listener = TcpListener::bind(server).unwrap();
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 16];
        let (mut total, mut sum) = (0, 0u64);
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                n => {
                    total += n;
                    sum += buffer[..n].iter().map(|b| u64::from(*b)).sum::<u64>();
                }
            }
        }
        stream.write_all(b"x").unwrap();
        (total, sum)
    });
    is_ready.recv().unwrap();
    let (time, sent_sum) = from.run(move || {
        let start = Instant::now();
        let mut stream = TcpStream::connect(server).unwrap();
        let chunk: Vec<u8> = (0..1 << 16).map(|i: u32| (i * 7 + i / 251) as u8).collect();
        let (mut left, mut sum) = (bytes, 0u64);
        while left > 0 {
            let n = left.min(chunk.len());
            stream.write_all(&chunk[..n]).unwrap();
            sum += chunk[..n].iter().map(|b| u64::from(*b)).sum::<u64>();
            left -= n;
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1);
        (start.elapsed(), sum)
    });
    assert_eq!(receiver.join().unwrap(), (bytes, sent_sum));
    time
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
