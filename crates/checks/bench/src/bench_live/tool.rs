//! The tools, and the overhead that each adds to a packet.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use airlane_link::{Codec, HeaderProfile, Layout};
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, ValueEnum};

/// A way to carry packets from one host to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Tool {
    /// No tunnel, over the impaired link.
    Plain,
    /// No tunnel, over a virtual cable of its own whose TCP sends packet by packet.
    Veth,
    /// One thread per end between TUN and UDP, with the kernel's offloads, no encryption.
    PlainTun,
    /// One thread per end between TUN and UDP, one packet per system call, without offloads or encryption.
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
    /// Another build of it, with keys.
    #[value(skip)]
    Other,
}

/// Header and tag of Airlane's sealed messages, bytes.
const MESSAGE: u32 = 24;
const ETHERNET: u32 = 14;
const IPV4_UDP: u32 = 20 + 8;

impl Tool {
    /// The tools on the clean link.
    pub const CLEAN: [Self; 7] = [
        Self::Veth,
        Self::PlainTun,
        Self::PlainTunPackets,
        Self::WireguardGo,
        Self::OpenVpn,
        Self::AirlaneNone,
        Self::Airlane,
    ];
    /// The tools on the impaired link by default. The criteria of the others need `Plain`, so it is first.
    pub const IMPAIRED: [Self; 3] = [Self::Plain, Self::WireguardGo, Self::Airlane];
    /// The tools that can be measured there. OpenVPN fragments packets by rules of its own, so a bound for one size
    /// of frame would not apply to it.
    pub const IMPAIRABLE: [Self; 6] = [
        Self::Plain,
        Self::PlainTunPackets,
        Self::WireguardGo,
        Self::AirlaneNone,
        Self::Airlane,
        Self::Other,
    ];

    /// Its name on the command line, in tables and in JSON.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(|| "other".to_owned(), |value| value.get_name().to_owned())
    }

    /// Whether it is the program under test, or another build of it.
    pub const fn is_airlane(self) -> bool {
        matches!(self, Self::Airlane | Self::AirlaneNone | Self::Other)
    }

    /// Bytes that a frame on the wire adds to an IP packet: the Ethernet header (without preamble and checksum, as
    /// the emulator counts) and the tool's maximum overhead. Padding is left out.
    pub const fn overhead(self) -> u32 {
        match self {
            Self::Plain | Self::Veth => ETHERNET,
            Self::PlainTunPackets | Self::PlainTun => ETHERNET + IPV4_UDP,
            // Type and receiver, counter; the tag.
            Self::WireguardGo => ETHERNET + IPV4_UDP + 16 + 16,
            // Opcode and peer, packet number; the tag.
            Self::OpenVpn => ETHERNET + IPV4_UDP + 8 + 16,
            // A frame header with sequence number and acknowledgment.
            Self::AirlaneNone => ETHERNET + IPV4_UDP + header(HeaderProfile::Live),
            // Such a frame inside a message.
            Self::Airlane | Self::Other => {
                ETHERNET + IPV4_UDP + header(HeaderProfile::Sealed) + MESSAGE
            }
        }
    }
}

/// A value on the command line: a tool, or a file with another build of Airlane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// One of the tools.
    Tool(Tool),
    /// The path of the build.
    Build(PathBuf),
}

/// Reads a [`Named`].
#[derive(Clone, Debug)]
pub struct NamedParser;

impl TypedValueParser for NamedParser {
    type Value = Named;

    fn parse_ref(
        &self,
        cmd: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Named, clap::Error> {
        match EnumValueParser::<Tool>::new().parse_ref(cmd, arg, value) {
            Ok(tool) => Ok(Named::Tool(tool)),
            // A path must contain a folder: otherwise a file of this name in the working directory could be taken for
            // a misspelt tool, or a program be looked up in PATH.
            Err(error) if Path::new(value).components().count() < 2 => Err(error),
            Err(_) if Path::new(value).is_file() => {
                let absolute = std::path::absolute(value);
                let path = absolute.map_err(|e| cmd.clone().error(ErrorKind::Io, e))?;
                Ok(Named::Build(path))
            }
            Err(_) => {
                let value = Path::new(value).display();
                let message = format!(
                    "--tools: {value} is no file; give names of tools, or the path of another build"
                );
                Err(cmd.clone().error(ErrorKind::ValueValidation, message))
            }
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values = Tool::value_variants().iter();
        Some(Box::new(values.filter_map(Tool::to_possible_value)))
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

    /// They are listed in docs/lab/bench-live.md.
    #[test]
    fn overheads_match_the_code() {
        assert_eq!(MESSAGE as usize, airlane_secure::OVERHEAD);
        assert_eq!(Tool::Airlane.overhead(), 14 + 63);
        assert_eq!(Tool::AirlaneNone.overhead(), 14 + 45);
    }

    #[test]
    fn a_path_names_another_build() {
        let read = |text: &str| {
            let command = Command::new("bench");
            NamedParser.parse_ref(&command, None, OsStr::new(text)).ok()
        };
        assert_eq!(read("airlane"), Some(Named::Tool(Tool::Airlane)));
        let manifest = std::path::absolute("src/lib.rs").map(Named::Build).ok();
        assert!(manifest.is_some() && read("src/lib.rs") == manifest);
        assert_eq!(read("other"), None);
        assert_eq!(read("Cargo.toml"), None);
        assert_eq!(read("src/no-such-file"), None);
    }
}
