//! The traffic on the impaired link.

use airlane_probe::{ClientConfig, ServerPorts};
use clap::ValueEnum;

/// Which ports and marks tell the applications apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TrafficKind {
    /// A file on TCP port 5001, pages on 80, and voice on UDP port 4000, marked EF.
    #[default]
    KnownPorts,
    /// File and pages on TCP port 443, voice on UDP port 37004 without a mark, and a download on UDP port 443, as
    /// with QUIC.
    OnePort,
}

impl TrafficKind {
    /// The ports of the server.
    pub fn ports(self) -> ServerPorts {
        let known = ServerPorts::default();
        match self {
            Self::KnownPorts => known,
            Self::OnePort => ServerPorts {
                file: 443,
                pages: 443,
                voice: 37_004,
                ..known
            },
        }
    }

    /// Adapts a client's configuration, which assumes known ports.
    #[must_use]
    pub fn of(self, config: ClientConfig) -> ClientConfig {
        match self {
            Self::KnownPorts => config,
            Self::OnePort => ClientConfig {
                marked: false,
                download: true,
                ..config
            },
        }
    }
}
