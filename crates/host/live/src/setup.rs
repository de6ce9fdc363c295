//! Creates the files and keys of all ends of a link from four facts: the addresses where the ends reach each
//! other, the network inside the tunnel, and the port. With station names the first end is a base station,
//! which the others call.
//!
//! The files set nothing else, because the link's properties are measured. Each file names its key files
//! without a directory, so that a directory with all of them can be moved.

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

/// Name of the end that stations call.
const BASE: &str = "base";

/// The facts about a new link.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Name of all interfaces. Two ends are named with `-1` and `-2` after it, a base with `-base`, and
    /// stations with their names.
    pub name: String,
    /// Address or host name where the other end reaches the first one, and vice versa. `None`: it is not
    /// reachable, so it must call.
    pub reached_at: [Option<String>; 2],
    /// Names of the stations, if the first end is a base; empty for a link with two ends.
    pub stations: Vec<String>,
    /// The network inside the tunnel; the ends get its first addresses.
    pub network: Cidr,
    /// The UDP port of all ends.
    pub port: u16,
    /// The rate of the link below, if it is not to be measured.
    pub rate: Option<Rate>,
    /// Whether each pair of ends gets a pre-shared key as well.
    pub preshared: bool,
}

/// One end, ready to be written.
#[derive(Debug)]
pub struct PlannedEnd {
    /// Its name.
    pub name: String,
    /// Text of its file.
    pub text: String,
    /// Its public key.
    pub public: PublicKey,
    /// Its address inside the tunnel.
    pub inside: Cidr,
    /// Names and texts of its key files.
    secrets: Vec<(String, Zeroizing<String>)>,
}

