//! Answers scrapes over HTTP, on the loopback only.
//!
//! ```text
//! scraper ──TCP──► this thread ──control socket──► node's thread
//! ```
//!
//! The node's thread never handles HTTP: this thread asks it for a status as `airlane status` does, at most
//! once every `FRESH` for all scrapers. Connections are few and short: one request each, and `CLIENTS` at
//! once, of which a further one replaces the oldest. A client that has not sent a request of at most
//! `REQUEST` bytes and read the answer within `PATIENCE` is disconnected.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::control;
use crate::device::{DeviceError, LISTEN};
use crate::privileges;

/// Limit of connections.
const CLIENTS: usize = 8;
/// Longest request, bytes.
#[doc(hidden)]
pub const REQUEST: usize = 4096;
/// Limit of headers in a request; scrapers send about ten.
const HEADERS: usize = 32;
/// Limit on the duration of a connection.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for which an answer is reused.
const FRESH: Duration = Duration::from_millis(100);

/// A thread that answers scrapes until it is dropped.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Listens at `address` and serves the status of the node at `socket`.
    ///
    /// # Errors
    /// If the address is taken, or the thread cannot be started.
    pub fn start(address: SocketAddr, socket: PathBuf) -> Result<Self, DeviceError> {
        let device = format!("metrics at {address}");
        let failed = |call| {
            let device = device.clone();
            move |source: io::Error| DeviceError::new(&device, call, source)
        };
        let listener = TcpListener::bind(address).map_err(failed(LISTEN))?;
        let address = listener.local_addr().map_err(failed(LISTEN))?;
        listener
            .set_nonblocking(true)
            .map_err(failed("set nonblocking"))?;
        let (stop, stopped) = UnixStream::pair().map_err(failed("make a pair of sockets"))?;
        let mut server = Server {
            listener,
            clients: Vec::new(),
            source: Source { socket, kept: None },
        };
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                privileges::give_up_all();
                server.run(&stopped);
            })
            .map_err(failed("start a thread"))?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The address where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _it_does_not_panic = thread.join();
        }
    }
}

struct Server {
    listener: TcpListener,
    /// The oldest first.
    clients: Vec<Client>,
    source: Source,
}

struct Client {
    stream: TcpStream,
    until: Instant,
    request: Vec<u8>,
    /// Unsent rest of the answer, once there is one.
    answer: Option<(Vec<u8>, usize)>,
}

impl Server {
    /// Serves until the other end of `stopped` is closed.
    fn run(&mut self, stopped: &UnixStream) {
        loop {
            let mut fds = vec![
                PollFd::new(stopped, PollFlags::IN),
                PollFd::new(&self.listener, PollFlags::IN),
            ];
            fds.extend(self.clients.iter().map(|client| {
                let flags = match client.answer {
                    None => PollFlags::IN,
                    Some(_) => PollFlags::OUT,
                };
                PollFd::from_borrowed_fd(client.stream.as_fd(), flags)
            }));
            let now = Instant::now();
            let wait = self.clients.iter().map(|c| c.until.duration_since(now));
            let wait = wait.min().map(|wait| Timespec {
                tv_sec: wait.as_secs() as i64,
                tv_nsec: i64::from(wait.subsec_nanos()),
            });
            match rustix::event::poll(&mut fds, wait.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                // Out of memory: pause instead of spinning.
                Err(_) => std::thread::sleep(PATIENCE),
            }
            let ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return;
            }
            let now = Instant::now();
            let source = &mut self.source;
            let mut ready_clients = ready[2..].iter();
            self.clients.retain_mut(|client| {
                let ready = ready_clients.next() == Some(&true);
                (!ready || client.serve(now, source)) && now < client.until
            });
            if ready[1] {
                self.accept(now);
            }
        }
    }

    fn accept(&mut self, now: Instant) {
        // One per turn; others wait in the kernel's queue, which is bounded.
        let Ok((stream, _)) = self.listener.accept() else {
            return;
        };
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.clients.len() == CLIENTS {
            self.clients.remove(0);
        }
        self.clients.push(Client {
            stream,
            until: now + PATIENCE,
            request: Vec::new(),
            answer: None,
        });
    }
}

impl Client {
    /// Reads or writes what is possible now. Returns `false` if the client is finished.
    fn serve(&mut self, now: Instant, source: &mut Source) -> bool {
        if self.answer.is_none() {
            match self.hear() {
                Ok(true) => {}
                Ok(false) => return true,
                Err(_gone) => return false,
            }
            match answer(&self.request, now, source) {
                Some(answer) => self.answer = Some((answer, 0)),
                None => return true,
            }
        }
        self.say()
    }

