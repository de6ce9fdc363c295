//! The far end: serves the file and the pages to anybody, and voice to the client that asked.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::control::{Accepted, Control, Order, ServerResult};
use super::progress::{Counter, Progress};
use super::voice::Arrivals;
use super::{
    CONTROL_PORT, FILE_PORT, GLANCE, PAGES_PORT, VOICE_PORT, file, is_timeout, now_ns, pages, voice,
};

/// What the server needs to know.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Address to listen on; the unspecified IPv6 address takes IPv4 too.
    pub listen: IpAddr,
    /// It ends by itself after this time.
    pub lifetime: Duration,
    /// Where it tells how far it is: the same as the client's, if anybody watches both.
    pub progress: Progress,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: Ipv6Addr::UNSPECIFIED.into(),
            lifetime: Duration::from_secs(600),
            progress: Progress::default(),
        }
    }
}

/// Serves until `stop` is set or the lifetime is over. `ready` is called when all ports are open.
///
/// # Errors
/// If a port cannot be opened.
pub fn serve(config: &ServerConfig, stop: &AtomicBool, ready: impl FnOnce()) -> io::Result<()> {
    let until = Until {
        end_ns: now_ns() + config.lifetime.as_nanos() as u64,
        stop,
    };
    let files = listen(config.listen, FILE_PORT)?;
    let page_requests = listen(config.listen, PAGES_PORT)?;
    let controls = listen(config.listen, CONTROL_PORT)?;
    let voice = UdpSocket::bind((config.listen, VOICE_PORT))?;
    voice::mark(&voice)?;
    ready();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            accept(&files, until, |stream| {
                scope.spawn(move || file::send(stream, || until.is_over()));
            });
        });
        scope.spawn(|| {
            accept(&page_requests, until, |stream| {
                scope.spawn(move || pages::answer(stream, || until.is_over()));
            });
        });
        // One client at a time: they would share the voice port.
        accept(&controls, until, |stream| {
            // A client that breaks off is its own problem; the next one is served.
            let _ = obey(stream, &[&files, &page_requests], &voice, &config.progress);
        });
    });
    Ok(())
}

pub(super) fn listen(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let address = SocketAddr::from((address, port));
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(64)?;
    // An accept that runs into its timeout lets the loop look at its deadline.
    socket.set_read_timeout(Some(GLANCE))?;
    Ok(socket.into())
}

/// When to end.
#[derive(Clone, Copy)]
struct Until<'a> {
    end_ns: u64,
    stop: &'a AtomicBool,
}

impl Until<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || now_ns() >= self.end_ns
    }
}

fn accept(listener: &TcpListener, until: Until<'_>, mut serve: impl FnMut(TcpStream)) {
    while !until.is_over() {
        match listener.accept() {
            Ok((stream, _)) => serve(stream),
            Err(e) if is_timeout(&e) => {}
            // Out of descriptors, or a connection that was reset before it was taken.
            Err(_) => std::thread::sleep(GLANCE),
        }
    }
}

/// Does what one client asks for.
fn obey(
    stream: TcpStream,
    listeners: &[&TcpListener],
    voice: &UdpSocket,
    progress: &Progress,
) -> io::Result<()> {
    let peer = stream.peer_addr()?.ip();
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let mut control = Control::new(stream)?;
    let order: Order = control.hear()?;
    let plan = order.plan;
    control.say(&Accepted {
        congestion_control: set_congestion_control(listeners, &order.congestion_control),
    })?;
    let (mut voice_sent, mut voice_arrivals) = (0, Arrivals::default());
    if order.voice {
        let to = SocketAddr::from((peer, VOICE_PORT));
        (voice_sent, voice_arrivals) = std::thread::scope(|scope| {
            let sender = scope.spawn(|| voice::send(voice, to, &plan));
            let arrived = || progress.add(Counter::VoiceUp, 1);
            let arrivals = voice::receive(voice, &plan, arrived).unwrap_or_default();
            (sender.join().unwrap_or_default(), arrivals)
        });
    }
    control.say(&ServerResult {
        voice_sent,
        voice_arrivals,
    })
}

/// Sets the congestion control of connections to come, and reads back what it is.
fn set_congestion_control(listeners: &[&TcpListener], name: &str) -> Result<String, String> {
    let mut used = String::new();
    for listener in listeners {
        let socket = SockRef::from(*listener);
        socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(|e| format!("this kernel has no TCP {name}: {e}"))?;
        let bytes = socket.tcp_congestion().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&bytes);
        used = text.trim_end_matches('\0').to_owned();
    }
    Ok(used)
}
