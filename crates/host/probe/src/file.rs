//! The file: one TCP connection on which the server always has more to send. The client sends the test's token first.
//!
//! Every byte depends on its offset, so the receiver detects changed, lost, duplicated or moved bytes, and ends the
//! transfer with an error.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::plan::Timetable;
use crate::progress::{Counter, Progress};
use crate::server_state::Test;
use crate::token::TestToken;
use crate::{GLANCE, is_timeout};

/// The repeated content of the file: its length is a prime times 256, so that packets, chunks or buffers do not soon
/// repeat at the same offset.
struct Content(Vec<u8>);

impl Content {
    fn new() -> Self {
        const PERIOD: usize = 251;
        let byte = |i: usize| (i % PERIOD + i / PERIOD) as u8;
        Self((0..PERIOD * 256).map(byte).collect())
    }

    /// The bytes from offset `place` to the end of the current repetition.
    fn at(&self, place: u64) -> &[u8] {
        &self.0[(place % self.0.len() as u64) as usize..]
    }

    /// Whether these are the bytes at offset `place`.
    fn is(&self, mut place: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let expected = self.at(place);
            let n = expected.len().min(bytes.len());
            if bytes[..n] != expected[..n] {
                return false;
            }
            place += n as u64;
            bytes = &bytes[n..];
        }
        true
    }
}

/// Receives until the plan's end; returns the bytes received in the measuring period.
pub(crate) fn receive(
    server: SocketAddr,
    token: TestToken,
    plan: &Timetable,
    progress: &Progress,
) -> (u64, Option<String>) {
    let mut counted = 0;
    let (content, mut place) = (Content::new(), 0);
    let result = (|| -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&server, plan.patience())?;
        stream.write_all(&token.0)?;
        stream.set_read_timeout(Some(GLANCE))?;
        let mut buffer = vec![0; 256 * 1024];
        while !plan.is_over() {
            match stream.read(&mut buffer) {
                Ok(0) if plan.is_over() => break,
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    if !content.is(place, &buffer[..n]) {
                        let wrong = format!("corrupted after byte {place}");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, wrong));
                    }
                    place += n as u64;
                    progress.add(Counter::FileBytes, n as u64);
                    if plan.measures(plan.watch.now_ns()) {
                        counted += n as u64;
                    }
                }
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    })();
    (counted, result.err().map(|e| e.to_string()))
}

/// Sends as fast as the connection allows, until the receiver closes it, or the test is over or has used up its
/// bytes.
pub(crate) fn send(mut stream: TcpStream, test: &Test) -> io::Result<()> {
    stream.set_write_timeout(Some(GLANCE))?;
    let (content, mut place) = (Content::new(), 0);
    while !test.is_over() {
        match stream.write(content.at(place)) {
            Ok(n) if test.spend(n as u64) => place += n as u64,
            Ok(_) => break,
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_determined_by_its_position() {
        let content = Content::new();
        let long = [content.at(100), content.at(0), content.at(0)].concat();
        assert!(content.is(100, &long));
        assert!(!content.is(101, &long));
        // Errors that TCP must not make: a segment missing, duplicated, or swapped with its neighbour.
        let (a, b, c) = (&long[..1448], &long[1448..2896], &long[2896..4344]);
        for wrong in [[a, c].concat(), [a, a, b].concat(), [b, a, c].concat()] {
            assert!(!content.is(100, &wrong));
        }
    }
}
