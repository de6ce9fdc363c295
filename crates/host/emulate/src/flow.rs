//! Applications over kernel TCP and UDP between the two hosts of a link. Both ends of all flows are threads of this
//! process, in the namespaces of their hosts, and have one clock.
//!
//! | application | transport | what is measured |
//! |---|---|---|
//! | file | one connection, which the sender opens | bytes that arrived, and the time until they were acknowledged |
//! | pages | a connection each, one page at a time | time from connecting to the last byte |
//! | datagrams | UDP at given times | delay of each that arrived |
//!
//! Every socket operation has a timeout, and every loop ends with the load.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use airlane_probe::is_timeout;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::LiveError;
use crate::netns::Namespace;

/// How long a blocking call may take before a loop checks whether the load is over.
const GLANCE: Duration = Duration::from_millis(50);
/// After the load, how long nothing must arrive for the missing datagrams to count as lost.
const SILENCE: Duration = Duration::from_secs(3);
/// Time for all threads to start.
const LEAD: Duration = Duration::from_millis(50);
/// The number of a datagram, bytes.
pub const LEAST_DATAGRAM: usize = 4;

/// TCP's settings.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Congestion control of both ends, by its name in the kernel.
    pub congestion: String,
    /// The longest segment that the ends agree on, options included; none: what the path allows.
    pub segment: Option<u32>,
}

/// What a flow carries. Its first end sends the file, the pages or the datagrams.
#[derive(Clone, Debug)]
pub enum App {
    /// A file of this many bytes, or one that never ends.
    File {
        /// Its transport.
        tcp: Tcp,
        /// Bytes.
        size: Option<u64>,
        /// One-way delay of its acknowledgments.
        back: Duration,
    },
    /// Requests of the second end and replies of the first.
    Pages {
        /// Their transport.
        tcp: Tcp,
        /// Bytes.
        request: usize,
        /// Bytes.
        reply: usize,
        /// From a reply to the next request.
        pause: Duration,
        /// How many; none: without end.
        count: Option<u64>,
    },
    /// Datagrams.
    Datagrams {
        /// Bytes of each, at least [`LEAST_DATAGRAM`].
        length: usize,
        /// When each leaves, from the start of the flow on, in order.
        departures: Vec<Duration>,
    },
}

/// An application between the hosts.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name in errors.
    pub name: String,
    /// Which host is its first end.
    pub from: usize,
    /// When it starts.
    pub start: Duration,
    /// The type of service of its packets: the DSCP, shifted.
    pub tos: u32,
    /// Port of its first end; 0: any.
    pub port: u16,
    /// Its application.
    pub app: App,
}

/// What came of a flow.
#[derive(Clone, Debug)]
pub enum Carried {
    /// A file.
    File {
        /// Bytes that the receiving application got.
        bytes: u64,
        /// From opening the connection to the acknowledgment of the last of them; zero if there are none.
        took: Duration,
    },
    /// The time of each complete page.
    Pages(Vec<Duration>),
    /// Datagrams.
    Datagrams {
        /// How many were sent.
        sent: u64,
        /// Delay of each that arrived.
        delays: Vec<Duration>,
    },
}

/// The flows that run together.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The hosts.
    pub hosts: [&'a Namespace; 2],
    /// Their addresses on the path under test.
    pub addresses: [Ipv4Addr; 2],
    /// The flows.
    pub flows: &'a [Flow],
    /// When they stop at the latest.
    pub lasts: Duration,
    /// The flow whose end stops all.
    pub until: Option<usize>,
}

/// When the load began, and when it is over.
struct Span {
    begin: Instant,
    /// Nanoseconds after the beginning.
    end: AtomicU64,
}

impl Span {
    fn stop(&self) {
        let now = self.begin.elapsed().as_nanos() as u64;
        self.end.fetch_min(now, Ordering::Relaxed);
    }

    fn end(&self) -> Duration {
        Duration::from_nanos(self.end.load(Ordering::Relaxed))
    }

    fn left(&self) -> Duration {
        self.end().saturating_sub(self.begin.elapsed())
    }

    fn over_for(&self) -> Duration {
        self.begin.elapsed().saturating_sub(self.end())
    }

    fn is_over(&self) -> bool {
        self.left().is_zero()
    }

    /// Whether all was done. An error after the load means that the other end has seen its end first.
    fn done(&self, result: io::Result<bool>) -> io::Result<bool> {
        match result {
            Err(_) if self.is_over() => Ok(false),
            result => result,
        }
    }

    /// Sleeps until a time after the beginning; returns false if the load is over before.
    fn sleep_until(&self, at: Duration) -> bool {
        let wait = at.saturating_sub(self.begin.elapsed());
        let due = Instant::now() + wait;
        while !self.is_over() {
            let wait = due.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return true;
            }
            std::thread::sleep(wait.min(GLANCE));
        }
        false
    }
}