    /// Reads from the client. Returns whether anything arrived.
    fn hear(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                self.request.extend_from_slice(&chunk[..length]);
                Ok(true)
            }
            Err(error) if is_for_later(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn say(&mut self) -> bool {
        let Some((answer, done)) = &mut self.answer else {
            return true;
        };
        while *done < answer.len() {
            match self.stream.write(&answer[*done..]) {
                Ok(0) => return false,
                Ok(length) => *done += length,
                Err(error) if is_for_later(&error) => return true,
                Err(_) => return false,
            }
        }
        // The kernel would discard the answer if the socket were closed with unread bytes.
        let _best_effort = self.stream.shutdown(std::net::Shutdown::Write);
        let _best_effort = self.stream.read(&mut [0; REQUEST]);
        false
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// The complete answer to a request, with `text` as the metrics; `None` if the request is incomplete. For fuzzing.
#[doc(hidden)]
pub fn answer_with(text: &str, request: &[u8]) -> Option<Vec<u8>> {
    let now = Instant::now();
    let mut source = Source {
        socket: PathBuf::new(),
        kept: Some((now, text.to_owned())),
    };
    answer(request, now, &mut source)
}

/// The complete answer to a request; `None` if the request is incomplete.
fn answer(request: &[u8], now: Instant, source: &mut Source) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() <= REQUEST => return None,
        Ok(httparse::Status::Partial) => return Some(refusal("431 Request Too Large")),
        Err(_) => return Some(refusal("400 Bad Request")),
    }
    // A web page could point its own host name at the loopback (DNS rebinding) and read the metrics.
    let mut hosts = parsed
        .headers
        .iter()
        .filter(|h| h.name.eq_ignore_ascii_case("host"));
    if !hosts.all(|host| is_loopback(host.value)) {
        return Some(refusal("421 Misdirected Request"));
    }
    let path = parsed.path.and_then(|path| path.split('?').next());
    Some(match (parsed.method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => match source.text(now) {
            Ok(text) => {
                let body = parsed.method == Some("GET");
                match wants_older(parsed.headers) {
                    true => response("200 OK", super::OLDER_TYPE, &super::older(text), body),
                    false => response("200 OK", super::CONTENT_TYPE, text, body),
                }
            }
            Err(error) => response(
                "503 Service Unavailable",
                PLAIN,
                &format!("{error}\n"),
                true,
            ),
        },
        (Some("GET" | "HEAD"), _) => refusal("404 Not Found"),
        _ => refusal("405 Method Not Allowed"),
    })
}

/// Whether the older text is preferred (RFC 9110, section 12.5.1). A client that names neither gets OpenMetrics.
fn wants_older(headers: &[httparse::Header<'_>]) -> bool {
    let accept = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("accept"))
        .filter_map(|header| std::str::from_utf8(header.value).ok());
    let weight = |wanted: &str| {
        let ranges = accept.clone().flat_map(|value| value.split(','));
        let weights = ranges.filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_it = parts.next()?.eq_ignore_ascii_case(wanted);
            let weight = parts.find_map(|part| part.strip_prefix("q="));
            is_it.then(|| weight.and_then(|q| q.parse().ok()).unwrap_or(1.0))
        });
        weights.fold(0.0, f64::max)
    };
    weight("text/plain") > weight("application/openmetrics-text")
}

/// Whether a host name, with or without a port, is that of the loopback.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host).map(str::trim) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => {
            name
        }
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let ip = bare.unwrap_or(name).parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn refusal(status: &str) -> Vec<u8> {
    let text = format!("{status}\nthe metrics are at GET /metrics\n");
    response(status, PLAIN, &text, true)
}

fn response(status: &str, content_type: &str, text: &str, body: bool) -> Vec<u8> {
    let allow = match status.starts_with("405") {
        true => "Allow: GET, HEAD\r\n",
        false => "",
    };
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         {allow}Connection: close\r\n\r\n",
        text.len()
    );
    if body {
        response.push_str(text);
    }
    response.into_bytes()
}

/// Source of the text.
struct Source {
    socket: PathBuf,
    kept: Option<(Instant, String)>,
}

