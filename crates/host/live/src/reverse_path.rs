//! Finds interfaces with strict reverse path filtering (`rp_filter` = 1, RFC 3704): the kernel drops packets
//! whose source it would reach by another interface. With a default route into the tunnel that includes the
//! peers' datagrams.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use crate::netlink::Netlink;

/// The remedy.
pub(crate) const HELP: &str =
    "run `sysctl net.ipv4.conf.all.rp_filter=2`, and put it into /etc/sysctl.d";

/// Describes the effect of a strict interface on a peer's packets once the default route leads into the tunnel.
pub(crate) fn says(interface: &str, peer: impl std::fmt::Display) -> String {
    format!(
        "strict rp_filter of {interface} drops what comes from {peer}: answers without the node's mark leave by the \
         tunnel"
    )
}

/// Names of all interfaces with strict filtering.
pub(crate) fn strict() -> Vec<String> {
    strict_in(Path::new("/proc/sys/net/ipv4/conf"))
}

/// The strict interface that drops packets from `peer`, if there is one. `tun` has the default route for all
/// packets without the mark, or will have it after the start.
pub(crate) fn blocks(peer: IpAddr, tun: &str, mark: u32) -> Option<String> {
    if !peer.is_ipv4() || mark == 0 {
        return None;
    }
    let comes_by = || -> io::Result<Option<u32>> {
        let mut netlink = Netlink::open()?;
        let way = netlink.way_of(peer, mark)?;
        let by_tunnel = match netlink.link_index(tun) {
            Ok(tun) => netlink.way_to(peer)? == tun && way != tun,
            // More specific routes in the main table keep their effect.
            Err(_) => netlink.match_of(peer)?.0 == 0,
        };
        Ok(by_tunnel.then_some(way))
    };
    let comes_by = comes_by().ok()??;
    let index = |name: &String| Netlink::open().and_then(|mut netlink| netlink.link_index(name));
    let mut strict = strict().into_iter();
    strict.find(|name| index(name).is_ok_and(|index| index == comes_by))
}

fn strict_in(conf: &Path) -> Vec<String> {
    let setting = |name: &str| -> u8 {
        let text = std::fs::read_to_string(conf.join(name).join("rp_filter"));
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or_default()
    };
    // The kernel uses the higher of the two values; 2 is loose.
    let all = setting("all");
    let names = std::fs::read_dir(conf).into_iter().flatten().flatten();
    let mut strict: Vec<_> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !matches!(&**name, "all" | "default" | "lo"))
        .filter(|name| setting(name).max(all) == 1)
        .collect();
    strict.sort();
    strict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_rp_filter_applies() {
        let conf = tempfile::tempdir().unwrap();
        let set = |name: &str, value: &str| {
            std::fs::create_dir_all(conf.path().join(name)).unwrap();
            std::fs::write(conf.path().join(name).join("rp_filter"), value).unwrap();
        };
        for (name, value) in [
            ("all", "0\n"),
            ("eth0", "1\n"),
            ("eth1", "2\n"),
            ("eth2", "0\n"),
            ("lo", "1\n"),
        ] {
            set(name, value);
        }
        assert_eq!(strict_in(conf.path()), ["eth0"]);
        set("all", "1\n");
        assert_eq!(strict_in(conf.path()), ["eth0", "eth2"]);
        set("all", "2\n");
        assert!(strict_in(conf.path()).is_empty());
        assert!(strict_in(Path::new("/nowhere")).is_empty());
    }
}