/// The socket at which one end of a flow waits.
enum Waiting {
    Listener(TcpListener),
    Datagrams(UdpSocket),
}

impl Load<'_> {
    /// Runs the flows and returns what came of each, in their order.
    ///
    /// # Errors
    /// With the name of a flow that gets no socket or whose connection breaks.
    pub fn carry(&self) -> Result<Vec<Carried>, LiveError> {
        let waiting: Vec<Waiting> = self
            .flows
            .iter()
            .map(|flow| self.wait(flow))
            .collect::<Result<_, _>>()?;
        let span = Span {
            begin: Instant::now() + LEAD,
            end: AtomicU64::new(self.lasts.as_nanos() as u64),
        };
        std::thread::scope(|scope| {
            let running: Vec<_> = (self.flows.iter().zip(&waiting).enumerate())
                .map(|(i, (flow, waiting))| {
                    let is_last = self.until == Some(i);
                    let span = &span;
                    scope.spawn(move || {
                        let carried = self.run(flow, waiting, span, is_last);
                        if carried.is_err() {
                            span.stop();
                        }
                        carried
                    })
                })
                .collect();
            let joined = running.into_iter().map(|thread| {
                let joined = thread.join();
                joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        })
    }

    /// Opens the socket at which a flow is waited for.
    fn wait(&self, flow: &Flow) -> Result<Waiting, LiveError> {
        let (end, port) = match flow.app {
            App::File { .. } | App::Datagrams { .. } => (1 - flow.from, 0),
            App::Pages { .. } => (flow.from, flow.port),
        };
        let at = SocketAddr::from((self.addresses[end], port));
        let open = || match &flow.app {
            App::File { tcp, .. } | App::Pages { tcp, .. } => {
                let socket = tcp.socket(flow.tos)?;
                socket.bind(&at.into())?;
                socket.listen(8)?;
                // An accept without a connection times out.
                socket.set_read_timeout(Some(GLANCE))?;
                Ok(Waiting::Listener(socket.into()))
            }
            App::Datagrams { .. } => {
                let socket = UdpSocket::bind(at)?;
                socket.set_read_timeout(Some(GLANCE))?;
                Ok(Waiting::Datagrams(socket))
            }
        };
        self.hosts[end]
            .run(open)?
            .map_err(|error| failed(flow, error))
    }

    fn run(
        &self,
        flow: &Flow,
        waiting: &Waiting,
        span: &Span,
        is_last: bool,
    ) -> Result<Carried, LiveError> {
        let finished = || {
            if is_last {
                span.stop();
            }
        };
        let first = SocketAddr::from((self.addresses[flow.from], flow.port));
        let both = |first: &(dyn Fn() -> io::Result<End> + Sync),
                    second: &(dyn Fn() -> io::Result<End> + Sync)| {
            let (first, second) = std::thread::scope(|scope| {
                let first = scope.spawn(|| self.hosts[flow.from].run(first));
                let second = self.hosts[1 - flow.from].run(second);
                let first = first.join();
                (
                    first.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                    second,
                )
            });
            let named = |error| failed(flow, error);
            Ok::<_, LiveError>((first?.map_err(named)?, second?.map_err(named)?))
        };
        let ends = match (&flow.app, waiting) {
            (App::File { tcp, size, .. }, Waiting::Listener(listener)) => {
                let to = listener.local_addr().map_err(|error| failed(flow, error))?;
                let complete = AtomicBool::new(false);
                both(
                    &|| send_file(flow, tcp, [first, to], *size, span, &complete),
                    &|| {
                        let got = receive_file(listener, *size, span)?;
                        complete.store(true, Ordering::Relaxed);
                        finished();
                        Ok(got)
                    },
                )?
            }
            (
                App::Pages {
                    tcp,
                    request,
                    reply,
                    pause,
                    count,
                },
                Waiting::Listener(listener),
            ) => both(&|| serve_pages(listener, [*request, *reply], span), &|| {
                let page = Page {
                    tcp,
                    tos: flow.tos,
                    server: first,
                    lengths: [*request, *reply],
                };
                let mut times = Vec::new();
                let mut at = flow.start;
                while count.is_none_or(|count| (times.len() as u64) < count) && span.sleep_until(at)
                {
                    let Some(time) = page.fetch(span)? else {
                        return Ok(End::Pages(times));
                    };
                    times.push(time);
                    at = span.begin.elapsed() + *pause;
                }
                finished();
                Ok(End::Pages(times))
            })?,
            (App::Datagrams { length, departures }, Waiting::Datagrams(socket)) => {
                let to = socket.local_addr().map_err(|error| failed(flow, error))?;
                let sent = AtomicU64::new(u64::MAX);
                both(
                    &|| {
                        let times = send_datagrams(flow, [first, to], *length, departures, span)?;
                        sent.store(times.len() as u64, Ordering::Relaxed);
                        Ok(End::Sent(times))
                    },
                    &|| receive_datagrams(socket, *length, &sent, departures.len(), span),
                )?
            }
            _ => unreachable!("each application waits at its own kind of socket"),
        };
        Ok(measured(flow, ends))
    }
}

/// What one end of a flow knows in the end.
enum End {
    /// When it began.
    Began(Instant),
    /// Bytes, and when the last came.
    Got(u64, Instant),
    /// Nothing of its own.
    Served,
    Pages(Vec<Duration>),
    /// When each datagram left.
    Sent(Vec<Instant>),
    /// When each datagram first arrived.
    Arrived(Vec<Option<Instant>>),
}

fn measured(flow: &Flow, ends: (End, End)) -> Carried {
    match (ends, &flow.app) {
        ((End::Began(begun), End::Got(bytes, last)), App::File { back, .. }) => Carried::File {
            bytes,
            took: match bytes {
                0 => Duration::ZERO,
                _ => last.saturating_duration_since(begun) + *back,
            },
        },
        ((End::Served, End::Pages(times)), _) => Carried::Pages(times),
        ((End::Sent(sent), End::Arrived(arrived)), _) => Carried::Datagrams {
            sent: sent.len() as u64,
            delays: (sent.iter().zip(arrived))
                .filter_map(|(sent, arrived)| Some(arrived?.saturating_duration_since(*sent)))
                .collect(),
        },
        _ => unreachable!("the ends of a flow belong to its application"),
    }
}

fn failed(flow: &Flow, error: io::Error) -> LiveError {
    LiveError::Traffic(io::Error::new(
        error.kind(),
        format!("the flow \"{}\": {error}", flow.name),
    ))
}

impl Tcp {
    fn socket(&self, tos: u32) -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_tcp_congestion(self.congestion.as_bytes())?;
        socket.set_tos_v4(tos)?;
        if let Some(segment) = self.segment {
            socket.set_tcp_mss(segment)?;
        }
        Ok(socket)
    }

    /// A connection; none if the load is over before.
    fn connect(
        &self,
        tos: u32,
        from: Option<SocketAddr>,
        to: SocketAddr,
        span: &Span,
    ) -> io::Result<Option<TcpStream>> {
        let socket = self.socket(tos)?;
        if let Some(from) = from {
            socket.bind(&from.into())?;
        }
        match socket.connect_timeout(&to.into(), span.left().max(GLANCE)) {
            // The kernel's wait may end slightly before the load does.
            Err(error) if span.is_over() || is_timeout(&error) && span.left() < GLANCE => {
                return Ok(None);
            }
            connected => connected?,
        }
        let stream = TcpStream::from(socket);
        bound(&stream)?;
        Ok(Some(stream))
    }
}