impl Source {
    fn text(&mut self, now: Instant) -> Result<&str, control::ControlError> {
        let kept = self.kept.take().filter(|(at, _)| now < *at + FRESH);
        let kept = match kept {
            Some(kept) => kept,
            None => (now, super::exposition(&control::status(&self.socket)?)),
        };
        Ok(&self.kept.insert(kept).1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source() -> Source {
        let kept = Some((Instant::now(), "# EOF\n".to_owned()));
        Source {
            socket: "/nowhere".into(),
            kept,
        }
    }

    fn status_line(request: &str) -> Option<String> {
        let answer = answer(request.as_bytes(), Instant::now(), &mut source())?;
        let text = String::from_utf8(answer).unwrap();
        Some(text.lines().next().unwrap().to_owned())
    }

    #[test]
    fn requests_are_answered_once_they_are_whole() {
        let whole = "GET /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(status_line(&whole[..end]), None);
        }
        assert_eq!(status_line(whole).unwrap(), "HTTP/1.1 200 OK");
        let head = whole.replace("GET", "HEAD");
        let answer = answer(head.as_bytes(), Instant::now(), &mut source()).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(answer.contains("Content-Length: 6\r\n"), "{answer}");
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("\0\x01 nonsense\r\n\r\n", "400"),
            (&"x".repeat(REQUEST + 1), "431"),
        ] {
            let line = status_line(request).unwrap();
            assert!(line.contains(status), "{line}");
        }
    }

    #[test]
    fn the_older_text_is_for_clients_that_prefer_it() {
        let open = "application/openmetrics-text;version=1.0.0";
        let both = format!("{open};q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1");
        for (accept, older) in [
            ("*/*", false),
            (open, false),
            (&both, false),
            ("text/plain;version=0.0.4", true),
            ("TEXT/PLAIN", true),
            ("text/plain;q=0", false),
            ("text/plain;q=NaN", false),
            ("text/plain, application/openmetrics-text; q=0.5", true),
            ("text/html", false),
        ] {
            let request = format!("GET /metrics HTTP/1.1\r\nAccept: {accept}\r\n\r\n");
            let answer = answer(request.as_bytes(), Instant::now(), &mut source()).unwrap();
            let answer = String::from_utf8(answer).unwrap();
            let is_older = answer.contains("Content-Type: text/plain; version=0.0.4");
            assert_eq!(is_older, older, "{accept}: {answer}");
            assert_eq!(answer.ends_with("# EOF\n"), !older, "{answer}");
        }
    }

    #[test]
    fn only_names_of_the_loopback_are_answered() {
        for (host, status) in [
            ("localhost:9586", "200"),
            ("LOCALHOST", "200"),
            ("127.0.0.1:9586", "200"),
            ("127.3.2.1", "200"),
            ("[::1]:9586", "200"),
            ("[::1]", "200"),
            ("[::ffff:127.0.0.1]:1", "200"),
            ("evil.example:9586", "421"),
            ("localhost.evil.example", "421"),
            ("192.0.2.1:9586", "421"),
            ("[2001:db8::1]:9586", "421"),
            ("", "421"),
            ("localhost:9586\r\nHost: evil.example", "421"),
        ] {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let line = status_line(&request).unwrap();
            assert!(line.contains(status), "{host}: {line}");
        }
    }

    #[test]
    fn the_exporter_survives_a_silent_node() {
        let mut silent = Source {
            socket: "/nowhere/node.sock".into(),
            kept: None,
        };
        let request = b"GET /metrics HTTP/1.1\r\n\r\n";
        let answer = answer(request, Instant::now(), &mut silent).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("no node answers"), "{answer}");
    }

    /// A client can occupy neither the thread nor a connection for long.
    #[test]
    fn slow_and_many_clients_are_cut_off() {
        let exporter = Exporter::start("127.0.0.1:0".parse().unwrap(), "/nowhere".into()).unwrap();
        let mut idle: Vec<_> = (0..2 * CLIENTS)
            .map(|_| TcpStream::connect(exporter.address()).unwrap())
            .collect();
        let mut asking = TcpStream::connect(exporter.address()).unwrap();
        asking.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut text = String::new();
        asking.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 404"), "{text}");
        for client in &mut idle {
            let hanging = Duration::from_secs(60);
            client.set_read_timeout(Some(hanging)).unwrap();
            // The first connections were replaced, and the last ones timed out.
            match client.read(&mut [0; 8]) {
                Ok(bytes) => assert_eq!(bytes, 0),
                Err(error) => assert_ne!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        drop(exporter);
    }

    proptest! {
        /// A request with another host name is refused, wherever the header is.
        #[test]
        fn requests_with_foreign_host_names_are_refused(
            host in "[Hh][Oo][Ss][Tt]",
            name in prop_oneof!["[a-z]{1,9}\\.example(:[0-9]{1,5})?", Just("127.0.0.1.example".to_owned()), Just("192.0.2.1:9107".to_owned())],
            at in 0_usize..4,
        ) {
            let mut headers = vec!["Accept: */*".to_owned(), "Host: localhost".to_owned(), "X: y".to_owned()];
            headers.insert(at.min(3), format!("{host}: {name}"));
            let request = format!("GET /metrics HTTP/1.1\r\n{}\r\n\r\n", headers.join("\r\n"));
            prop_assert_eq!(status_line(&request).unwrap(), "HTTP/1.1 421 Misdirected Request");
        }
    }
}
