//! From a file to a running node, and what can be in the way.

use std::net::{IpAddr, SocketAddr};

use airlane_base::Duration;
use airlane_link::config::{ConfigError, HandedOver};
use airlane_link::session::{Session, SessionConfig};
use airlane_link::wire::LIVE_HEADER_MAX;
use airlane_link::{HeaderProfile, PortConfig};
use airlane_secure::PeersError;

use super::Node;
use super::drops::Drops;
use super::guard::Guard;
use super::transmit::Transmit;
use crate::clock;
use crate::config::{IPV4_MIN_MTU, IPV6_MIN_MTU, LiveConfig, Mtu, UnderlayConfig};
use crate::control::Server;
use crate::device::DeviceError;
use crate::journal::JournaledPort;
use crate::metrics::exporter::Exporter;
use crate::netlink::Netlink;
use crate::offload::join::Joiner;
use crate::packet::Pool;
use crate::record::Recorder;
use crate::security::{KeyFileError, NoSecurity, Security};
use crate::tun::{READ_MAX, Tun};
use crate::underlay::{Received, Underlay};

/// How much lost time the shaper makes up for: a thread that wakes up late sends a few frames in a
/// row instead of losing their turn.
const BURST: Duration = Duration::from_millis(1);
/// A hello a second, unless that is more than a hundredth of the link.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// Keepalives in a row whose loss means that the link is disconnected (the specification, 10.5),
/// if nothing else was heard either.
const LOST_KEEPALIVES: u64 = 3;
/// Bytes of a long hello with all that is below it.
const HELLO: usize = 1000;
/// Smallest buffer: a hello with its table fits in any case.
const BUFFER: usize = 2048;
/// Free buffers kept, 8 MB of the usual size.
const BUFFERS: usize = 4096;

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpError {
    /// The operating system refused something.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no private key to start with.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The peer's key cannot be a peer's.
    #[error(transparent)]
    Peer(#[from] PeersError),
    /// The service table does not work.
    #[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Config {
        /// What is wrong with it.
        problems: Vec<ConfigError>,
    },
    /// Too little is left of the path for a packet.
    #[error(
        "the path to {peer} takes datagrams of {path_mtu} B, which leaves {left} B for a packet; \
         {need} B are needed{}", if *.need == IPV6_MIN_MTU { " by IPv6 (without IPv6 addresses and routes under [tun], less would do)" } else { "" }
    )]
    PathTooNarrow {
        /// The peer.
        peer: String,
        /// What the path takes.
        path_mtu: usize,
        /// What is left.
        left: usize,
        /// What is needed.
        need: usize,
    },
    /// Frames would be sent into the tunnel that they carry.
    #[error(
        "packets to the peer {peer} would go into {tun} itself: an address or route under [tun] \
         covers the peer; give the peer a more specific route outside, or leave that one out"
    )]
    Loop {
        /// The peer.
        peer: IpAddr,
        /// The interface.
        tun: String,
    },
}

impl Node {
    /// Opens everything that the file asks for: interface, underlay and control socket.
    ///
    /// # Errors
    /// If the operating system refuses something, or the path to the peer is of no use. Nothing is
    /// left behind then.
    pub fn start(config: &LiveConfig) -> Result<Self, UpError> {
        let UnderlayConfig::Udp { listen, peer } = config.link.underlay;
        if !matches!(config.link.security, Some(Security::Keys(_))) {
            tracing::warn!(
                "security = \"none\": frames are neither encrypted nor authenticated; use it on \
                 links that you trust"
            );
        }
        let control = Server::bind(&config.socket())?;
        let underlay = Underlay::bind(listen, peer)?;
        let tun = Tun::create(&config.tun.name)?;
        let mut node = Self::with_devices(config, tun, underlay)?;
        node.control = Some(control);
        node.exporter = match config.metrics {
            Some(address) => Some(Exporter::start(address, config.socket())?),
            None => None,
        };
        node.tun
            .configure(node.mtu, &config.tun.addresses, &config.tun.routes)?;
        if let Some(peer) = peer {
            node.refuse_loop(peer.ip())?;
        }
        tracing::info!(
            node = node.name,
            tun = node.tun.name(),
            mtu = node.mtu,
            path_mtu = node.path_mtu,
            rate = %config.link.rate,
            %listen,
            peer = peer_name(peer),
            "up"
        );
        if let Some(exporter) = &node.exporter {
            tracing::info!(address = %exporter.address(), "metrics can be scraped");
        }
        Ok(node)
    }

