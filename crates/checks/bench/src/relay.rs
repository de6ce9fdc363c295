//! Compares relays of split connections over loopback: throughput, what a relay still holds after connections have
//! ended, and how soon one side learns that the other was killed.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use airlane_testkit::live::LiveError;
use airlane_testkit::program::Program;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::SockRef;

/// Connections opened at the same time, and how many times, after a first round that fills pools and caches.
const CONNECTIONS: usize = 1_000;
const TIMES: usize = 3;
/// Bytes that each of them carries in each direction.
const QUESTION: usize = 1_000;
/// Timeout that only ends a hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// A relay.
#[derive(Clone, Debug)]
pub enum Tool {
    /// The program under test.
    Airlane(PathBuf),
    /// A process for each connection.
    Socat,
    /// With `splice-auto`.
    Haproxy,
}

impl Tool {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Airlane(_) => "airlane relay",
            Self::Socat => "socat",
            Self::Haproxy => "HAProxy",
        }
    }

    /// Whether it is installed.
    pub fn is_there(&self) -> bool {
        let (program, says) = match self {
            Self::Airlane(program) => (program.as_path(), "--version"),
            Self::Socat => (Path::new("socat"), "-V"),
            Self::Haproxy => (Path::new("haproxy"), "-v"),
        };
        Command::new(program).arg(says).output().is_ok()
    }

    fn command(&self, listen: SocketAddr, to: SocketAddr, directory: &Path) -> io::Result<Command> {
        Ok(match self {
            Self::Airlane(program) => {
                let mut command = Command::new(program);
                let (listen, to) = (listen.to_string(), to.to_string());
                command.args([
                    "relay",
                    "--connections",
                    "2000",
                    "--listen",
                    &listen,
                    "--to",
                    &to,
                ]);
                command
            }
            Self::Socat => {
                let mut command = Command::new("socat");
                let listen = format!("TCP-LISTEN:{},fork,reuseaddr,backlog=1024", listen.port());
                command.args(["-b", "65536", &listen, &format!("TCP:{to}")]);
                command
            }
            Self::Haproxy => {
                let file = directory.join("haproxy.cfg");
                let text = format!(
                    "global\n  maxconn 4000\ndefaults\n  mode tcp\n  option splice-auto\n  timeout connect 30s\n  \
                     timeout client 60s\n  timeout server 60s\nlisten relay\n  bind {listen}\n  server one {to}\n"
                );
                fs::write(&file, text)?;
                let mut command = Command::new("haproxy");
                command.arg("-db").arg("-f").arg(&file);
                command
            }
        })
    }
}

/// The resources of a process and its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Held {
    /// Descriptors.
    pub descriptors: usize,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
}

/// The results of one relay.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RelayRow {
    /// Its name.
    pub tool: &'static str,
    /// Throughput of one connection, bit/s.
    pub throughput_bps: f64,
    /// Processor time of the relay per gigabyte.
    pub processor_s_per_gb: f64,
    /// Its maximum memory while one connection ran at full speed.
    pub running_resident_bytes: u64,
    /// Without connections, after the first thousand.
    pub before: Held,
    /// With a thousand connections.
    pub during: Held,
    /// After three times a thousand.
    pub after: Held,
    /// Time until the client learns that the server was killed, and the server that the client was; none if there is
    /// no reset.
    pub reset_s: [Option<f64>; 2],
}

/// Raises this process's limit on descriptors to the maximum.
///
/// # Errors
/// If the system does not allow enough of them.
pub fn raise_limits() -> Result<(), String> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    if maximum.is_some_and(|maximum| maximum < 4 * CONNECTIONS as u64) {
        return Err(format!(
            "the system allows fewer than {} open files",
            4 * CONNECTIONS
        ));
    }
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, all).map_err(|error| error.to_string())
}

/// Measures one relay.
///
/// # Errors
/// If it does not start, or does not carry the data.
pub fn measure(tool: &Tool, duration: Duration) -> Result<RelayRow, LiveError> {
    let directory = tempfile::tempdir().map_err(LiveError::Traffic)?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = TcpListener::bind(any).map_err(LiveError::Traffic)?;
    let to = server.local_addr().map_err(LiveError::Traffic)?;
    let free = TcpListener::bind(any).and_then(|free| free.local_addr());
    let listen = free.map_err(LiveError::Traffic)?;
    let command = tool
        .command(listen, to, directory.path())
        .map_err(LiveError::Traffic)?;
    let mut relay = Program::start(command, directory.path(), "relay")?;
    relay.wait_until(|| TcpStream::connect(listen).is_ok())?;
    // The connection that tested whether it is up.
    drop(server.accept());
    let path = Carried {
        relay: relay.id(),
        listen,
        server,
    };
    let row = path.row(tool, duration).map_err(LiveError::Traffic)?;
    relay.check()?;
    Ok(row)
}

/// A running relay, and the server beyond it.
struct Carried {
    relay: u32,
    listen: SocketAddr,
    server: TcpListener,
}