/// Why no files were created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Neither end is reachable.
    #[error(
        "neither end is reached by the other: give an address or host name of at least one of them"
    )]
    Unreachable,
    /// Stations cannot call a base without an address that they can reach.
    #[error("stations call their base: give an address or host name of this end")]
    NoBase,
    /// Both ends would be at one address.
    #[error("both ends would be at {0}: give each an address, or a port, of its own")]
    OneAddress(String),
    /// Two ends would have the same name.
    #[error(
        "several ends would be called \"{0}\": give each station a name of its own, and none that of the base"
    )]
    Twice(String),
    /// An address is invalid.
    #[error("{0}")]
    Address(String),
    /// The network is too small.
    #[error(
        "{network} has no room for {ends} ends: a network such as 10.7.0.0/24 or fd07::/64 has"
    )]
    Network {
        /// Number of ends.
        ends: usize,
        /// The network.
        network: Cidr,
    },
    /// The outer address of an end is inside the tunnel's network.
    #[error(
        "{address} is inside {network}, which is reached through the link alone: choose another network inside"
    )]
    Inside {
        /// The outer address.
        address: IpAddr,
        /// The network.
        network: Cidr,
    },
    /// The resulting file would be invalid.
    #[error(transparent)]
    File(#[from] RefusedFile),
    /// Files exist already.
    #[error("{} is there already, and its keys may be in use: --force replaces what is there", .0.display())]
    There(PathBuf),
    /// The system refused an operation.
    #[error("cannot {what} {}: {source}", .path.display())]
    System {
        /// The operation.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl LinkPlan {
    /// Creates all ends, each with fresh keys.
    ///
    /// # Errors
    /// If a file would be invalid.
    pub fn ends(&self) -> Result<Vec<PlannedEnd>, SetupError> {
        let random = || {
            random().map_err(|source| SetupError::System {
                what: "read",
                path: PathBuf::from("/dev/urandom"),
                source,
            })
        };
        let names = self.names()?;
        let inside = self.inside(names.len())?;
        let endpoints = [self.endpoint(0)?, self.endpoint(1)?];
        match (&endpoints, self.stations.is_empty()) {
            ([None, None], true) => return Err(SetupError::Unreachable),
            ([None, _], false) => return Err(SetupError::NoBase),
            ([Some(here), Some(there)], _) if here == there => {
                return Err(SetupError::OneAddress(here.to_string()));
            }
            _ => {}
        }
        let keys: Vec<_> = (names.iter().map(|_| Ok(PrivateKey::generate(random()?))))
            .collect::<Result<_, SetupError>>()?;
        // One key for each pair of the first end and another.
        let preshared: Vec<_> = (names[1..].iter().filter(|_| self.preshared))
            .map(|_| Ok(PresharedKey::generate(random()?)))
            .collect::<Result<_, SetupError>>()?;
        let listen = self.listen(&endpoints);
        let planned = names.iter().enumerate().map(|(at, own)| {
            let name = format!("{}-{own}", self.name);
            let peers: Vec<Other<'_>> = match at {
                0 => (1..names.len()).collect(),
                _ => vec![0],
            }
            .into_iter()
            .map(|other: usize| Other {
                name: &names[other],
                key: keys[other].public(),
                inside: inside[other],
                endpoint: endpoints.get(other).and_then(Option::as_ref),
                preshared: preshared.get(at.max(other) - 1),
                secret: match (at, names.len()) {
                    (0, 3..) => format!("{name}.{}.psk", names[other]),
                    _ => format!("{name}.psk"),
                },
            })
            .collect();
            let text = self.text(&name, inside[at], listen, &peers);
            // Check that the file can be loaded.
            airlane_base::config::load::<LiveConfig>(&text, &format!("{name}.toml"))?;
            let mut secrets = vec![(format!("{name}.key"), keys[at].to_text())];
            secrets.extend(
                peers
                    .into_iter()
                    .filter_map(|peer| Some((peer.secret, peer.preshared?.to_text()))),
            );
            Ok(PlannedEnd {
                text,
                public: keys[at].public(),
                inside: inside[at],
                secrets,
                name,
            })
        });
        planned.collect()
    }

    /// Suffixes of the ends' names.
    fn names(&self) -> Result<Vec<String>, SetupError> {
        if self.stations.is_empty() {
            return Ok(["1", "2"].map(str::to_owned).to_vec());
        }
        let mut names = vec![BASE.to_owned()];
        for station in &self.stations {
            if names.contains(station) {
                return Err(SetupError::Twice(station.clone()));
            }
            names.push(station.clone());
        }
        Ok(names)
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

    /// Listening address of both ends: the unspecified address of IPv6, or of IPv4 if only that is in use.
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

    /// The first addresses of the network, one for each end.
    fn inside(&self, ends: usize) -> Result<Vec<Cidr>, SetupError> {
        let network = self.network;
        if network.address.is_loopback() {
            let why = "never leaves this host: choose a network such as 10.7.0.0/24 inside";
            return Err(SetupError::Address(format!("{network} {why}")));
        }
        let bits: u8 = if network.address.is_ipv4() { 32 } else { 128 };
        let hosts = 1_u128.checked_shl(u32::from(bits - network.prefix));
        // The first address is the network's, and in IPv4 the last is the broadcast address.
        if hosts.is_some_and(|hosts| hosts < ends as u128 + 2) {
            return Err(SetupError::Network { ends, network });
        }
        let at = |host: usize| {
            let address = match network.network() {
                IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() + host as u32).into(),
                IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() + host as u128).into(),
            };
            Cidr {
                address,
                prefix: network.prefix,
            }
        };
        Ok((1..=ends).map(at).collect())
    }

    fn text(
        &self,
        name: &str,
        inside: Cidr,
        listen: std::net::SocketAddr,
        peers: &[Other<'_>],
    ) -> String {
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
        let own = quoted(&format!("{name}.key"));
        if let [peer] = peers {
            let key = peer.key;
            let endpoint = peer.endpoint.map(|at| format!(", peer = \"{at}\""));
            _ = writeln!(
                text,
                "underlay = {{ kind = \"udp\", listen = \"{listen}\"{} }}\n\
                 security = {{ private-key = {own}, peer-key = \"{key}\"{} }}",
                endpoint.unwrap_or_default(),
                peer.preshared_key(", ")
            );
            return text;
        }
        _ = writeln!(
            text,
            "underlay = {{ kind = \"udp\", listen = \"{listen}\" }}\nsecurity = {{ private-key = {own} }}"
        );
        for peer in peers {
            let (address, key) = (peer.inside.address, peer.key);
            let bits = if address.is_ipv4() { 32 } else { 128 };
            _ = writeln!(
                text,
                "\n[[peers]]\nname = {}\nkey = \"{key}\"\nprefixes = [\"{address}/{bits}\"]{}",
                quoted(peer.name),
                peer.preshared_key("\n")
            );
        }
        text
    }
}

/// Another end, as a file lists it.
struct Other<'a> {
    name: &'a str,
    key: PublicKey,
    inside: Cidr,
    endpoint: Option<&'a PeerEndpoint>,
    preshared: Option<&'a PresharedKey>,
    /// File of the pre-shared key.
    secret: String,
}

