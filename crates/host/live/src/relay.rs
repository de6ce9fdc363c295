//! `airlane relay`: split connections. A TCP connection that comes in ends here, and another one goes on to
//! where it leads; the bytes pass from the one to the other.
//!
//! ```text
//! client ──── first leg ────► relay: pool ──── second leg ────► server
//! ```
//!
//! It is what the simulator has as `relay = { kind = "split" }` (Balakrishnan et al. 1997, SPLIT), over the kernel's
//! sockets: each leg has the round trip, the losses and the congestion window of its own path, and the source hears
//! acknowledgments of what the receiver does not have yet.
//!
//! * Bytes pass by splice(2), through a pipe that a direction has only while something waits in it. One direction
//!   of one connection holds at most the pool, so the relay holds at most twice that for each connection that it
//!   may have; what the kernel's socket buffers hold comes on top, and can be limited, too.
//! * What cannot be passed on is not read, so the window of one leg closes when the other one stands still.
//! * The end of one direction is passed on after its last byte, and the other direction goes on.
//! * A reset, or whatever else kills one leg, resets the other at once, and what was on its way is gone, as it
//!   would be without a relay.
//!
//! One thread, one epoll over everything. Left out: urgent data, and options that only the ends of one TCP
//! connection can agree on (Fast Open, MPTCP).

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

/// Version of the report; it grows when a program that reads it would have to change.
pub const SCHEMA: u32 = 2;

/// What a relay is told.
#[derive(Clone, Debug)]
pub struct RelayConfig {
    /// It takes connections here.
    pub listen: SocketAddr,
    /// Where they go on to.
    pub target: Target,
    /// One direction of one connection holds at most this much.
    pub pool: Size,
    /// It has at most so many connections at a time; those beyond are reset.
    pub connections: usize,
    /// The kernel's buffers of each socket are this large. None: as large as the system finds right.
    pub socket_buffer: Option<Size>,
    /// After this long without an answer a target is given up.
    pub connect_timeout: Duration,
    /// A connection that has passed nothing on for so long is ended. Where all places are taken, one that has been idle
    /// for [`YIELDS_AFTER`] makes room for whoever comes, the one that has been so longest.
    pub idle_timeout: Duration,
    /// Whether clients with targets of their own reach this machine's addresses, too: services that trust
    /// local callers.
    pub local_targets: bool,
}

/// How long a connection is idle before it makes room for another where all places are taken.
pub const YIELDS_AFTER: Duration = Duration::from_secs(60);

/// Where connections go on to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// All to one address.
    Address(SocketAddr),
    /// Each to where its client wanted to go: routes or a TPROXY rule bring it here, with that address on it.
    Original {
        /// Whether the server sees the address of the client instead of the relay's. Then routes or rules have to
        /// bring its answers here, too.
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

/// Why a relay does not start, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// It would call itself.
    #[error(
        "the relay would pass on to itself: {target} is where it listens, at {listen}; write another target"
    )]
    Loop {
        /// Where it passes on to.
        target: SocketAddr,
        /// Where it listens.
        listen: SocketAddr,
    },
    /// There is no room.
    #[error("a {0} of 0 passes nothing on; write at least 1")]
    Nothing(&'static str),
    /// Not so many descriptors.
    #[error(
        "{connections} connections take {needed} file descriptors, and the process may have {limit}; \
         allow fewer connections, or more descriptors (`ulimit -n`, LimitNOFILE= of the service manager)"
    )]
    Descriptors {
        /// Connections asked for.
        connections: usize,
        /// What they take.
        needed: u64,
        /// What there is.
        limit: u64,
    },
    /// The system refused something.
    #[error("cannot {what}: {source}{hint}", hint = hint(.source))]
    System {
        /// What was tried.
        what: String,
        /// What it said.
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

/// What a relay has counted since it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RelayReport {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Where it listened.
    pub listen: SocketAddr,
    /// Connections that it has now.
    pub open: u64,
    /// The most that it had at a time.
    pub most_open: u64,
    /// Connections that came.
    pub accepted: u64,
    /// Of these, reset at once because there were too many.
    pub refused: u64,
    /// Reset because the target was not there.
    pub unreachable: u64,
    /// Reset because the target was this machine, which is not for its clients, or the relay itself.
    pub local: u64,
    /// Reset because nothing had passed for long.
    pub idle: u64,
    /// Ended by both sides.
    pub closed: u64,
    /// Reset because the client had gone.
    pub reset_by_client: u64,
    /// Reset because the server had gone.
    pub reset_by_server: u64,
    /// Reset because the relay ended, or the system gave it nothing to pass bytes on with.
    pub cut: u64,
    /// Bytes passed on to servers.
    pub to_servers_bytes: u64,
    /// Bytes passed on to clients.
    pub to_clients_bytes: u64,
    /// Bytes that wait in the relay now.
    pub held_bytes: u64,
    /// The most that waited at a time.
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