/// Sets timeouts, so that nothing blocks for long.
fn bound(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(GLANCE))?;
    stream.set_write_timeout(Some(GLANCE))
}

/// Lets a connection end without farewell: none of its packets are left for what comes next.
fn end(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// The next connection; none if the load is over before.
fn accept(listener: &TcpListener, span: &Span) -> io::Result<Option<TcpStream>> {
    while !span.is_over() {
        match listener.accept() {
            Ok((stream, _)) => {
                bound(&stream)?;
                return Ok(Some(stream));
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Writes all bytes; returns false if the load is over before.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8], span: &Span) -> io::Result<bool> {
    while !bytes.is_empty() {
        if span.is_over() {
            return Ok(false);
        }
        match stream.write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Reads this many bytes and tells `count`; returns false if the load is over before.
fn read_all(
    stream: &mut TcpStream,
    mut left: u64,
    span: &Span,
    mut count: impl FnMut(u64),
) -> io::Result<bool> {
    let mut buffer = vec![0; 64 * 1024];
    while left > 0 {
        let most = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        match stream.read(&mut buffer[..most]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            // What comes after the stop does not count.
            Ok(_) if span.is_over() => return Ok(false),
            Ok(n) => {
                left -= n as u64;
                count(n as u64);
            }
            Err(error) if is_timeout(&error) && span.is_over() => return Ok(false),
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn send_file(
    flow: &Flow,
    tcp: &Tcp,
    [from, to]: [SocketAddr; 2],
    size: Option<u64>,
    span: &Span,
    complete: &AtomicBool,
) -> io::Result<End> {
    span.sleep_until(flow.start);
    let begun = Instant::now();
    let Some(mut stream) = tcp.connect(flow.tos, Some(from), to, span)? else {
        return Ok(End::Began(begun));
    };
    let chunk = [b'f'; 64 * 1024];
    let mut left = size.unwrap_or(u64::MAX);
    while left > 0 {
        let most = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if !span.done(write_all(&mut stream, &chunk[..most], span))? {
            break;
        }
        left -= most as u64;
    }
    if left == 0 {
        span.done(stream.shutdown(Shutdown::Write).map(|()| true))?;
    }
    while !complete.load(Ordering::Relaxed) && !span.is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
    end(&stream)?;
    Ok(End::Began(begun))
}

fn receive_file(listener: &TcpListener, size: Option<u64>, span: &Span) -> io::Result<End> {
    let (mut bytes, mut last) = (0, Instant::now());
    if let Some(mut stream) = accept(listener, span)? {
        let count = |n| {
            bytes += n;
            last = Instant::now();
        };
        span.done(read_all(&mut stream, size.unwrap_or(u64::MAX), span, count))?;
        end(&stream)?;
    }
    Ok(End::Got(bytes, last))
}

fn serve_pages(
    listener: &TcpListener,
    [request, reply]: [usize; 2],
    span: &Span,
) -> io::Result<End> {
    let reply = vec![b'p'; reply];
    while let Some(mut stream) = accept(listener, span)? {
        span.done(
            read_all(&mut stream, request as u64, span, |_| ())
                .and_then(|whole| Ok(whole && write_all(&mut stream, &reply, span)?)),
        )?;
    }
    Ok(End::Served)
}

struct Page<'a> {
    tcp: &'a Tcp,
    tos: u32,
    server: SocketAddr,
    lengths: [usize; 2],
}

impl Page<'_> {
    /// The time that it took; none if the load is over before.
    fn fetch(&self, span: &Span) -> io::Result<Option<Duration>> {
        let begun = Instant::now();
        let Some(mut stream) = self.tcp.connect(self.tos, None, self.server, span)? else {
            return Ok(None);
        };
        let [request, reply] = self.lengths;
        let whole = span.done(
            write_all(&mut stream, &vec![b'r'; request], span)
                .and_then(|sent| Ok(sent && read_all(&mut stream, reply as u64, span, |_| ())?)),
        )?;
        let took = begun.elapsed();
        end(&stream)?;
        Ok(whole.then_some(took))
    }
}

fn send_datagrams(
    flow: &Flow,
    [from, to]: [SocketAddr; 2],
    length: usize,
    departures: &[Duration],
    span: &Span,
) -> io::Result<Vec<Instant>> {
    let socket = UdpSocket::bind(from)?;
    SockRef::from(&socket).set_tos_v4(flow.tos)?;
    let mut datagram = vec![0; length];
    let mut times = Vec::with_capacity(departures.len());
    for departure in departures {
        if !span.sleep_until(flow.start + *departure) {
            break;
        }
        datagram[..LEAST_DATAGRAM].copy_from_slice(&(times.len() as u32).to_be_bytes());
        times.push(Instant::now());
        // What the host cannot send is lost, as anywhere else on the way.
        let _lost = socket.send_to(&datagram, to);
    }
    Ok(times)
}

fn receive_datagrams(
    socket: &UdpSocket,
    length: usize,
    sent: &AtomicU64,
    most: usize,
    span: &Span,
) -> io::Result<End> {
    let mut arrived = vec![None; most];
    let (mut count, mut last) = (0, span.begin);
    let mut buffer = vec![0; length + 1];
    loop {
        match socket.recv(&mut buffer) {
            Ok(n) if n == length => {
                last = Instant::now();
                let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
                if let Some(first @ None) = arrived.get_mut(number as usize) {
                    *first = Some(last);
                    count += 1;
                }
            }
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
        let silent = span.over_for().min(last.elapsed());
        if count >= sent.load(Ordering::Relaxed) || silent > SILENCE {
            return Ok(End::Arrived(arrived));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_the_end_of_the_load_cuts_is_no_error() {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        listener.bind(&nowhere.into()).unwrap();
        listener.listen(0).unwrap();
        let to = listener.local_addr().unwrap().as_socket().unwrap();
        // A full queue drops each SYN.
        let queued = [(); 2].map(|()| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&to.into());
            socket
        });
        let tcp = Tcp {
            congestion: "reno".to_owned(),
            segment: None,
        };
        for us in (0..20).map(|i| 60_000 + 137 * i) {
            let span = Span {
                begin: Instant::now(),
                end: AtomicU64::new(us * 1_000),
            };
            let connected = tcp.connect(0, None, to, &span);
            assert!(matches!(connected, Ok(None)), "{us} us: {connected:?}");
        }
        drop(queued);
    }
}