impl Other<'_> {
    /// The setting of the pre-shared key, if there is one.
    fn preshared_key(&self, before: &str) -> String {
        let line = |_| format!("{before}preshared-key = {}", quoted(&self.secret));
        self.preshared.map_or_else(String::new, line)
    }
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

impl PlannedEnd {
    /// Paths of its files in a directory, the configuration first.
    pub fn files(&self, folder: &Path) -> Vec<PathBuf> {
        let secrets = self.secrets.iter().map(|(name, _)| folder.join(name));
        let own = folder.join(format!("{}.toml", self.name));
        std::iter::once(own).chain(secrets).collect()
    }
}

/// Writes the files of all ends, readable only by the owner, into a directory, which is created if it does
/// not exist. If any file exists, nothing is written unless `replace` is set.
///
/// # Errors
/// If files exist, or the system refuses.
pub fn write(folder: &Path, ends: &[PlannedEnd], replace: bool) -> Result<(), SetupError> {
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
            stations: Vec::new(),
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
            let files: Vec<_> = ends.iter().map(|end| load(&end.text)).collect();
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
    fn a_base_and_its_stations_fit_each_other() {
        for (network, preshared) in [("10.7.0.0/24", false), ("fd07::/64", true)] {
            let plan = LinkPlan {
                stations: ["farm", "mill", "pier"].map(str::to_owned).to_vec(),
                network: network.parse().unwrap(),
                preshared,
                ..plan(Some("192.0.2.1"), None)
            };
            let directory = tempfile::tempdir().unwrap();
            let ends = plan.ends().unwrap();
            write(directory.path(), &ends, false).unwrap();
            let files: Vec<_> = ends.iter().map(|end| load(&end.text)).collect();
            let base = files[0].peers();
            assert_eq!(base.len(), 3);
            for (peer, (station, file)) in base.iter().zip(ends.iter().zip(&files).skip(1)) {
                assert_eq!(format!("air0-{}", peer.name), file.name());
                assert_eq!(peer.key, Some(station.public));
                assert!(
                    peer.prefixes
                        .iter()
                        .all(|prefix| prefix.covers(station.inside.address))
                );
                assert_eq!(peer.prefixes[0].network(), station.inside.address);
                let calls = &file.peers()[0];
                assert_eq!(calls.key, Some(ends[0].public));
                assert_eq!(calls.fixed_address(), "192.0.2.1:7007".parse().ok());
                let secrets = [peer, calls].map(|peer| peer.preshared_key.clone());
                assert_eq!(secrets.each_ref().map(Option::is_some), [preshared; 2]);
                if let [Some(here), Some(there)] = secrets {
                    assert_ne!(here, there, "files of one end may go away");
                    let read = |name: &Path| read_preshared(&directory.path().join(name)).unwrap();
                    assert_eq!(read(&here), read(&there));
                }
            }
        }
    }

    #[test]
    fn unworkable_links_are_refused_with_advice() {
        let says = |plan: &LinkPlan, part: &str| {
            let error = plan.ends().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        says(&plan(None, None), "at least one");
        let with = |here, stations: &[&str], network: &str| LinkPlan {
            stations: stations.iter().map(|name| (*name).to_owned()).collect(),
            network: network.parse().unwrap(),
            ..plan(here, None)
        };
        let here = Some("192.0.2.1");
        says(&plan(here, here), "both ends would be at 192.0.2.1:7007");
        says(&with(here, &[], "127.0.0.0/8"), "never leaves this host");
        says(
            &with(None, &["farm", "mill"], "10.7.0.0/24"),
            "stations call their base",
        );
        says(
            &with(here, &["farm", "farm"], "10.7.0.0/24"),
            "a name of its own",
        );
        says(
            &with(here, &["farm", "base"], "10.7.0.0/24"),
            "a name of its own",
        );
        says(
            &with(here, &["the farm", "mill"], "10.7.0.0/24"),
            "the farm",
        );
        says(
            &with(here, &["a", "b", "c", "d", "e", "f"], "10.7.0.0/29"),
            "no room for 7 ends",
        );
        assert!(
            with(here, &["a", "b", "c", "d", "e"], "10.7.0.0/29")
                .ends()
                .is_ok()
        );
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
    fn files_are_private_and_kept_unless_replaced() {
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
