//! What is measured, and what each puts around a packet.

use std::fmt;

use airlane_link::{Codec, HeaderProfile, Layout};
use clap::ValueEnum;

/// A way from one host to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Tool {
    /// No tunnel, over the impaired link.
    Plain,
    /// No tunnel, over a virtual cable of its own whose TCP sends packet by packet.
    Veth,
    /// One thread an end between TUN and UDP, with the kernel's offloads, no encryption.
    PlainTun,
    /// One thread an end between TUN and UDP, a packet with each call, without offloads or encryption.
    PlainTunPackets,
    /// WireGuard in user space, in Go.
    WireguardGo,
    /// OpenVPN over UDP with AES-256-GCM, in user space.
    #[value(name = "openvpn")]
    OpenVpn,
    /// Airlane with security "none".
    AirlaneNone,
    /// Airlane with keys.
    Airlane,
}

/// Header and tag of Airlane's secure messages, B.
const MESSAGE: u32 = 24;
const ETHERNET: u32 = 14;
const IPV4_UDP: u32 = 20 + 8;

impl Tool {
    /// What is measured on the clean link.
    pub const CLEAN: [Self; 7] = [
        Self::Veth,
        Self::PlainTun,
        Self::PlainTunPackets,
        Self::WireguardGo,
        Self::OpenVpn,
        Self::AirlaneNone,
        Self::Airlane,
    ];
    /// What is measured over the impaired link, unless said otherwise. The criteria of the others need
    /// `Plain`, which is why it is first.
    pub const IMPAIRED: [Self; 3] = [Self::Plain, Self::WireguardGo, Self::Airlane];
    /// What can be measured there: OpenVPN cuts packets by rules of its own, so a ceiling of one kind
    /// of frame would not be its ceiling.
    pub const IMPAIRABLE: [Self; 5] = [
        Self::Plain,
        Self::PlainTunPackets,
        Self::WireguardGo,
        Self::AirlaneNone,
        Self::Airlane,
    ];

    /// Its name on the command line, in tables and in JSON.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it is the program under test.
    pub const fn is_airlane(self) -> bool {
        matches!(self, Self::Airlane | Self::AirlaneNone)
    }

    /// Bytes of a frame on the wire around an IP packet: Ethernet's header (without preamble and
    /// checksum, as the emulator counts) and what the tool adds at most. Padding is left out.
    pub const fn overhead(self) -> u32 {
        match self {
            Self::Plain | Self::Veth => ETHERNET,
            Self::PlainTunPackets | Self::PlainTun => ETHERNET + IPV4_UDP,
            // Type and receiver, counter; the tag.
            Self::WireguardGo => ETHERNET + IPV4_UDP + 16 + 16,
            // Opcode and peer, packet number; the tag.
            Self::OpenVpn => ETHERNET + IPV4_UDP + 8 + 16,
            // A frame's header with sequence number and acknowledgment.
            Self::AirlaneNone => ETHERNET + IPV4_UDP + header(HeaderProfile::Live),
            // Such a frame inside a message.
            Self::Airlane => ETHERNET + IPV4_UDP + header(HeaderProfile::Sealed) + MESSAGE,
        }
    }
}

const fn header(profile: HeaderProfile) -> u32 {
    Codec::new(profile).header_len(&Layout::SEQ_ACK) as u32
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which docs/bench-live.md has in its table.
    #[test]
    fn overheads_are_those_of_the_code() {
        assert_eq!(MESSAGE as usize, airlane_secure::OVERHEAD);
        assert_eq!(Tool::Airlane.overhead(), 14 + 63);
        assert_eq!(Tool::AirlaneNone.overhead(), 14 + 45);
    }
}
