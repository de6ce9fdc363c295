//! Pages: connect, ask, read 20 kB to the end; pause; again.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::file::patience;
use super::progress::{Counter, Progress};
use super::report::PagesReport;
use super::{GLANCE, Plan, is_timeout, mean, now_ns, quantile};

const PAGE_LEN: usize = 20_000;
const PAUSE: Duration = Duration::from_millis(100);
const REQUEST: &[u8] = b"GET /page HTTP/1.0\r\n\r\n";

/// Fetches one page after the other until the plan's end.
pub(super) fn fetch(server: SocketAddr, plan: &Plan, progress: &Progress) -> PagesReport {
    let mut times = Vec::new();
    let (mut failed, mut errors) = (0, BTreeMap::new());
    while !plan.is_over() {
        let begun = now_ns();
        let outcome = fetch_one(server, plan);
        let took = now_ns() - begun;
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
        mean_ns: mean(&times),
        p50_ns: quantile(&times, 0.5),
        p95_ns: quantile(&times, 0.95),
        max_ns: quantile(&times, 1.0),
    }
}

fn fetch_one(server: SocketAddr, plan: &Plan) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&server, patience(plan))?;
    stream.set_nodelay(true)?;
    stream.write_all(REQUEST)?;
    stream.set_read_timeout(Some(GLANCE))?;
    let mut buffer = [0; PAGE_LEN];
    let mut got = 0;
    loop {
        match stream.read(&mut buffer) {
            // The server closes behind the page; the last byte is what was waited for.
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

/// Answers one request.
pub(super) fn answer(mut stream: TcpStream, is_over: impl Fn() -> bool) -> io::Result<()> {
    stream.set_read_timeout(Some(GLANCE))?;
    stream.set_write_timeout(Some(GLANCE))?;
    let mut patiently = |action: &mut dyn FnMut(&mut TcpStream) -> io::Result<usize>| {
        loop {
            match action(&mut stream) {
                Err(e) if is_timeout(&e) && !is_over() => {}
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                outcome => return outcome,
            }
        }
    };
    let mut asked = 0;
    while asked < REQUEST.len() {
        let mut request = [0; REQUEST.len()];
        asked += patiently(&mut |stream| stream.read(&mut request))?;
    }
    let page = [b'p'; PAGE_LEN];
    let mut sent = 0;
    while sent < PAGE_LEN {
        sent += patiently(&mut |stream| stream.write(&page[sent..]))?;
    }
    Ok(())
}
