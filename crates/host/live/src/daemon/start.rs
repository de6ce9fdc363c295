//! Starts a node from a file.

use std::cell::RefCell;
use std::rc::Rc;

use airlane_base::Instant;
use airlane_node::{Node, Quiet, Start};
use airlane_secure::PeerAddress;

use super::Daemon;
use super::suspend::SuspendDetector;
use super::up_error::UpError;
use super::ways::{RESTORE, mark};
use crate::clock;
use crate::config::LiveConfig;
use crate::control::Server;
use crate::device::DeviceError;
use crate::metrics::exporter::Exporter;
use crate::netlink::Netlink;
use crate::offload::join::Joiner;
use crate::record::Recorder;
use crate::security::{Security, random, secrets};
use crate::tun::{READ_MAX, Tun};
use crate::underlay::{PathFacts, Underlay};

impl Daemon {
    /// Opens the interface, the underlay and the control socket of a file.
    ///
    /// # Errors
    /// If the operating system refuses something, or the path to the peer is too narrow; a missing route is
    /// not an error. Everything that was opened is closed again.
    pub fn start(config: &LiveConfig) -> Result<Self, UpError> {
        if !matches!(config.link.security, Some(Security::Keys(_))) {
            tracing::warn!(
                "security = \"none\": frames are neither encrypted nor authenticated; use it on \
                 links that you trust"
            );
        }
        for unreached in config.link.unreached() {
            tracing::warn!("{unreached}");
        }
        let control = Server::bind(&config.socket(), config.control.group.as_deref())?;
        let mut underlay = Underlay::open_early(clock::now(), &config.link.underlay)?;
        let tun = Tun::create(&config.tun.name)?;
        underlay.go_past(tun.index(), mark(config))?;
        let mut daemon = Self::with_devices(config, tun, underlay)?;
        daemon.control = Some(control);
        daemon.exporter = match config.metrics {
            Some(address) => Some(Exporter::start(address, config.socket())?),
            None => None,
        };
        daemon
            .tun
            .configure(daemon.node.mtu(), &config.tun.addresses, &daemon.routes())?;
        daemon.mention_filter(clock::now());
        for peer in config.peers() {
            if let Some(address) = peer.fixed_address() {
                daemon.refuse_loop(address)?;
            }
        }
        tracing::info!(
            node = daemon.node.name(),
            tun = daemon.tun.name(),
            mtu = daemon.node.mtu(),
            rate = config.link.said(config.link.rate),
            rate_limit = ?config.link.rate_limit,
            listen = %daemon.underlay.local()?,
            "up"
        );
        for (peer, path_mtu) in daemon.node.peers() {
            tracing::info!(%peer, path_mtu, "calling the peer, or waiting for its call");
        }
        if let Some(exporter) = &daemon.exporter {
            tracing::info!(address = %exporter.address(), "metrics can be scraped");
        }
        Ok(daemon)
    }

    /// Creates a node over existing devices: in tests a socket pair and the loopback. Addresses, routes and
    /// the control socket are not touched.
    ///
    /// # Errors
    /// If a path leaves too little for a packet, or the service table is invalid.
    pub fn with_devices(
        config: &LiveConfig,
        tun: Tun,
        underlay: Underlay,
    ) -> Result<Self, UpError> {
        let now = clock::now();
        let secrets = secrets(config)?;
        let node = Node::new(
            now,
            Start {
                config,
                underlay: underlay.facts()?,
                paths: &paths(config, &underlay),
                secrets: secrets.as_ref(),
                seed: seed()?,
            },
        )?;
        let suspend = node
            .has_keys()
            .then(|| SuspendDetector::new(now, clock::awake()));
        Ok(Self {
            node,
            control: None,
            suspend,
            exporter: None,
            resolver: None,
            recorder: Rc::new(RefCell::new(Recorder::default())),
            received: Some(Box::new(underlay.room())),
            restore: now + RESTORE,
            restore_said: Quiet::NEW,
            is_down: false,
            filter_said: Quiet::NEW,
            unsent_said: Quiet::NEW,
            read: vec![0; READ_MAX].into_boxed_slice(),
            joiner: Joiner::new(tun.offloads()),
            tun,
            underlay,
        })
    }

    /// Limits the memory of all packets, bytes; the default is 512 MB.
    pub const fn set_most_memory(&mut self, bytes: usize) {
        self.node.set_most_memory(bytes);
    }

    /// Checks that datagrams to an address are routed neither into the tunnel that they carry nor to this end.
    pub(super) fn refuse_loop(&self, address: PeerAddress) -> Result<(), UpError> {
        self.underlay.refuse_self(address)?;
        let Some(peer) = address.ip() else {
            return Ok(());
        };
        let mark = self.underlay.mark();
        let way = Netlink::open().and_then(|mut netlink| netlink.way_of(peer, mark));
        // A missing route does not lead into the tunnel.
        if way.is_ok_and(|way| Some(way) == self.tun.index()) {
            return Err(UpError::Loop {
                peer,
                tun: self.tun.name().to_owned(),
            });
        }
        Ok(())
    }

    /// Applies a changed file, unless this is a `dry_run`. Returns the changes.
    pub(super) fn take_file(
        &mut self,
        now: Instant,
        file: &LiveConfig,
        dry_run: bool,
    ) -> Result<Vec<String>, String> {
        let failed = |error: UpError| error.to_string();
        let new = file.resolve();
        self.node
            .check_reload(&new)
            .map_err(|error| error.to_string())?;
        let secrets = secrets(&new).map_err(|error| error.to_string())?;
        for peer in new.peers() {
            if self.node.is_elsewhere(&peer)
                && let Some(address) = peer.fixed_address()
            {
                self.refuse_loop(address).map_err(failed)?;
            }
        }
        // Frames already queued for peers that are removed are still sent.
        self.transmit(now);
        let (routes, paths) = (self.node.config().routes(), paths(&new, &self.underlay));
        let changes = self
            .node
            .reload(now, &new, secrets.as_ref(), &paths, dry_run);
        let changes = changes.map_err(|error| error.to_string())?;
        if !dry_run {
            self.change_routes(&routes);
            self.restore = now;
        }
        Ok(changes)
    }
}

/// The kernel's knowledge of the paths to the peers of a file, in its order.
fn paths(config: &LiveConfig, underlay: &Underlay) -> Vec<PathFacts> {
    let peers = config.peers().into_iter();
    let paths = peers.map(|peer| {
        underlay.path(peer.fixed_address()).unwrap_or_else(|error| {
            let (peer, at) = (&peer.name, peer.address.as_ref().map(ToString::to_string));
            tracing::warn!(peer, at, %error, "there is no way to the peer yet; retrying");
            PathFacts::UNKNOWN
        })
    });
    paths.collect()
}

/// Draws the seed of a node's random numbers.
fn seed() -> Result<[u8; 32], DeviceError> {
    random().map_err(|error| DeviceError::new("random numbers", "draw a seed", error))
}
