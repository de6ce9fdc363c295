//! One tool, started between two hosts whose `wire` interfaces are connected.
//!
//! ```text
//!  left                                    right
//!  10.7.0.1 ── tool ── wire 192.0.2.1 ═══ 192.0.2.2 wire ── tool ── 10.7.0.2
//! ```

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use airlane_testkit::live::{LiveError, TUNNEL_SERVER, WIRE_SERVER};
use airlane_testkit::program::Program;
use airlane_testkit::traffic::echo;

use super::site::{BARE, BARE_SERVER, ToolSite, problem};
use super::tool::Tool;
use super::{airlane, openvpn, plain_tun, wireguard};

/// How long a tunnel may take to carry the first packet.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long to wait for a reply: more than a satellite needs.
const ROUND_TRIP: Duration = Duration::from_secs(1);

/// A running tool. Dropping it ends its programs.
#[derive(Debug)]
pub struct Tunnel {
    programs: Vec<Program>,
    /// The left host's address, as the right one reaches it through the tool.
    pub server: IpAddr,
    /// Largest IP packet, bytes.
    pub mtu: u32,
}

impl Tunnel {
    /// Starts the tool at both ends and waits until a packet gets through.
    ///
    /// # Errors
    /// If a program does not start or ends early, or no packet gets through.
    pub fn start(tool: Tool, site: &ToolSite<'_>) -> Result<Self, LiveError> {
        let (programs, interface) = match tool {
            Tool::Plain => (Vec::new(), "wire".to_owned()),
            Tool::Veth => (Vec::new(), BARE.to_owned()),
            Tool::PlainTunPackets => plain_tun::start(site, false)?,
            Tool::PlainTun => plain_tun::start(site, true)?,
            Tool::WireguardGo => wireguard::start(site)?,
            Tool::OpenVpn => openvpn::start(site)?,
            Tool::AirlaneNone | Tool::Airlane | Tool::Other => airlane::start(site, tool)?,
        };
        let server = match tool {
            Tool::Plain => WIRE_SERVER,
            Tool::Veth => BARE_SERVER,
            _ => TUNNEL_SERVER,
        };
        let mut tunnel = Self {
            programs,
            server,
            mtu: 0,
        };
        tunnel.wait_for_a_packet(site)?;
        let shown = site.hosts[0].ip(&["-o", "link", "show", "dev", &interface])?;
        tunnel.mtu = mtu(&shown).ok_or_else(|| problem(tool, "its interface has no MTU"))?;
        Ok(tunnel)
    }

    fn wait_for_a_packet(&mut self, site: &ToolSite<'_>) -> Result<(), LiveError> {
        let deadline = Instant::now() + PATIENCE;
        let mut last = io::Error::from(io::ErrorKind::TimedOut);
        while Instant::now() < deadline {
            self.check()?;
            let server = self.server;
            match site.hosts[1].run(|| echo(server, 1, Duration::ZERO, ROUND_TRIP))? {
                Ok(echoes) if echoes.lost == 0 => return Ok(()),
                Ok(_) => {}
                // There is no route yet.
                Err(e) => {
                    last = e;
                    std::thread::sleep(PATIENCE / 500);
                }
            }
        }
        let gave_up = |p: &Program| p.failed(format!("carries nothing after {PATIENCE:?}"));
        let program = self.programs.first().map(gave_up);
        Err(program.unwrap_or(LiveError::Traffic(last)))
    }

    /// Checks that its programs are running.
    ///
    /// # Errors
    /// If one has ended; includes its output.
    pub fn check(&mut self) -> Result<(), LiveError> {
        self.programs.iter_mut().try_for_each(Program::check)
    }

    /// Processor time that its programs have used, s; zero if it has none.
    ///
    /// # Errors
    /// If one of them has ended.
    pub fn cpu_s(&mut self) -> Result<f64, LiveError> {
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        let mut ticks = 0;
        for program in &mut self.programs {
            let path = PathBuf::from(format!("/proc/{}/stat", program.id()));
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(|source| LiveError::File { path, source })?;
            ticks += cpu_ticks(&text).unwrap_or(0);
        }
        Ok(ticks as f64 / ticks_per_s)
    }
}

/// User and system time of all threads, from the fields after the program's name, which may itself contain blanks and
/// parentheses (proc(5)).
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let mut time = || times.next()?.parse::<u64>().ok();
    Some(time()? + time()?)
}

fn mtu(shown: &str) -> Option<u32> {
    let mut words = shown.split_ascii_whitespace();
    words.find(|word| *word == "mtu")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_user_and_system_time_whatever_the_name() {
        let stat = "7 (a b) (c) S 1 7 7 0 -1 4194304 100 0 0 0 31 11 5 6 20 0 4 0 9";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn the_mtu_is_read_from_ip_link_output() {
        let shown = "3: wire@if2: <BROADCAST,UP> mtu 1420 qdisc noqueue state UP";
        assert_eq!(mtu(shown), Some(1420));
        assert_eq!(mtu("3: wire mtu"), None);
    }
}