    /// A node over devices that exist already: in tests a socket pair and the loopback. Addresses,
    /// routes and the control socket are not touched.
    ///
    /// # Errors
    /// If there is no path to the peer, or the service table does not work.
    pub fn with_devices(
        config: &LiveConfig,
        tun: Tun,
        underlay: Underlay,
    ) -> Result<Self, UpError> {
        let link = &config.link;
        let path_mtu = underlay.path_mtu()?;
        let now = clock::now();
        let guard = match &link.security {
            Some(Security::Keys(keys)) => Some(Guard::new(now, keys, underlay.peer())?),
            Some(Security::Word(NoSecurity::None)) | None => None,
        };
        let sealing = guard.as_ref().map_or(0, |_| Guard::OVERHEAD);
        let left = path_mtu.saturating_sub(underlay.ip_overhead() + LIVE_HEADER_MAX + sealing);
        let v6 = config.tun.addresses.iter().chain(&config.tun.routes);
        let v6 = v6.into_iter().any(|cidr| cidr.address.is_ipv6());
        let least = if v6 { IPV6_MIN_MTU } else { IPV4_MIN_MTU };
        let mtu = match config.tun.mtu {
            // An interface takes no more than this, whatever the loopback offers.
            Mtu::Auto => left.min(65_000),
            Mtu::Fixed(size) => size.as_bytes() as usize,
        };
        if mtu < least {
            return Err(UpError::PathTooNarrow {
                peer: peer_name(underlay.peer()),
                path_mtu,
                left,
                need: least,
            });
        }
        if mtu > left {
            tracing::warn!(
                mtu,
                left,
                "tun.mtu is more than the path takes: large frames travel in fragments"
            );
        }
        let port = JournaledPort::new(PortConfig {
            header: HeaderProfile::Live,
            rate: link.rate,
            delay: link.delay,
            max_payload: mtu,
            frame_overhead: underlay.wire_overhead() + sealing,
            burst: BURST,
            handed_over: HandedOver::usual(HeaderProfile::Live),
            pacing: None,
            rates: link.rates(),
            rate_limit: link.rate_limit,
            scheduler: link.scheduler.clone(),
            services: link.services.clone(),
            classes: link.classes.rules(&link.services),
        })
        .map_err(|problems| UpError::Config { problems })?;
        let keepalive = (link.rate.transmission_time(HELLO) * 100).max(KEEPALIVE);
        let mut session = Session::new(
            now,
            SessionConfig {
                epoch: random_epoch()?,
                table: port.service_table(),
                peer_table: port.peer_service_table(),
                keepalive,
                // Half an interval for the last of them to be late.
                silence: keepalive * LOST_KEEPALIVES + keepalive / 2,
            },
        );
        session.set_table(
            now,
            port.service_table(),
            &port.peer_service_table(),
            port.own_services(),
        );
        let buffer = (mtu.max(left) + LIVE_HEADER_MAX + sealing).max(BUFFER);
        Ok(Self {
            name: config.name.clone(),
            config: config.resolve(),
            listen: underlay.local()?,
            control: None,
            exporter: None,
            guard,
            session,
            pool: Pool::new(buffer, BUFFERS * BUFFER / buffer),
            transmit: Transmit::new(buffer),
            received: Received::new(),
            read: vec![0; READ_MAX].into_boxed_slice(),
            joiner: Joiner::new(tun.offloads()),
            drops: Drops::default(),
            recorder: Recorder::default(),
            rate_bps: link.rate.as_bps(),
            outer: link.outer,
            started: now,
            session_since: None,
            sessions: 0,
            refused: None,
            disconnections: 0,
            disconnected_since: None,
            auto_mtu: config.tun.mtu == Mtu::Auto,
            mtu,
            mtu_range: (least, mtu),
            path_mtu,
            next_mtu_check: now + super::MTU_CHECK,
            packets_read: 0,
            read_bytes: 0,
            packets_written: 0,
            written_bytes: 0,
            mss_clamped: 0,
            datagrams_received: 0,
            received_bytes: 0,
            port,
            tun,
            underlay,
        })
    }

    /// Makes sure that frames do not go into the tunnel that they carry.
    fn refuse_loop(&self, peer: IpAddr) -> Result<(), UpError> {
        let way = Netlink::open()
            .and_then(|mut netlink| netlink.way_to(peer))
            .map_err(|source| {
                DeviceError::new(&peer.to_string(), "look up the way to the peer", source)
            })?;
        if Some(way) == self.tun.index() {
            return Err(UpError::Loop {
                peer,
                tun: self.tun.name().to_owned(),
            });
        }
        Ok(())
    }
}

/// The peer for the log.
pub(super) fn peer_name(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "whoever has its key".to_owned(), |peer| peer.to_string())
}

/// What tells this run of the process from every other.
fn random_epoch() -> Result<u64, DeviceError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| DeviceError::new("random numbers", "draw an epoch", error))?;
    Ok(u64::from_ne_bytes(bytes))
}
