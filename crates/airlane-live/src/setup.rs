//! Both files of a link, and the keys for them, out of four facts: where each end reaches the other, which
//! network is inside, and which port is used.
//!
//! The files say nothing else: what a link does is found out by itself. Each names its keys by names of files
//! beside it, so that a folder can be moved as it is.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use airlane_base::Rate;
use airlane_base::config::RefusedFile;
use airlane_secure::{PresharedKey, PrivateKey, PublicKey};
use zeroize::Zeroizing;

use crate::config::{LiveConfig, PeerEndpoint};
use crate::netlink::Cidr;
use crate::security::random;

/// What has to be known of a link.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Both interfaces are called so; the ends so with `-1` and `-2`.
    pub name: String,
    /// Address or host name at which the other end reaches the first, and the first the other. None: it
    /// cannot, so that this one calls.
    pub reached_at: [Option<String>; 2],
    /// The ends have the first two addresses of this network inside.
    pub network: Cidr,
    /// The UDP port of both.
    pub port: u16,
    /// The rate of the link below, where it shall not be found out.
    pub rate: Option<Rate>,
    /// Whether the ends have a pre-shared key beside their own.
    pub preshared: bool,
}

/// One end, ready to be written.
#[derive(Debug)]
pub struct PlannedEnd {
    /// Its name.
    pub name: String,
    /// Its file.
    pub text: String,
    /// What the other end knows it by.
    pub public: PublicKey,
    /// Its address inside.
    pub inside: Cidr,
    /// Secret files that it names, and their texts.
    secrets: Vec<(String, Zeroizing<String>)>,
}

