//! Converts WireGuard configurations (wg(8), wg-quick(8)) into live files.
//!
//! Keys stay the same: both use Curve25519 keys in the same text format. Settings without a counterpart are
//! listed as notes and nothing is guessed: WireGuard has no rates, and its commands are not run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use airlane_base::{Duration, Rate};
use airlane_secure::{PresharedKey, PrivateKey, PublicKey};

use crate::config::{KEEPALIVES, PeerEndpoint};
use crate::netlink::Cidr;

/// Port if none is given: WireGuard would take any port, but a live file must name one.
const USUAL_PORT: u16 = 7007;

/// A live file converted from another format.
#[derive(Debug)]
pub struct ImportedLink {
    /// The file's text.
    pub text: String,
    /// The private key, for a file of its own.
    pub key: PrivateKey,
    /// The pre-shared keys of peers, each with its file.
    pub preshared: Vec<(PathBuf, PresharedKey)>,
    /// Settings that differ here, or have no counterpart.
    pub notes: Vec<String>,
    /// Source lines of the values in this file, by their paths.
    places: Vec<(String, usize)>,
}

impl ImportedLink {
    /// The source line of the value at a path, if it has one.
    pub fn line_of(&self, path: &str) -> Option<usize> {
        let places = self
            .places
            .iter()
            .filter(|(part, _)| path.starts_with(part));
        places
            .max_by_key(|(part, _)| part.len())
            .map(|(_, line)| *line)
    }
}

/// Why a file could not be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireguardError {
    /// A line is invalid.
    #[error("line {line}: {problem}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A required setting is missing.
    #[error("{0}")]
    Missing(&'static str),
}

#[derive(Debug, Default)]
struct WireguardInterface {
    key: Option<PrivateKey>,
    port: Option<u16>,
    addresses: Vec<Cidr>,
    mtu: Option<u32>,
    /// `Table`, if it is not `auto`.
    table: Option<String>,
}

#[derive(Debug, Default)]
struct WireguardPeer {
    /// The line of its header.
    line: usize,
    key: Option<PublicKey>,
    preshared: Option<PresharedKey>,
    endpoint: Option<PeerEndpoint>,
    allowed: Vec<Cidr>,
    /// Whether some of them went to a later peer.
    has_lost: bool,
}

#[derive(Debug, Default)]
struct Wireguard {
    interface: WireguardInterface,
    peers: Vec<WireguardPeer>,
    /// The shortest PersistentKeepalive, s.
    keepalive: Option<u64>,
    notes: Vec<String>,
    places: Vec<(String, usize)>,
}

