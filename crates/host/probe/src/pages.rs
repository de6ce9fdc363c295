//! Pages: connect, send a request with the test's token in the path, read 20 kB to the end; pause; repeat.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::plan::Timetable;
use crate::progress::{Counter, Progress};
use crate::report::PagesReport;
use crate::server_state::Test;
use crate::token::{TOKEN_LEN, TestToken};
use crate::{GLANCE, is_timeout, quantile};

const PAGE_LEN: usize = 20_000;
const PAUSE: Duration = Duration::from_millis(100);
const BEFORE_TOKEN: &str = "GET /";
const BEHIND_TOKEN: &str = " HTTP/1.0\r\n\r\n";
/// Bytes of a request, which contains the token in hexadecimal.
pub(crate) const REQUEST_LEN: usize = BEFORE_TOKEN.len() + 2 * TOKEN_LEN + BEHIND_TOKEN.len();

/// The request for a page.
pub(crate) fn request(token: TestToken) -> Vec<u8> {
    format!("{BEFORE_TOKEN}{token}{BEHIND_TOKEN}").into_bytes()
}

/// Fetches pages one after the other until the plan's end.
pub(crate) fn fetch(
    server: SocketAddr,
    token: TestToken,
    plan: &Timetable,
    progress: &Progress,
) -> PagesReport {
    let request = request(token);
    let mut times = Vec::new();
    let (mut failed, mut errors) = (0, BTreeMap::new());
    while !plan.is_over() {
        let begun = plan.watch.now_ns();
        let outcome = fetch_one(server, &request, plan);
        let took = plan.watch.now_ns() - begun;
        if outcome.is_ok() {
            progress.add(Counter::Pages, 1);
        }
        match outcome {
            _ if !plan.measures(begun) => {}
            Ok(()) => times.push(took),
            Err(error) => {
                failed += 1;
                *errors.entry(error.kind().to_string()).or_default() += 1;
            }
        }
        std::thread::sleep(PAUSE);
    }
    times.sort_unstable();
    PagesReport {
        completed: times.len() as u64,
        failed,
        errors,
        mean_ns: times.iter().sum::<u64>() as f64 / times.len().max(1) as f64,
        p50_ns: quantile(&times, 0.5),
        p95_ns: quantile(&times, 0.95),
        max_ns: quantile(&times, 1.0),
    }
}

/// Fetches one page, which proves this end's address on the path to that server.
pub(crate) fn introduce(server: SocketAddr, token: TestToken, plan: &Timetable) -> io::Result<()> {
    fetch_one(server, &request(token), plan)
}

fn fetch_one(server: SocketAddr, request: &[u8], plan: &Timetable) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&server, plan.patience())?;
    stream.set_nodelay(true)?;
    stream.write_all(request)?;
    stream.set_read_timeout(Some(GLANCE))?;
    let mut buffer = [0; PAGE_LEN];
    let mut got = 0;
    loop {
        match stream.read(&mut buffer) {
            // The server closes after the page; the last byte is what counts.
            Ok(0) if got == PAGE_LEN => return Ok(()),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                got += n;
                if got >= PAGE_LEN {
                    return Ok(());
                }
            }
            Err(e) if is_timeout(&e) && !plan.is_over() => {}
            Err(e) => return Err(e),
        }
    }
}

/// Sends the page, if the test may send that many bytes.
pub(crate) fn answer(mut stream: TcpStream, test: &Test) -> io::Result<()> {
    stream.set_write_timeout(Some(GLANCE))?;
    let page = [b'p'; PAGE_LEN];
    if !test.spend(PAGE_LEN as u64) {
        return Ok(());
    }
    let mut sent = 0;
    while sent < PAGE_LEN {
        match stream.write(&page[sent..]) {
            Ok(n) => sent += n,
            Err(e) if is_timeout(&e) && !test.is_over() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_it_says() {
        assert_eq!(request(TestToken([0xab; TOKEN_LEN])).len(), REQUEST_LEN);
    }
}