/// Why there are no files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Nobody reaches anybody.
    #[error(
        "neither end is reached by the other: give an address or host name of at least one of them"
    )]
    Unreachable,
    /// An address is none.
    #[error("{0}")]
    Address(String),
    /// The network has no room for two.
    #[error("{network} has no room for both ends: a network such as 10.7.0.0/24 or fd07::/64 has")]
    Network {
        /// The network.
        network: Cidr,
    },
    /// The way to an end would lead through the link.
    #[error(
        "{address} is inside {network}, which is reached through the link alone: choose another network inside"
    )]
    Inside {
        /// Where an end should be reached.
        address: IpAddr,
        /// The network.
        network: Cidr,
    },
    /// The plan makes no file that can be used.
    #[error(transparent)]
    File(#[from] RefusedFile),
    /// Files are there already.
    #[error("{} is there already, and its keys may be in use: --force replaces what is there", .0.display())]
    There(PathBuf),
    /// The system refused.
    #[error("cannot {what} {}: {source}", .path.display())]
    System {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl LinkPlan {
    /// Makes both ends, with keys that nobody else has.
    ///
    /// # Errors
    /// If a file could not be used.
    pub fn ends(&self) -> Result<[PlannedEnd; 2], SetupError> {
        let random = || {
            random().map_err(|source| SetupError::System {
                what: "read",
                path: PathBuf::from("/dev/urandom"),
                source,
            })
        };
        let inside = self.inside()?;
        let endpoints = [self.endpoint(0)?, self.endpoint(1)?];
        if endpoints.iter().all(Option::is_none) {
            return Err(SetupError::Unreachable);
        }
        let keys = [
            PrivateKey::generate(random()?),
            PrivateKey::generate(random()?),
        ];
        let preshared = match self.preshared {
            true => Some(PresharedKey::generate(random()?)),
            false => None,
        };
        let end = |at: usize| {
            let name = format!("{}-{}", self.name, at + 1);
            let peer = (keys[1 - at].public(), endpoints[1 - at].as_ref());
            let listen = self.listen(&endpoints);
            let text = self.text(&name, inside[at], listen, peer);
            // What is written can be used.
            airlane_base::config::load::<LiveConfig>(&text, &format!("{name}.toml"))?;
            let mut secrets = vec![(format!("{name}.key"), keys[at].to_text())];
            secrets.extend(
                preshared
                    .iter()
                    .map(|key| (format!("{name}.psk"), key.to_text())),
            );
            Ok::<_, SetupError>(PlannedEnd {
                text,
                public: keys[at].public(),
                inside: inside[at],
                secrets,
                name,
            })
        };
        Ok([end(0)?, end(1)?])
    }

    fn endpoint(&self, at: usize) -> Result<Option<PeerEndpoint>, SetupError> {
        let Some(text) = &self.reached_at[at] else {
            return Ok(None);
        };
        let (bare, port) = (text.trim_matches(['[', ']']), self.port);
        let endpoint = match bare.parse::<IpAddr>() {
            Ok(address) if self.network.covers(address) => {
                let network = self.network;
                return Err(SetupError::Inside { address, network });
            }
            Ok(address) => PeerEndpoint::Address(std::net::SocketAddr::new(address, port).into()),
            Err(_) => format!("{text}:{port}").parse().map_err(|_: String| {
                let such_as = "such as 192.0.2.7, 2001:db8::7 or gate.example.org";
                SetupError::Address(format!("\"{text}\" is no address or host name, {such_as}"))
            })?,
        };
        Ok(Some(endpoint))
    }

    /// Where both listen: for all addresses of either version, unless only those of IPv4 are in use.
    fn listen(&self, endpoints: &[Option<PeerEndpoint>; 2]) -> std::net::SocketAddr {
        let v4 = |endpoint: &PeerEndpoint| {
            let ip = endpoint.address().and_then(|address| address.ip());
            ip.is_some_and(|ip| ip.is_ipv4())
        };
        let any: IpAddr = match endpoints.iter().flatten().all(v4) {
            true => Ipv4Addr::UNSPECIFIED.into(),
            false => Ipv6Addr::UNSPECIFIED.into(),
        };
        (any, self.port).into()
    }

    fn inside(&self) -> Result<[Cidr; 2], SetupError> {
        let network = self.network;
        let bits: u8 = if network.address.is_ipv4() { 32 } else { 128 };
        // The first address is the network's, and the last of IPv4 everybody's.
        if bits.saturating_sub(network.prefix) < 2 {
            return Err(SetupError::Network { network });
        }
        let at = |host: u8| {
            let address = match network.network() {
                IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() + u32::from(host)).into(),
                IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() + u128::from(host)).into(),
            };
            Cidr {
                address,
                prefix: network.prefix,
            }
        };
        Ok([at(1), at(2)])
    }

    fn text(
        &self,
        name: &str,
        inside: Cidr,
        listen: std::net::SocketAddr,
        (key, endpoint): (PublicKey, Option<&PeerEndpoint>),
    ) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let mut text = String::new();
        // Writing to a string cannot fail.
        _ = writeln!(
            text,
            "# One end of a link, for `airlane up`; its keys are in files beside this one.\n\
             schema = 1\nname = {}\ntun = {{ name = {}, addresses = [\"{inside}\"] }}\n\n[link]",
            quoted(name),
            quoted(&self.name)
        );
        if let Some(rate) = self.rate {
            _ = writeln!(text, "rate = \"{rate}\"");
        }
        let peer = match endpoint {
            Some(endpoint) => format!(", peer = \"{endpoint}\""),
            None => String::new(),
        };
        _ = writeln!(
            text,
            "underlay = {{ kind = \"udp\", listen = \"{listen}\"{peer} }}"
        );
        let preshared = match self.preshared {
            true => format!(", preshared-key = {}", quoted(&format!("{name}.psk"))),
            false => String::new(),
        };
        _ = writeln!(
            text,
            "security = {{ private-key = {}, peer-key = \"{key}\"{preshared} }}",
            quoted(&format!("{name}.key"))
        );
        text
    }
}

impl PlannedEnd {
    /// Its files in a folder, its own first.
    pub fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let secrets = self.secrets.iter().map(|(name, _)| folder.join(name));
        let own = folder.join(format!("{}.toml", self.name));
        std::iter::once(own).chain(secrets).collect()
    }
}