/// Converts a file of `wg` or `wg-quick` into the live file of the link `name`. `key`: path of its private key,
/// with pre-shared keys in the same directory; `rate`: what the link below carries, measured if it is `None`.
///
/// # Errors
/// If the text is not such a file, or lacks what a link needs.
pub fn from_wireguard(
    text: &str,
    name: &str,
    key: &Path,
    rate: Option<Rate>,
) -> Result<ImportedLink, WireguardError> {
    let mut file = Wireguard::default();
    let mut section = None;
    for (at, whole) in text.lines().enumerate() {
        let line = whole.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |problem| WireguardError::Line {
            line: at + 1,
            problem,
        };
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            let is_peer = name.eq_ignore_ascii_case("peer");
            if !is_peer && !name.eq_ignore_ascii_case("interface") {
                let problem = format!("\"[{name}]\" is neither [Interface] nor [Peer]");
                return Err(wrong(problem));
            }
            if is_peer {
                file.places
                    .push((format!("peers[{}]", file.peers.len()), at + 1));
                file.peers.push(WireguardPeer {
                    line: at + 1,
                    ..WireguardPeer::default()
                });
            }
            section = Some(is_peer);
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(wrong("neither a section nor KEY = VALUE".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        // A line without `=` may be a secret, so only its first word is shown.
        let said = key.split_whitespace().next().unwrap_or_default();
        let done = match section {
            Some(false) => file.interface(key, value),
            Some(true) => file.peer(key, value),
            None => Err("stands before the first section".to_owned()),
        };
        done.map_err(|problem| wrong(format!("{said}: {problem}")))?;
        file.places
            .extend(file.place(key).map(|path| (path, at + 1)));
    }
    file.into_import(name, key, rate)
}

impl Wireguard {
    /// Path, in the live file, of a key in the present section.
    fn place(&self, key: &str) -> Option<String> {
        let of_peer = |part| {
            Some(format!(
                "peers[{}].{part}",
                self.peers.len().checked_sub(1)?
            ))
        };
        match &*key.to_ascii_lowercase() {
            "privatekey" => Some("link.security".to_owned()),
            "listenport" => Some("link.underlay".to_owned()),
            "address" => Some("tun.addresses".to_owned()),
            "persistentkeepalive" => Some("link.keepalive".to_owned()),
            "publickey" => of_peer("key"),
            "allowedips" => of_peer("prefixes"),
            "endpoint" => of_peer("address"),
            "presharedkey" => of_peer("preshared-key"),
            _ => None,
        }
    }

    fn interface(&mut self, key: &str, value: &str) -> Result<(), String> {
        let interface = &mut self.interface;
        match &*key.to_ascii_lowercase() {
            "privatekey" => interface.key = Some(read(value)?),
            "listenport" => {
                let port = value.parse();
                interface.port = Some(port.map_err(|_| "a port is a whole number from 0 to 65535")?);
            }
            "address" => interface.addresses.extend(cidrs(value)?),
            "mtu" => interface.mtu = Some(read(value)?),
            "table" => {
                interface.table = Some(value.to_owned()).filter(|table| !table.eq_ignore_ascii_case("auto"));
            }
            "dns" | "fwmark" | "preup" | "postup" | "predown" | "postdown" => {
                let what = "a link sets addresses and routes and nothing else; do it where the system does such things";
                self.note(key, value, what);
            }
            "saveconfig" => self.note(key, value, "a link never writes its file"),
            _ => return Err("an [Interface] of WireGuard has no such key; it has PrivateKey, Address, ListenPort, MTU, \
                     DNS, Table, FwMark, SaveConfig, PreUp, PostUp, PreDown and PostDown"
                    .to_owned()),
        }
        Ok(())
    }

    fn peer(&mut self, key: &str, value: &str) -> Result<(), String> {
        let Some(peer) = self.peers.last_mut() else {
            return Ok(());
        };
        match &*key.to_ascii_lowercase() {
            "publickey" => peer.key = Some(read(value)?),
            "allowedips" => {
                for cidr in cidrs(value)? {
                    let network = Cidr {
                        address: cidr.network(),
                        ..cidr
                    };
                    // In WireGuard the last peer with an address has it.
                    if let Some(before) = self.peers.iter_mut().find(|peer| peer.allowed.contains(&network)) {
                        before.allowed.retain(|have| *have != network);
                        before.has_lost = true;
                        let note = format!("AllowedIPs = {network}: it is given twice, and belongs to the last, as in WireGuard");
                        self.notes.push(note);
                    }
                    if let Some(peer) = self.peers.last_mut() {
                        peer.allowed.push(network);
                    }
                }
            }
            "endpoint" => match value.parse() {
                Ok(endpoint) => {
                    let is_name = matches!(endpoint, PeerEndpoint::Host(_));
                    peer.endpoint = Some(endpoint);
                    if is_name {
                        let what = "a link comes up without its address, and looks it up again while the peer is silent; \
                                    wg-quick gives up";
                        self.note(key, value, what);
                    }
                }
                Err(error) => return Err(error),
            },
            "presharedkey" => peer.preshared = Some(read(value)?),
            "persistentkeepalive" => {
                // "off" and 0 mean none.
                let every: Option<u64> = value.parse().ok().filter(|every| *every > 0);
                self.keepalive = self.keepalive.into_iter().chain(every).min();
            }
            _ => return Err("a [Peer] of WireGuard has no such key; it has PublicKey, AllowedIPs, Endpoint, PresharedKey \
                     and PersistentKeepalive"
                    .to_owned()),
        }
        Ok(())
    }

    fn note(&mut self, key: &str, value: &str, what: &str) {
        self.notes.push(format!("{key} = {value}: {what}"));
    }

    fn into_import(
        mut self,
        name: &str,
        key: &Path,
        rate: Option<Rate>,
    ) -> Result<ImportedLink, WireguardError> {
        let WireguardInterface {
            key: private,
            port,
            addresses,
            mtu,
            table,
        } = self.interface;
        let missing = |what| WireguardError::Missing(what);
        let private = private.ok_or(missing("there is no PrivateKey in an [Interface]"))?;
        if addresses.is_empty() {
            self.notes.push(
                "no Address: write those of the interface, such as addresses = [\"10.7.0.1/24\"]"
                    .to_owned(),
            );
        }
        if mtu.is_some_and(|mtu| mtu > 0) {
            self.notes
                .push("MTU: what the path leaves is found out; tun.mtu sets another".to_owned());
        }
        let all = self.peers.iter().flat_map(|peer| &peer.allowed);
        let (wide, narrow): (Vec<Cidr>, Vec<Cidr>) = all.copied().partition(|cidr| cidr.is_wide());
        if let Some(table) = &table {
            let mut note = format!("Table = {table}: no routes of everything are written here");
            let on_link = |to: &&Cidr| {
                let mut own = addresses.iter();
                own.any(|at| at.prefix <= to.prefix && at.covers(to.address))
            };
            let narrow = narrow.iter().filter(|to| !on_link(to));
            let narrow: Vec<_> = narrow.map(ToString::to_string).collect();
            if !narrow.is_empty() {
                note += &format!(
                    ", but what is narrower becomes a route by itself: {}",
                    narrow.join(", ")
                );
            }
            self.notes.push(note);
        }
        let [least, most] = KEEPALIVES;
        let asked = self.keepalive.map(Duration::from_secs);
        let keepalive = asked.map(|every| every.clamp(least, most));
        if let (Some(asked), Some(every)) = (asked, keepalive)
            && asked != every
        {
            self.notes.push(format!(
                "PersistentKeepalive of {asked}: it is {every} here"
            ));
        }
        // As in WireGuard, an end that calls every peer takes any free port.
        let calls = self.peers.iter().all(|peer| peer.endpoint.is_some());
        let usual = if calls { 0 } else { USUAL_PORT };
        if port.is_none() && !calls {
            let note =
                format!("no ListenPort: {USUAL_PORT}, for peers without an Endpoint to call");
            self.notes.push(note);
        }
        let mut endpoints = self.peers.iter().filter_map(|peer| peer.endpoint.as_ref());
        let v4 = |endpoint: &PeerEndpoint| {
            let ip = endpoint.address().and_then(|address| address.ip());
            ip.is_some_and(|ip| ip.is_ipv4())
        };
        // A socket bound to the unspecified IPv6 address also serves IPv4.
        let any = match endpoints.all(v4) {
            true => "0.0.0.0",
            false => "[::]",
        };
        self.notes.push(
            "both ends have to run Airlane, and no WireGuard under the same name and port"
                .to_owned(),
        );
        let listen = format!("{any}:{}", port.unwrap_or(usual));
        let mut text = String::new();
        // Writing to a string cannot fail.
        for note in &self.notes {
            _ = writeln!(text, "# {note}");
        }
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let list = |all: &[Cidr]| {
            toml::Value::from(all.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        // Default routes are written as wg-quick adds them; narrower prefixes become routes by themselves.
        let routes = match wide.is_empty() || table.is_some() {
            true => String::new(),
            false => format!(", routes = {}", list(&wide)),
        };
        let rate = rate.map_or_else(String::new, |rate| format!("rate = \"{rate}\"\n"));
        let keepalive =
            keepalive.map_or_else(String::new, |every| format!("keepalive = \"{every}\"\n"));
        _ = writeln!(
            text,
            "schema = 1\nname = {name}\ntun = {{ name = {name}, addresses = {}{routes} }}\n\n[link]\n{rate}{keepalive}\
             underlay = {{ kind = \"udp\", listen = \"{listen}\" }}\nsecurity = {{ private-key = {} }}",
            list(&addresses),
            quoted(&key.display().to_string()),
            name = quoted(name),
        );
        let mut preshared = Vec::new();
        let (beside, none) = (key, self.peers.is_empty());
        for (at, peer) in self.peers.into_iter().enumerate() {
            let wrong = |problem: &str| WireguardError::Line {
                line: peer.line,
                problem: problem.to_owned(),
            };
            let key = (peer.key).ok_or_else(|| wrong("this [Peer] has no PublicKey"))?;
            if peer.has_lost && peer.allowed.is_empty() {
                return Err(wrong(
                    "later peers have all AllowedIPs of this [Peer]: in WireGuard, the last one with an address \
                     gets its packets; give each peer its own",
                ));
            }
            _ = writeln!(
                text,
                "\n[[peers]]\nname = \"peer{}\"\nkey = \"{key}\"\nprefixes = {}",
                at + 1,
                list(&peer.allowed)
            );
            if let Some(endpoint) = &peer.endpoint {
                _ = writeln!(text, "address = \"{endpoint}\"");
            }
            if let Some(secret) = peer.preshared {
                let file = beside.with_extension(format!("peer{}.psk", at + 1));
                let name = quoted(&file.display().to_string());
                _ = writeln!(text, "preshared-key = {name}");
                preshared.push((file, secret));
            }
        }
        match none {
            true => Err(missing("there is no [Peer]")),
            false => Ok(ImportedLink {
                text,
                key: private,
                preshared,
                notes: self.notes,
                places: self.places,
            }),
        }
    }
}

fn read<T: std::str::FromStr<Err: ToString>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error: T::Err| error.to_string())
}

/// Parses a list of addresses; an address without a prefix length is a single host.
fn cidrs(value: &str) -> Result<Vec<Cidr>, String> {
    let all = value
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty());
    all.map(|one| match one.contains('/') {
        true => read(one),
        false => read(&format!(
            "{one}/{}",
            if one.contains(':') { 128 } else { 32 }
        )),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LiveConfig;
    use proptest::prelude::*;

    const FILE: &str = "\
[Interface]
PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=
ListenPort = 51820
Address = 10.0.0.1/24, fd00::1/64
DNS = 10.0.0.53
PostUp = iptables -A FORWARD -i %i -j ACCEPT

[Peer] # the barn
PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=
AllowedIPs = 10.0.0.2, 192.168.40.7/24
Endpoint = 192.0.2.7:51820
PersistentKeepalive = 25

[Peer]
PublicKey = TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=
AllowedIPs = 10.0.0.3/32
Endpoint = vpn.example.com:51820
";

    fn import(text: &str) -> Result<ImportedLink, WireguardError> {
        from_wireguard(text, "wg0", Path::new("/etc/airlane/wg0.key"), None)
    }

    #[test]
    fn a_file_of_wireguard_becomes_one_that_can_be_loaded() {
        let import = import(FILE).unwrap();
        let file: LiveConfig = airlane_base::config::load(&import.text, "wg0.toml").unwrap();
        let text = |all: &[Cidr]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text(&file.tun.addresses), ["10.0.0.1/24", "fd00::1/64"]);
        let peers = file.peers();
        assert_eq!(text(&peers[0].prefixes), ["10.0.0.2/32", "192.168.40.0/24"]);
        assert_eq!(peers[0].address, "192.0.2.7:51820".parse().ok());
        assert_eq!(file.link.keepalive, Duration::from_secs(25));
        assert_eq!(peers[1].address, "vpn.example.com:51820".parse().ok());
        assert!(file.link.unreached().is_empty());
        // As `wg pubkey` prints it (wg(8) and RFC 7748: the base point).
        let public = import.key.public().to_string();
        assert_eq!(public.len(), 44);
        let notes = import.notes.join("\n");
        for part in ["DNS", "PostUp"] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
        // The private key is written to its own file only.
        assert!(!import.text.contains("yAnz5TF") && !notes.contains("yAnz5TF"));
    }

    /// A common case: a client that routes all traffic through its server.
    #[test]
    fn a_full_tunnel_has_its_routes_and_its_secret() {
        let client = "\
[Interface]
PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=
Address = 10.0.0.2/32
[Peer]
PublicKey = xTIBA5rboUvnH4htodjb6e697QjLERt1NAB4mZqp8Dg=
PresharedKey = TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0=
AllowedIPs = 0.0.0.0/0, ::/0
Endpoint = 192.0.2.7:51820
";
        let import = import(client).unwrap();
        let file: LiveConfig = airlane_base::config::load(&import.text, "wg0.toml").unwrap();
        let routes: Vec<_> = file.tun.routes.iter().map(ToString::to_string).collect();
        assert_eq!(routes, ["0.0.0.0/0", "::/0"]);
        let [(path, secret)] = &import.preshared[..] else {
            panic!("{:?}", import.preshared);
        };
        assert_eq!(file.peers()[0].preshared_key.as_ref(), Some(path));
        assert_eq!(
            *secret.to_text(),
            *"TrMvSoP4jYQlY6RIzBgbssQqY3vxI2Pi+y71lOWWXX0="
        );
        assert!(!import.text.contains("TrMvSoP4"), "{}", import.text);
        // The services are the defaults, as in a file from `airlane setup`.
        assert_eq!(file.link.services, airlane_link::config::by_goal());
        assert_eq!(file.link.rate, airlane_link::config::RateLimit::UNSTATED);
        assert!(file.link.underlay.takes_any_port());
    }

    #[test]
    fn a_custom_or_disabled_table_omits_the_default_routes() {
        let everything = FILE.replace("10.0.0.3/32", "0.0.0.0/0, ::/0");
        for (table, routes) in [("auto", 2), ("off", 0), ("Off", 0), ("51820", 0)] {
            let text = everything.replace("DNS = 10.0.0.53", &format!("Table = {table}"));
            let import = import(&text).unwrap();
            let file: LiveConfig = airlane_base::config::load(&import.text, "wg0.toml").unwrap();
            assert_eq!(file.tun.routes.len(), routes, "{table}: {}", import.text);
            let notes = import.notes.join("\n");
            let said = notes.contains(&format!("Table = {table}: no routes of everything"));
            assert_eq!(said, routes == 0, "{notes}");
            assert_eq!(
                notes.contains("by itself: 192.168.40.0/24"),
                routes == 0,
                "{notes}"
            );
        }
    }

    #[test]
    fn a_duplicate_address_belongs_to_the_last_peer() {
        let twice = FILE.replace("10.0.0.3/32", "10.0.0.2/32");
        let import = import(&twice).unwrap();
        let file: LiveConfig = airlane_base::config::load(&import.text, "wg0.toml").unwrap();
        assert_eq!(file.peers()[0].prefixes.len(), 1);
        assert_eq!(file.peers()[1].prefixes.len(), 1);
        let said = import
            .notes
            .iter()
            .filter(|note| note.contains("10.0.0.2/32: it is given twice"));
        assert_eq!(said.count(), 1, "{:?}", import.notes);
        let nothing_left = FILE.replace("10.0.0.3/32", "10.0.0.2, 192.168.40.0/24");
        let error = self::import(&nothing_left).unwrap_err().to_string();
        assert!(
            error.starts_with("line 8: later peers have all AllowedIPs"),
            "{error}"
        );
    }

    #[test]
    fn a_refusal_points_at_the_line_of_the_imported_file() {
        let twice = FILE.replace("vpn.example.com:51820", "192.0.2.7:51820");
        let import = import(&twice).unwrap();
        let refused =
            airlane_base::config::load::<LiveConfig>(&import.text, "wg0.toml").unwrap_err();
        let [problem] = refused.problems() else {
            panic!("{refused}");
        };
        let line = import.line_of(&problem.path).unwrap();
        assert_eq!(
            twice.lines().nth(line - 1),
            Some("Endpoint = 192.0.2.7:51820")
        );
        assert_eq!(line, 17);
        assert_eq!(import.line_of("tun.addresses[1]"), Some(4));
        assert_eq!(import.line_of("peers[1].name"), Some(14));
        assert_eq!(import.line_of("schema"), None);
    }

    #[test]
    fn errors_name_their_line() {
        for (old, new, part) in [
            ("ListenPort = 51820", "ListenPort = x", "line 3: ListenPort"),
            (
                "ListenPort = 51820",
                "ListenPort = 70000",
                "from 0 to 65535",
            ),
            (
                "ListenPort",
                "LissenPort",
                "line 3: LissenPort: an [Interface]",
            ),
            (
                "AllowedIPs = 10.0.0.3/32",
                "AllowedIPs = 10.0.0.3/99",
                "line 16",
            ),
            ("[Interface]", "[Interfaces]", "line 1"),
            ("PrivateKey = ", "PrivateKey = x", "line 2: PrivateKey"),
            (
                "PublicKey = TrM",
                "# PublicKey = TrM",
                ": this [Peer] has no PublicKey",
            ),
            (
                "[Interface]",
                "Address = 1.2.3.4\n[Interface]",
                "before the first section",
            ),
        ] {
            let error = import(&FILE.replacen(old, new, 1)).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
            assert!(!error.contains("yAnz5TF"), "{error}");
        }
        assert!(import("[Peer]\n").is_err());
    }

    proptest! {
        #[test]
        fn any_import_is_loadable_or_an_error(lines in prop::collection::vec(0..20_usize, 0..20)) {
            let all: Vec<&str> = FILE.lines().collect();
            let text: Vec<&str> = lines.into_iter().filter_map(|at| all.get(at).copied()).collect();
            if let Ok(import) = import(&text.join("\n")) {
                prop_assert!(toml::from_str::<toml::Table>(&import.text).is_ok(), "{}", import.text);
            }
        }
    }
}