impl Carried {
    fn row(&self, tool: &Tool, duration: Duration) -> io::Result<RelayRow> {
        let (throughput_bps, processor_s_per_gb, running) = self.run_fast(duration)?;
        self.many()?;
        let before = self.settled()?;
        let mut during = before;
        for _ in 0..TIMES {
            during = self.many()?;
        }
        let after = self.settled()?;
        Ok(RelayRow {
            tool: tool.name(),
            throughput_bps,
            processor_s_per_gb,
            running_resident_bytes: running,
            before,
            during,
            after,
            reset_s: [self.kill(true)?, self.kill(false)?],
        })
    }

    fn pair(&self) -> io::Result<(TcpStream, TcpStream)> {
        let client = bound(TcpStream::connect(self.listen)?)?;
        let (server, _) = self.server.accept()?;
        Ok((client, bound(server)?))
    }

    /// Bit/s, processor seconds per gigabyte, and the maximum memory.
    fn run_fast(&self, duration: Duration) -> io::Result<(f64, f64, u64)> {
        let (mut client, mut server) = self.pair()?;
        let used = processor(self.relay)?;
        let begun = Instant::now();
        let sends = std::thread::spawn(move || {
            let block = vec![7; 256 << 10];
            while begun.elapsed() < duration {
                client.write_all(&block)?;
            }
            client.shutdown(Shutdown::Write)
        });
        let mut block = vec![0; 256 << 10];
        let (mut bytes, mut most, mut looked) = (0u64, 0, begun);
        // The time of a child is lost when it ends, so the last sample counts.
        let mut for_each = 0.0;
        loop {
            match server.read(&mut block)? {
                0 => break,
                n => bytes += n as u64,
            }
            if looked.elapsed() > Duration::from_millis(100) {
                looked = Instant::now();
                most = most.max(held(self.relay)?.resident_bytes);
                for_each = (processor(self.relay)? - used) / bytes as f64;
            }
        }
        let took = begun.elapsed().as_secs_f64();
        sends
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((bytes as f64 * 8.0 / took, for_each * 1e9, most))
    }

    /// A thousand connections at once, each with a request and a reply; returns what the relay holds meanwhile.
    fn many(&self) -> io::Result<Held> {
        let mut pairs = (0..CONNECTIONS)
            .map(|_| self.pair())
            .collect::<io::Result<Vec<_>>>()?;
        let mut buffer = [0; QUESTION];
        for (client, _) in &mut pairs {
            client.write_all(&[1; QUESTION])?;
        }
        for (client, server) in &mut pairs {
            server.read_exact(&mut buffer)?;
            server.write_all(&buffer)?;
            client.read_exact(&mut buffer)?;
        }
        held(self.relay)
    }

    /// What it holds after the connections have ended, which it may learn a little later.
    fn settled(&self) -> io::Result<Held> {
        let mut last = held(self.relay)?;
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(100));
            let now = held(self.relay)?;
            if now == last {
                break;
            }
            last = now;
        }
        Ok(last)
    }

    /// Kills one side in the middle of a connection; returns how long the other does not notice.
    fn kill(&self, server_dies: bool) -> io::Result<Option<f64>> {
        let (client, server) = self.pair()?;
        let (dies, mut lives) = match server_dies {
            true => (server, client),
            false => (client, server),
        };
        lives.write_all(b"x")?;
        (&dies).read_exact(&mut [0])?;
        SockRef::from(&dies).set_linger(Some(Duration::ZERO))?;
        let begun = Instant::now();
        drop(dies);
        Ok(match lives.read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Some(begun.elapsed().as_secs_f64())
            }
            _ => None,
        })
    }
}

/// Sets timeouts, so that nothing blocks forever.
fn bound(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The resources of a process and its children.
fn held(process: u32) -> io::Result<Held> {
    let mut all = Held {
        descriptors: 0,
        resident_bytes: 0,
    };
    for id in family(process)? {
        // A child may have ended meanwhile.
        let Ok(descriptors) = fs::read_dir(format!("/proc/{id}/fd")) else {
            continue;
        };
        all.descriptors += descriptors.count();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        all.resident_bytes += kilobytes.unwrap_or(0) * 1024;
    }
    Ok(all)
}

/// The fields of /proc/PID/stat after the name; the first is the state.
fn statistics(process: &str) -> Option<Vec<u64>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    Some(
        fields
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect(),
    )
}

/// A process and its children.
fn family(process: u32) -> io::Result<Vec<String>> {
    let mut all = vec![process.to_string()];
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_child = name.starts_with(|c: char| c.is_ascii_digit())
            && statistics(&name).is_some_and(|fields| fields.get(1) == Some(&u64::from(process)));
        if is_child {
            all.push(name);
        }
    }
    Ok(all)
}

/// Processor seconds that a process and its children have used.
fn processor(process: u32) -> io::Result<f64> {
    let times =
        |id: &String| statistics(id).map(|fields| fields.iter().skip(11).take(2).sum::<u64>());
    let ticks: u64 = family(process)?.iter().filter_map(times).sum();
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}