/// Writes both ends' files into a folder, which is made if there is none, for their owner alone. What is there
/// stays, unless it is to be replaced: then nothing is written.
///
/// # Errors
/// If files are there, or the system refuses.
pub fn write(folder: &Path, ends: &[PlannedEnd; 2], replace: bool) -> Result<(), SetupError> {
    let files = || ends.iter().flat_map(|end| end.files(folder));
    if let Some(there) = files().find(|file| !replace && file.symlink_metadata().is_ok()) {
        return Err(SetupError::There(there));
    }
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| SetupError::System { what, path, source }
    };
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(failed("make", folder))?;
    for end in ends {
        let secrets = end.secrets.iter().map(|(_, text)| text.as_str());
        let texts = std::iter::once(end.text.as_str()).chain(secrets);
        for (path, text) in end.files(folder).iter().zip(texts) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("replace", path)(error));
                }
                _ => {}
            }
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            let line_end = if text.ends_with('\n') { "" } else { "\n" };
            let written = options.open(path).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.write_all(line_end.as_bytes())?;
                file.sync_all()
            });
            written.map_err(failed("write", path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::{read_key, read_preshared};
    use std::os::unix::fs::MetadataExt as _;

    fn plan(here: Option<&str>, there: Option<&str>) -> LinkPlan {
        LinkPlan {
            name: "air0".to_owned(),
            reached_at: [here, there].map(|text| text.map(str::to_owned)),
            network: "10.7.0.0/24".parse().unwrap(),
            port: 7007,
            rate: None,
            preshared: false,
        }
    }

    fn load(text: &str) -> LiveConfig {
        airlane_base::config::load(text, "end.toml").unwrap()
    }

    #[test]
    fn both_ends_fit_each_other() {
        for (here, there, listen) in [
            (Some("192.0.2.1"), Some("192.0.2.2"), "0.0.0.0:7007"),
            (Some("192.0.2.1"), None, "0.0.0.0:7007"),
            (None, Some("[2001:db8::2]"), "[::]:7007"),
            (Some("2001:db8::1"), Some("gate.example.org"), "[::]:7007"),
        ] {
            let ends = plan(here, there).ends().unwrap();
            let files = ends.each_ref().map(|end| load(&end.text));
            for at in 0..2 {
                let peer = &files[at].peers()[0];
                assert_eq!(peer.key, Some(ends[1 - at].public));
                assert_eq!(peer.address.is_some(), [there, here][at].is_some());
                assert!(files[at].link.unreached().is_empty());
                assert!(ends[at].text.contains(listen), "{}", ends[at].text);
                assert_eq!(files[at].name(), format!("air0-{}", at + 1));
                assert_eq!(files[at].tun.addresses, [ends[at].inside]);
            }
            assert_eq!(files[0].link.services, files[1].link.services);
        }
        let ends = plan(Some("192.0.2.1"), None).ends().unwrap();
        assert_eq!(ends[1].inside.to_string(), "10.7.0.2/24");
    }

    #[test]
    fn what_cannot_be_a_link_is_refused_with_what_would_be_right() {
        let says = |plan: &LinkPlan, part: &str| {
            let error = plan.ends().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        says(&plan(None, None), "at least one");
        says(&plan(Some("192.0.2"), None), "gate.example.org");
        says(&plan(Some("the gate"), None), "gate.example.org");
        says(&plan(Some("10.7.0.9"), None), "choose another network");
        says(&plan(Some("0.0.0.0"), None), "cannot be sent");
        for network in ["10.7.0.0/31", "10.7.0.0/32", "fd07::/127"] {
            let network = network.parse().unwrap();
            says(
                &LinkPlan {
                    network,
                    ..plan(Some("192.0.2.1"), None)
                },
                "no room",
            );
        }
        let port = 0;
        says(
            &LinkPlan {
                port,
                ..plan(Some("192.0.2.1"), None)
            },
            "port 0",
        );
        let name = "an interface".to_owned();
        says(
            &LinkPlan {
                name,
                ..plan(Some("192.0.2.1"), None)
            },
            "cannot name",
        );
    }

    #[test]
    fn files_are_for_their_owner_alone_and_stay_unless_they_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("new").join("air0");
        let preshared = LinkPlan {
            preshared: true,
            rate: "20 Mbit/s".parse().ok(),
            ..plan(Some("192.0.2.1"), Some("192.0.2.2"))
        };
        let ends = preshared.ends().unwrap();
        write(&folder, &ends, false).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        for end in &ends {
            let files = end.files(&folder);
            assert_eq!(files.len(), 3);
            for file in &files {
                assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
            }
            assert_eq!(read_key(&files[1]).unwrap().public(), end.public);
            assert_eq!(
                load(&fs::read_to_string(&files[0]).unwrap()),
                load(&end.text)
            );
        }
        let secret = |end: &PlannedEnd| read_preshared(&end.files(&folder)[2]).unwrap();
        assert_eq!(secret(&ends[0]), secret(&ends[1]));
        let again = preshared.ends().unwrap();
        let error = write(&folder, &again, false).unwrap_err().to_string();
        assert!(error.contains("--force"), "{error}");
        assert_eq!(
            read_key(&ends[0].files(&folder)[1]).unwrap().public(),
            ends[0].public
        );
        write(&folder, &again, true).unwrap();
        assert_eq!(
            read_key(&ends[0].files(&folder)[1]).unwrap().public(),
            again[0].public
        );
    }
}
