//! The protocol between client and server: lines of JSON.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::Clocks;
use crate::plan::Times;
use crate::token::TestToken;
use crate::voice::Arrivals;
use crate::{GLANCE, is_timeout};

/// Protocol version; both ends must have the same.
pub(crate) const VERSION: u32 = 3;

/// The longest line, bytes.
const LONGEST: usize = 4096;

/// From the client: the test to run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TestOrder {
    pub(crate) version: u32,
    pub(crate) times: Times,
    /// Congestion control of the server's TCP connections; none: the kernel's default.
    pub(crate) congestion_control: Option<String>,
    pub(crate) voice: bool,
    /// Whether voice is marked EF.
    #[serde(default)]
    pub(crate) marked: bool,
}

/// From the server: the accepted test, or the reason for refusing it.
pub(crate) type Reply = Result<Accepted, String>;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) token: TestToken,
    /// What the server's sockets actually use.
    pub(crate) congestion_control: String,
    pub(crate) echo_port: u16,
    pub(crate) file_port: u16,
    pub(crate) pages_port: u16,
    pub(crate) voice_port: u16,
    pub(crate) download_port: u16,
}

/// From the client: the load begins.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Go;

/// From the server: it has begun.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoadStarted;

/// From the client: the load has ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Finish {
    pub(crate) clocks: Clocks,
}

/// From the server: its part of the measurements.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServerResult {
    /// Voice packets sent to the client in the measuring period.
    pub(crate) voice_sent: u64,
    /// Voice packets received from the client.
    pub(crate) voice_arrivals: Arrivals,
    /// The server has reached its limit of bytes, and stopped sending.
    pub(crate) bytes_used_up: bool,
}

/// A control connection with lines of JSON.
pub(crate) struct ControlConnection {
    reader: BufReader<TcpStream>,
    line: Line,
}

/// A line that is received in pieces.
#[derive(Default)]
pub(crate) struct Line {
    begun: Vec<u8>,
}

impl Line {
    /// Takes the bytes that belong to the line: returns how many, and whether the line is complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(bytes.len(), |end| end + 1);
        let room = LONGEST - self.begun.len();
        self.begun.extend_from_slice(&bytes[..used.min(room)]);
        (used, end.is_some())
    }

    /// Whether it exceeds the limit.
    pub(crate) const fn is_too_long(&self) -> bool {
        self.begun.len() == LONGEST
    }

    /// Parses the line, and starts the next one.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> serde_json::Result<T> {
        let read = serde_json::from_slice(&self.begun);
        self.begun.clear();
        read
    }
}

impl ControlConnection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // A line fits into the socket's buffer: it blocks only if the peer does not read.
        stream.set_write_timeout(Some(10 * GLANCE))?;
        stream.set_read_timeout(Some(GLANCE))?;
        Ok(Self {
            reader: BufReader::new(stream),
            line: Line::default(),
        })
    }

    pub(crate) fn say(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        self.reader.get_mut().write_all(line.as_bytes())
    }

    /// Waits for the next line, until the deadline or until the test is over.
    pub(crate) fn hear<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        is_over: impl Fn() -> bool,
    ) -> io::Result<T> {
        let deadline = Instant::now() + patience;
        loop {
            let (used, has_ended) = match self.reader.fill_buf() {
                Ok([]) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.line.take(bytes),
                Err(error) if is_timeout(&error) => (0, false),
                Err(error) => return Err(error),
            };
            self.reader.consume(used);
            if self.line.is_too_long() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if has_ended {
                return Ok(self.line.read()?);
            }
            // Even if bytes keep trickling in.
            if is_over() || Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use proptest::prelude::*;

    use super::*;

    fn pair() -> (TcpStream, ControlConnection) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        (near, ControlConnection::new(far).unwrap())
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_one_line() {
        let (mut near, mut far) = pair();
        let writer = std::thread::spawn(move || {
            near.write_all(b"[1,").unwrap();
            std::thread::sleep(2 * GLANCE);
            near.write_all(b"2]\n3\n").unwrap();
            near
        });
        let patience = Duration::from_secs(20);
        assert_eq!(far.hear::<[u8; 2]>(patience, || false).unwrap(), [1, 2]);
        assert_eq!(far.hear::<u8>(patience, || false).unwrap(), 3);
        drop(writer.join().unwrap());
        let ended = far.hear::<u8>(patience, || false).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn silence_and_endless_lines_time_out() {
        let (mut near, mut far) = pair();
        let silent = far.hear::<u8>(GLANCE, || false).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        let stopped = far
            .hear::<u8>(Duration::from_secs(3600), || true)
            .unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::TimedOut);
        near.write_all(&[b' '; 2 * LONGEST]).unwrap();
        let patience = Duration::from_secs(20);
        assert!(far.hear::<u8>(patience, || false).is_err());
        assert_eq!(far.line.begun.len(), LONGEST);
    }

    #[test]
    fn a_line_that_trickles_has_its_deadline() {
        let (mut near, mut far) = pair();
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = std::sync::Arc::clone(&stop);
        let writer = std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed)
                && near.write_all(b" ").is_ok()
            {
                std::thread::sleep(GLANCE / 5);
            }
        });
        let late = far.hear::<u8>(2 * GLANCE, || false).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap();
    }

    proptest! {
        #![proptest_config(few())]

        /// For any bytes on a control connection, in any pieces: each line is a message or an error, no line exceeds
        /// the limit, and no wait exceeds its deadline.
        #[test]
        fn any_lines_are_messages_or_errors(
            pieces in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                Just(b"\n".to_vec()),
                Just(br#"{"version":3,"voice":true,"congestion_control":null,"times":{}}"#.to_vec()),
                Just(br#"{"Err":"why"}"#.to_vec()),
                (0_usize..6_000).prop_map(|n| vec![b' '; n]),
            ], 0..8),
        ) {
            let (mut near, mut far) = pair();
            let lines = pieces.concat().iter().filter(|byte| **byte == b'\n').count();
            let writer = std::thread::spawn(move || {
                // A server that refuses a line stops reading.
                pieces.iter().try_for_each(|piece| near.write_all(piece)).ok();
            });
            let mut heard = 0;
            loop {
                let patience = Duration::from_secs(20);
                let error = match heard % 3 {
                    0 => far.hear::<TestOrder>(patience, || false).err(),
                    1 => far.hear::<Reply>(patience, || false).err(),
                    _ => far.hear::<Finish>(patience, || false).err(),
                };
                prop_assert!(far.line.begun.len() <= LONGEST);
                match error.as_ref().map(io::Error::kind) {
                    None => {}
                    Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset) => break,
                    Some(_) => far.line.begun.clear(),
                }
                heard += 1;
                prop_assert!(heard <= 4 * lines + 20, "{:?}", error);
            }
            drop(far);
            writer.join().unwrap();
        }
    }

    /// Each case takes a connection and a thread: few, or as many as `make fuzz` requests.
    fn few() -> ProptestConfig {
        let asked = std::env::var("PROPTEST_CASES").ok();
        ProptestConfig::with_cases(asked.and_then(|n| n.parse().ok()).unwrap_or(32))
    }
}
