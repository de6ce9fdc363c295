//! Interfaces where the kernel drops what comes in from somewhere that it would answer by another interface
//! (`rp_filter` = 1, RFC 3704): behind a default route that is everything, the peers' datagrams with it.

use std::path::Path;

/// What a default route and such an interface come to.
pub(crate) const WHY: &str =
    "strict rp_filter drops what comes from the peers: its answers would leave by the tunnel";
/// What to do.
pub(crate) const HELP: &str =
    "run `sysctl net.ipv4.conf.all.rp_filter=2`, and put it into /etc/sysctl.d";

/// Their names.
pub(crate) fn strict() -> Vec<String> {
    strict_in(Path::new("/proc/sys/net/ipv4/conf"))
}

fn strict_in(conf: &Path) -> Vec<String> {
    let setting = |name: &str| -> u8 {
        let text = std::fs::read_to_string(conf.join(name).join("rp_filter"));
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or_default()
    };
    // The higher of the two holds; 2 is loose.
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
    fn the_higher_setting_holds() {
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
