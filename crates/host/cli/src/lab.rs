//! `airlane lab` serves the simulator's page to browsers on this machine.
//!
//! The page consists of static files, so no request changes anything. The server listens on loopback only and refuses a
//! `Host` that is not a loopback name, so that no other site can read the page by DNS rebinding.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;

use crate::args::PageArgs;
use crate::fault::BadInput;
use crate::output;

include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// Maximum length of a request, bytes, and number of its headers.
const LONGEST: usize = 16 << 10;
const HEADERS: usize = 100;
/// Timeout of a read or a write.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of connections; a browser opens a handful.
const MOST_AT_ONCE: usize = 64;

/// The page loads everything from here and sends nothing elsewhere. The simulator is WebAssembly in workers that the page
/// creates from blobs.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; style-src 'self' \
     'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Runs `lab`.
pub(crate) fn serve(args: &PageArgs) -> anyhow::Result<()> {
    if SITE.is_empty() {
        let wrong = "this program was built without the page: run `make site` in the sources of Airlane, then build it again";
        return Err(BadInput(wrong.to_owned()).into());
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        let port = args.port;
        let help = match error.kind() {
            ErrorKind::AddrInUse => "; --port 0 lets the system choose another",
            _ => "",
        };
        BadInput(format!("--port {port}: {error}{help}"))
    })?;
    let port = listener.local_addr()?.port();
    output::print(&format!("http://127.0.0.1:{port}/\n"))?;
    output::note("open this address in a browser of this machine; Ctrl-C ends the page");
    let busy = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if busy.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
            busy.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let busy = Arc::clone(&busy);
        let named = std::thread::Builder::new().name("lab".to_owned());
        let served = named.spawn(move || {
            // A browser may close a connection at any time.
            _ = connection(stream, port);
            busy.fetch_sub(1, Ordering::Relaxed);
        });
        served.context("cannot start a thread")?;
    }
    Ok(())
}

/// Answers one request.
fn connection(mut stream: TcpStream, port: u16) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let answer = loop {
        if let Some(answer) = answer(&request, port) {
            break answer;
        }
        let mut some = [0; 4096];
        match stream.read(&mut some)? {
            0 => return Ok(()),
            n => request.extend_from_slice(&some[..n]),
        }
    };
    stream.write_all(answer.head.as_bytes())?;
    stream.write_all(answer.body)
}

#[derive(Debug)]
struct Answer {
    head: String,
    body: &'static [u8],
}

impl Answer {
    fn refused(status: &str) -> Self {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        Self { head, body: b"" }
    }
}

/// The answer to a request; none while the request is incomplete.
fn answer(bytes: &[u8], port: u16) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST => return None,
        Ok(httparse::Status::Partial) => {
            return Some(Answer::refused("431 Request Header Fields Too Large"));
        }
        Err(_) => return Some(Answer::refused("400 Bad Request")),
    }
    let method = request.method.unwrap_or_default();
    if !matches!(method, "GET" | "HEAD") {
        return Some(Answer::refused("405 Method Not Allowed"));
    }
    let mut hosts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"));
    let (host, another) = (hosts.next(), hosts.next());
    let known = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let ours = host.is_some_and(|host| known.iter().any(|known| known.as_bytes() == host.value));
    if !ours || another.is_some() {
        return Some(Answer::refused("421 Misdirected Request"));
    }
    let path = request.path.unwrap_or_default();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let name = match path.strip_prefix('/') {
        Some("") => "index.html",
        Some(name) => name,
        None => "",
    };
    let Some((_, body)) = SITE.iter().find(|(known, _)| *known == name) else {
        return Some(Answer::refused("404 Not Found"));
    };
    let kind = match name.rsplit('.').next() {
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        _ => "text/html",
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nContent-Security-Policy: {POLICY}\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Cache-Control: no-cache\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = match method {
        "HEAD" => b"",
        _ => *body,
    };
    Some(Answer { head, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(request: &str) -> Option<String> {
        let answer = answer(request.as_bytes(), 8470)?;
        Some(answer.head.split(' ').nth(1).unwrap().to_owned())
    }

    fn get(path: &str, host: &str) -> String {
        status(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap()
    }

    #[test]
    fn only_host_names_of_this_machine_are_answered() {
        let found = if SITE.is_empty() { "404" } else { "200" };
        for host in ["127.0.0.1:8470", "localhost:8470"] {
            assert_eq!(get("/", host), found);
            assert_eq!(get("/lab.js?x=1", host), found);
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "evil.example:8470",
            "evil.example",
            "",
        ] {
            assert_eq!(get("/", host), "421", "{host}");
        }
        let twice = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8470\r\nHost: evil.example\r\n\r\n";
        assert_eq!(status(twice).unwrap(), "421");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n").unwrap(), "421");
    }

    #[test]
    fn only_embedded_files_are_served() {
        for path in [
            "/../Cargo.toml",
            "/etc/passwd",
            "//",
            "/%2e%2e/x",
            "/simulator.wasm",
        ] {
            assert_eq!(get(path, "localhost:8470"), "404", "{path}");
        }
        let post = "POST / HTTP/1.1\r\nHost: localhost:8470\r\n\r\n";
        assert_eq!(status(post).unwrap(), "405");
    }

    #[test]
    fn incomplete_requests_wait_and_long_ones_are_refused() {
        assert_eq!(status("GET / HTTP/1.1\r\nHost: loc"), None);
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(LONGEST));
        assert_eq!(status(&long).unwrap(), "431");
        assert_eq!(status("\0\0\r\n\r\n").unwrap(), "400");
    }
}
