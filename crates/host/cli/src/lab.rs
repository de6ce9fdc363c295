//! `airlane lab` serves the simulator's page to browsers on this machine, and shows a live node on it.
//!
//! The server listens on loopback only and refuses a `Host` that is not a loopback name, so that no other site can read
//! the page by DNS rebinding. The page consists of static files. Requests about a node need a token as well.

#[cfg(feature = "live")]
mod advice;
#[cfg(feature = "live")]
mod guard;
#[cfg(feature = "live")]
mod history;
mod http;
#[cfg(feature = "live")]
mod watch;

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::args::PageArgs;
use crate::fault::BadInput;
use crate::output;
use http::{Answer, Head};
#[cfg(feature = "live")]
use watch::Watch;

include!(concat!(env!("OUT_DIR"), "/site.rs"));

/// How long a client has for a request and its body, and how long it has to take the answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of connections; a browser opens a handful.
const MOST_AT_ONCE: usize = 64;
/// How much of a refused body is read and discarded, bytes: a client reads the refusal only after it has sent its body.
const UNWANTED: usize = 1 << 20;

/// This attribute tells the page that there is a node to watch.
#[cfg(feature = "live")]
const MARK: [&str; 2] = ["id=\"lab\"", "id=\"lab\" data-node"];

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
    let lab = Lab::new(args, port)?;
    output::print(&format!("http://127.0.0.1:{port}/{}\n", lab.fragment()))?;
    output::note("open this address in a browser of this machine; Ctrl-C ends the page");
    serve_on(&listener, lab)
}

fn serve_on(listener: &TcpListener, lab: Lab) -> anyhow::Result<()> {
    let (lab, busy) = (Arc::new(lab), Arc::new(AtomicUsize::new(0)));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if busy.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
            busy.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (lab, busy) = (Arc::clone(&lab), Arc::clone(&busy));
        let named = std::thread::Builder::new().name("lab".to_owned());
        let served = named.spawn(move || {
            // A browser may close a connection at any time.
            _ = lab.connection(stream);
            busy.fetch_sub(1, Ordering::Relaxed);
        });
        served.context("cannot start a thread")?;
    }
    Ok(())
}

/// What the server needs to answer a request.
struct Lab {
    /// The accepted values of `Host`.
    hosts: [String; 2],
    #[cfg(feature = "live")]
    watch: Option<Watch>,
}

impl Lab {
    fn new(args: &PageArgs, port: u16) -> anyhow::Result<Self> {
        #[cfg(not(feature = "live"))]
        let _ = args;
        Ok(Self {
            hosts: ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}")),
            #[cfg(feature = "live")]
            watch: args.node.as_deref().map(Watch::begin).transpose()?,
        })
    }

    /// The fragment of the page's address.
    fn fragment(&self) -> String {
        #[cfg(feature = "live")]
        if let Some(watch) = &self.watch {
            return watch.fragment();
        }
        String::new()
    }

    /// Answers one request.
    fn connection(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut input = Input {
            stream: &stream,
            until: Instant::now() + PATIENCE,
            bytes: Vec::new(),
        };
        let (head_only, answer) = match input.head()? {
            Err(refused) => (false, refused),
            Ok(head) => (head.method == "HEAD", self.answer(&head, &mut input)?),
        };
        answer.write(head_only, &mut &stream)?;
        // Closing a connection with unread data resets it, and the client loses the answer.
        stream.shutdown(Shutdown::Write)?;
        input.read_away()
    }

    fn answer(&self, head: &Head, input: &mut Input<'_>) -> io::Result<Answer> {
        let answer = self.admit(head).and_then(|()| {
            #[cfg(feature = "live")]
            if let Some(watch) = self
                .watch
                .as_ref()
                .filter(|_| head.path.starts_with(watch::PREFIX))
            {
                let (call, length) = watch.call(head)?;
                return Ok(match input.body(head, length) {
                    Ok(body) => Ok(watch.answer(call, body)),
                    Err(error) => Err(error),
                });
            }
            #[cfg(not(feature = "live"))]
            let _ = &input;
            self.file(head).map(Ok)
        });
        answer.unwrap_or_else(Ok)
    }

    /// Refuses a request whose `Host` is not a loopback name.
    fn admit(&self, head: &Head) -> Result<(), Answer> {
        let host = head.header("host").unwrap_or_default();
        match self.hosts.iter().any(|known| known.as_bytes() == host) {
            true => Ok(()),
            false => Err(Answer::refused(
                "421 Misdirected Request",
                format!("this is http://{}/ and nothing else", self.hosts[0]),
            )),
        }
    }

    /// A file of the page.
    fn file(&self, head: &Head) -> Result<Answer, Answer> {
        if !matches!(&*head.method, "GET" | "HEAD") {
            let why = "the files of the page are read, and nothing else";
            return Err(Answer::refused("405 Method Not Allowed", why));
        }
        let name = match head.path.strip_prefix('/') {
            Some("") => "index.html",
            Some(name) => name,
            None => "",
        };
        let Some((_, body)) = SITE.iter().find(|(known, _)| *known == name) else {
            return Err(Answer::refused(
                "404 Not Found",
                "there is no file of this name",
            ));
        };
        let kind = match name.rsplit('.').next() {
            Some("css") => "text/css",
            Some("js") => "text/javascript",
            Some("txt") => "text/plain",
            _ => "text/html",
        };
        Ok(Answer::file(kind, self.marked(kind, body)))
    }

    /// Marks the page if there is a node.
    fn marked(&self, kind: &str, body: &'static [u8]) -> Cow<'static, [u8]> {
        #[cfg(feature = "live")]
        if let (true, "text/html", Ok(text)) =
            (self.watch.is_some(), kind, std::str::from_utf8(body))
        {
            let [from, to] = MARK;
            return text.replacen(from, to, 1).into_bytes().into();
        }
        #[cfg(not(feature = "live"))]
        let _ = kind;
        body.into()
    }
}

/// A client's request, as far as it has arrived, and its deadline.
struct Input<'a> {
    stream: &'a TcpStream,
    until: Instant,
    bytes: Vec<u8>,
}

impl Input<'_> {
    /// Reads what has arrived. Fails at the end of the stream and at the deadline.
    fn read(&mut self) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        // A timeout of zero is refused.
        self.stream
            .set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let mut some = [0; 16 << 10];
        let mut stream = self.stream;
        match stream.read(&mut some)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ if left.is_zero() => Err(ErrorKind::TimedOut.into()),
            n => {
                self.bytes.extend_from_slice(&some[..n]);
                Ok(n)
            }
        }
    }

    fn head(&mut self) -> io::Result<Result<Head, Answer>> {
        loop {
            if let Some(head) = Head::read(&self.bytes) {
                return Ok(head);
            }
            self.read()?;
        }
    }

    #[cfg(feature = "live")]
    fn body(&mut self, head: &Head, length: usize) -> io::Result<&[u8]> {
        while self.bytes.len() - head.length < length {
            self.read()?;
        }
        Ok(&self.bytes[head.length..][..length])
    }

    /// Reads and discards what the client still sends.
    fn read_away(&mut self) -> io::Result<()> {
        let mut read = 0;
        while read < UNWANTED {
            self.bytes.clear();
            read += self.read()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
