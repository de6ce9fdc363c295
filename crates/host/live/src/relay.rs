//! `airlane relay`: split connections. The relay terminates each TCP connection and opens another one to its
//! target; it passes the bytes from one to the other.
//!
//! ```text
//! client ──── first leg ────► relay: pool ──── second leg ────► server
//! ```
//!
//! This is `relay = { kind = "split" }` of the simulator (Balakrishnan et al. 1997, SPLIT) with the kernel's
//! sockets: each leg has the round trip, the losses and the congestion window of its own path, and the source
//! receives acknowledgments of bytes that the receiver does not have yet.
//!
//! * Bytes pass by splice(2), through a pipe that a direction has only while bytes wait in it. One direction of
//!   one connection holds at most the pool, so the relay holds at most twice the pool for each allowed
//!   connection. The kernel's socket buffers come on top, and can be limited, too.
//! * Bytes that cannot be passed on are not read, so the window of one leg closes when the other leg stalls.
//! * The FIN of one direction is passed on after its last byte, and the other direction goes on.
//! * A reset, or any other error of one leg, resets the other at once. Bytes in flight are lost, as they would
//!   be without a relay.
//!
//! One thread, one epoll over everything. Left out: urgent data, and options that only the ends of one TCP
//! connection can negotiate (Fast Open, MPTCP).

mod connection;
mod open;
mod pipe;
mod run;

use std::net::SocketAddr;
use std::time::Duration;
use std::{fmt, io};

use airlane_base::Size;
use serde::Serialize;

pub use run::Relay;

/// Version of the report; it increases with every incompatible change.
pub const SCHEMA: u32 = 2;

/// Settings of a relay.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// Address where it listens.
    pub listen: SocketAddr,
    /// Target of the connections.
    pub target: Target,
    /// Limit of bytes held for one direction of one connection.
    pub pool: Size,
    /// Limit of connections at a time; further ones are reset.
    pub connections: usize,
    /// Size of the kernel's socket buffers; `None` for the system's default.
    pub socket_buffer: Option<Size>,
    /// Time after which an unanswered connection attempt is given up.
    pub connect_timeout: Duration,
    /// Time after which an idle connection is closed. When all connections are in use, the one that has been
    /// idle longest, and for at least [`YIELDS_AFTER`], makes room for a new one.
    pub idle_timeout: Duration,
    /// Whether clients that choose their own targets may reach addresses of this machine, where services
    /// trust local callers.
    pub local_targets: bool,
}

/// Idle time after which a connection makes room for another when all are in use.
pub const YIELDS_AFTER: Duration = Duration::from_secs(60);

/// Target of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One address for all.
    Address(SocketAddr),
    /// The client's original destination, which routes or a TPROXY rule preserve.
    Original {
        /// Whether the server sees the client's address instead of the relay's. Routes or rules must then
        /// lead its answers to this machine.
        keep_source: bool,
    },
}

impl Target {
    const fn is_transparent(self) -> bool {
        matches!(self, Self::Original { .. })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Original { keep_source: true } => {
                f.write_str("as its client wants, with its address")
            }
            Self::Original { .. } => f.write_str("as its client wants"),
        }
    }
}

/// Why a relay failed to start or to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// It would connect to itself.
    #[error(
        "the relay would pass on to itself: {target} is where it listens, at {listen}; write another target"
    )]
    Loop {
        /// The target.
        target: SocketAddr,
        /// The address where it listens.
        listen: SocketAddr,
    },
    /// A limit is 0.
    #[error("a {0} of 0 passes nothing on; write at least 1")]
    Nothing(&'static str),
    /// There are too few file descriptors.
    #[error(
        "{connections} connections take {needed} file descriptors, and the process may have {limit}; \
         allow fewer connections, or more descriptors (`ulimit -n`, LimitNOFILE= of the service manager)"
    )]
    Descriptors {
        /// Requested connections.
        connections: usize,
        /// Descriptors that they need.
        needed: u64,
        /// Descriptors that the process may have.
        limit: u64,
    },
    /// The system refused an operation.
    #[error("cannot {what}: {source}{hint}", hint = hint(.source))]
    System {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            " (connections of others and ports below 1024 are for root, or CAP_NET_ADMIN and CAP_NET_BIND_SERVICE)"
        }
        Some(libc::EADDRINUSE) => " (another program listens there: `ss -ltnp` says which)",
        Some(libc::EADDRNOTAVAIL) => " (`ip address` lists the addresses of this machine)",
        _ => "",
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> RelayError {
    let what = what.into();
    move |source| RelayError::System { what, source }
}

/// Counters of a relay since its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RelayReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Address where it listened.
    pub listen: SocketAddr,
    /// Open connections.
    pub open: u64,
    /// Most open connections at a time.
    pub most_open: u64,
    /// Accepted connections.
    pub accepted: u64,
    /// Of these, reset at once because of the limit.
    pub refused: u64,
    /// Reset because the target was unreachable.
    pub unreachable: u64,
    /// Reset because the target was this machine, which clients may not reach, or the relay itself.
    pub local: u64,
    /// Reset because they were idle.
    pub idle: u64,
    /// Closed by both sides.
    pub closed: u64,
    /// Reset by the client.
    pub reset_by_client: u64,
    /// Reset by the server.
    pub reset_by_server: u64,
    /// Reset because the relay ended, or the system had no pipe for it.
    pub cut: u64,
    /// Bytes passed on to servers.
    pub to_servers_bytes: u64,
    /// Bytes passed on to clients.
    pub to_clients_bytes: u64,
    /// Bytes held in the relay now.
    pub held_bytes: u64,
    /// Most bytes held at a time.
    pub most_held_bytes: u64,
}

impl RelayReport {
    const fn new(listen: SocketAddr) -> Self {
        Self {
            schema: SCHEMA,
            listen,
            open: 0,
            most_open: 0,
            accepted: 0,
            refused: 0,
            unreachable: 0,
            local: 0,
            idle: 0,
            closed: 0,
            reset_by_client: 0,
            reset_by_server: 0,
            cut: 0,
            to_servers_bytes: 0,
            to_clients_bytes: 0,
            held_bytes: 0,
            most_held_bytes: 0,
        }
    }
}

impl fmt::Display for RelayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = Size::from_bytes;
        writeln!(
            f,
            "connections on {}: {} ({} at a time), of which\n  ended by both sides  {}\n  \
             reset by the client  {}\n  reset by the server  {}\n  target not there     {}\n  \
             target is local      {}\n  idle too long        {}\n  too many             {}\n  \
             cut by the relay     {}",
            self.listen,
            self.accepted,
            self.most_open,
            self.closed,
            self.reset_by_client,
            self.reset_by_server,
            self.unreachable,
            self.local,
            self.idle,
            self.refused,
            self.cut,
        )?;
        writeln!(
            f,
            "passed on to servers {}, to clients {}; held at most {}",
            size(self.to_servers_bytes),
            size(self.to_clients_bytes),
            size(self.most_held_bytes)
        )
    }
}
