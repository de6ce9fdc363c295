//! Traffic of the kernel's own sockets between namespaces.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Namespace, PATIENCE};

/// Binds a socket to an address that an earlier one may have had: a program that another test starts holds the sockets
/// of this process until it runs.
fn bind(address: SocketAddr) -> UdpSocket {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match UdpSocket::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            bound => return bound.unwrap(),
        }
    }
}

/// Echoes datagrams until it has received `count`.
pub fn echo(namespace: &Namespace, address: SocketAddr, count: usize) -> JoinHandle<()> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = namespace.thread(move || {
        let socket = bind(address);
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
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
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

/// Sends `count` datagrams, one after the other, to an echo server. Returns the number of answers that came
/// within a second each; datagrams that a slow machine loses or delays longer are missing.
pub fn echoed(
    [left, right]: [&Namespace; 2],
    from: SocketAddr,
    to: SocketAddr,
    count: u8,
) -> usize {
    let server = right.run(|| UdpSocket::bind(to).unwrap());
    let answering = std::thread::spawn(move || {
        let mut buffer = [0; 2000];
        loop {
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            if length == 0 {
                return;
            }
            server.send_to(&buffer[..length], from).unwrap();
        }
    });
    let socket = left.run(|| UdpSocket::bind(from).unwrap());
    socket.connect(to).unwrap();
    let patience = Some(Duration::from_secs(1));
    socket.set_read_timeout(patience).unwrap();
    let mut buffer = [0; 2000];
    let mut answered = |number: u8| {
        socket.send(&[number; 160]).unwrap();
        // A late answer belongs to an earlier datagram.
        while let Ok(length) = socket.recv(&mut buffer) {
            assert_eq!(length, 160);
            if buffer[0] == number {
                return true;
            }
        }
        false
    };
    let answers = (0..count).filter(|number| answered(*number)).count();
    right.run(|| {
        let own = UdpSocket::bind(SocketAddr::new(to.ip(), 0)).unwrap();
        own.send_to(&[], to).unwrap();
    });
    answering.join().unwrap();
    answers
}

/// Transfers `bytes` over TCP. Returns the duration.
pub fn transfer(from: &Namespace, to: &Namespace, server: SocketAddr, bytes: usize) -> Duration {
    carry(from, to, server, move |sent| bytes - sent)
}

/// An open connection that carries bytes until it is ended.
pub struct Transfer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Transfer {
    pub fn begin(from: &Namespace, to: &Namespace, server: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (from, to, stopped) = (from.clone(), to.clone(), Arc::clone(&stop));
        let more = move |_| {
            if stopped.load(Ordering::Relaxed) {
                0
            } else {
                CHUNK
            }
        };
        let thread = std::thread::spawn(move || carry(&from, &to, server, more));
        Self { stop, thread }
    }

    /// Ends it, and waits until everything has arrived.
    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

const CHUNK: usize = 1 << 16;

/// Transfers bytes until `more`, given the number sent, returns 0; all must arrive.
fn carry(
    from: &Namespace,
    to: &Namespace,
    server: SocketAddr,
    more: impl Fn(usize) -> usize + Send,
) -> Duration {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let receiver = to.thread(move || {
        let listener = TcpListener::bind(server).unwrap();
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; CHUNK];
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
    let (time, sent) = from.run(move || {
        let start = Instant::now();
        let mut stream = TcpStream::connect(server).unwrap();
        let chunk: Vec<u8> = (0..CHUNK).map(|i| (i * 7 + i / 251) as u8).collect();
        let (mut total, mut sum) = (0, 0u64);
        while let n @ 1.. = more(total).min(CHUNK) {
            stream.write_all(&chunk[..n]).unwrap();
            sum += chunk[..n].iter().map(|b| u64::from(*b)).sum::<u64>();
            total += n;
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1);
        (start.elapsed(), (total, sum))
    });
    assert_eq!(receiver.join().unwrap(), sent);
    time
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
