//! The kernel's side: two namespaces, the emulator between them, and plain sockets.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use airlane_testkit::live::{EmulatedLink, Experiment, LiveError};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::point::{Application, Congestion, DELAY_MS, FILE, PAGES, Point, REPLY, REQUEST};

/// Timeout that only ends a hang.
const PATIENCE: Duration = Duration::from_secs(120);
const PORT: u16 = 5201;
/// The hosts, left and right.
const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];

/// Two hosts and the emulator between them; dropping it removes everything.
#[derive(Debug)]
pub struct Site {
    link: EmulatedLink,
    file: PathBuf,
    _directory: tempfile::TempDir,
}

/// The congestion controls that this kernel lacks.
///
/// # Errors
/// If they cannot be read.
pub fn missing() -> io::Result<Vec<Congestion>> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let has = std::fs::read_to_string(path)?;
    let is_missing = |c: &Congestion| !has.split_whitespace().any(|name| name == c.name());
    Ok(Congestion::ALL.into_iter().filter(is_missing).collect())
}

impl Site {
    /// Builds the path; `airlane` is the program.
    ///
    /// # Errors
    /// If namespaces cannot be created, or the emulator does not start.
    pub fn new(airlane: &Path, first: &Point) -> Result<Self, LiveError> {
        let directory = tempfile::tempdir().map_err(LiveError::Traffic)?;
        let file = directory.path().join("air.toml");
        std::fs::write(&file, first.air()).map_err(LiveError::Traffic)?;
        let link = EmulatedLink::new(&Experiment {
            airlane,
            air: &file,
            seed: 1,
            ends: None,
            warmup: Duration::ZERO,
            measure: Duration::ZERO,
            pages: false,
        })?;
        let hosts = link.hosts();
        for (i, host) in hosts.iter().enumerate() {
            // Only TCP may draw losses: there is no address resolution, and no IPv6.
            host.sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
            host.sysctl("net/ipv4/tcp_no_metrics_save", "1")?;
            host.ip(&["link", "set", "dev", "wire", "gso_max_segs", "1"])?;
            host.ip(&["link", "set", "dev", "wire", "address", MACS[i]])?;
        }
        for (i, host) in hosts.iter().enumerate() {
            let other = HOSTS[1 - i].to_string();
            let neighbour = [
                "neigh",
                "replace",
                &other,
                "lladdr",
                MACS[1 - i],
                "dev",
                "wire",
                "nud",
                "permanent",
            ];
            host.ip(&neighbour)?;
        }
        Ok(Self {
            link,
            file,
            _directory: directory,
        })
    }

    /// Measures the kernel: bit/s of the file, or seconds per page.
    ///
    /// # Errors
    /// If the emulator does not start, or a connection breaks.
    pub fn run(&mut self, point: &Point, seed: u64) -> Result<f64, LiveError> {
        std::fs::write(&self.file, point.air()).map_err(LiveError::Traffic)?;
        self.link.change_air(&self.file, seed)?;
        let [left, right] = self.link.hosts();
        let congestion = point.congestion;
        let (serving, asking) = match point.application {
            Application::File => (right, left),
            Application::Pages => (left, right),
        };
        let address = match point.application {
            Application::File => HOSTS[1],
            Application::Pages => HOSTS[0],
        };
        let listener = serving
            .run(|| listen(address, congestion))?
            .map_err(LiveError::Traffic)?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let served = scope.spawn(|| {
                let served = serving.run(|| match point.application {
                    Application::File => receive(&listener),
                    Application::Pages => serve_pages(&listener),
                });
                over.store(true, Ordering::Relaxed);
                served
            });
            let asked = asking.run(|| match point.application {
                Application::File => send(address, congestion, &over),
                Application::Pages => fetch(address, congestion),
            });
            let served = served
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let served = served?.map_err(LiveError::Traffic)?;
            let asked = asked?.map_err(LiveError::Traffic)?;
            Ok(match (asked, served) {
                // The simulator's transfer ends when its last acknowledgment has come back.
                (Asked::Begun(begun), Some(over)) => {
                    let took =
                        over.saturating_duration_since(begun) + Duration::from_millis(DELAY_MS);
                    FILE as f64 * 8.0 / took.as_secs_f64()
                }
                (Asked::Begun(_), None) => f64::NAN,
                (Asked::Pages(mean), _) => mean,
            })
        })
    }
}

const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// What the connecting end has measured.
enum Asked {
    Begun(Instant),
    /// Mean time of a page, seconds.
    Pages(f64),
}

fn listen(address: Ipv4Addr, congestion: Congestion) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_congestion(congestion.name().as_bytes())?;
    socket.bind(&SocketAddr::from((address, PORT)).into())?;
    socket.listen(8)?;
    // An accept without a connection times out.
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket.into())
}

fn connect(address: Ipv4Addr, congestion: Congestion) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_congestion(congestion.name().as_bytes())?;
    socket.connect_timeout(&SocketAddr::from((address, PORT)).into(), PATIENCE)?;
    let stream = TcpStream::from(socket);
    bound(&stream)?;
    Ok(stream)
}

/// Sets timeouts, so that nothing blocks forever.
fn bound(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))
}

fn send(address: Ipv4Addr, congestion: Congestion, over: &AtomicBool) -> io::Result<Asked> {
    let begun = Instant::now();
    let mut stream = connect(address, congestion)?;
    stream.write_all(&vec![b'b'; FILE as usize])?;
    stream.shutdown(Shutdown::Write)?;
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
    end(&stream)?;
    Ok(Asked::Begun(begun))
}

/// When the last byte arrived.
fn receive(listener: &TcpListener) -> io::Result<Option<Instant>> {
    let (mut stream, _) = listener.accept()?;
    bound(&stream)?;
    let mut left = FILE;
    let mut buffer = vec![0; 64 * 1024];
    while left > 0 {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => left = left.saturating_sub(n as u64),
        }
    }
    let now = Instant::now();
    end(&stream)?;
    Ok(Some(now))
}

/// Closes a connection so that none of its packets are left for the next run.
fn end(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

fn serve_pages(listener: &TcpListener) -> io::Result<Option<Instant>> {
    let reply = vec![b'p'; REPLY as usize];
    for _ in 0..PAGES {
        let (mut stream, _) = listener.accept()?;
        bound(&stream)?;
        stream.read_exact(&mut [0; REQUEST as usize])?;
        stream.write_all(&reply)?;
    }
    Ok(None)
}

fn fetch(address: Ipv4Addr, congestion: Congestion) -> io::Result<Asked> {
    let mut total = Duration::ZERO;
    let mut page = vec![0; REPLY as usize];
    for _ in 0..PAGES {
        let begun = Instant::now();
        let mut stream = connect(address, congestion)?;
        stream.write_all(&[b'r'; REQUEST as usize])?;
        stream.read_exact(&mut page)?;
        total += begun.elapsed();
        end(&stream)?;
    }
    Ok(Asked::Pages(total.as_secs_f64() / PAGES as f64))
}
