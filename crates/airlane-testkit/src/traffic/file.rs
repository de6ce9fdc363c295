//! The file: one TCP connection on which the server always has more to send.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{GLANCE, Plan, is_timeout, now_ns};

/// Receives until the plan's end; gives the bytes received in the measuring period.
pub(super) fn receive(server: SocketAddr, plan: &Plan) -> (u64, Option<String>) {
    let mut counted = 0;
    let result = (|| -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&server, patience(plan))?;
        stream.set_read_timeout(Some(GLANCE))?;
        let mut buffer = vec![0; 256 * 1024];
        while !plan.is_over() {
            match stream.read(&mut buffer) {
                Ok(0) if plan.is_over() => break,
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) if plan.measures(now_ns()) => counted += n as u64,
                Ok(_) => {}
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    })();
    (counted, result.err().map(|e| e.to_string()))
}

/// Sends as fast as the connection takes it, until the receiver leaves or time is over.
pub(super) fn send(mut stream: TcpStream, is_over: impl Fn() -> bool) -> io::Result<()> {
    stream.set_write_timeout(Some(GLANCE))?;
    let chunk = vec![0x5a; 64 * 1024];
    while !is_over() {
        match stream.write(&chunk) {
            Ok(_) => {}
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// What is left until the plan's end, at least a little.
pub(super) fn patience(plan: &Plan) -> Duration {
    Duration::from_nanos(plan.end_ns.saturating_sub(now_ns())).max(GLANCE)
}
