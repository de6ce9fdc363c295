use super::*;
use crate::EtherType;
use airlane_link::config::RateLimit;

const GOOD: &str = r#"
schema = 1
name = "hill-top"
[tun]
addresses = ["10.7.0.1/24", "fd07::1/64"]
routes = ["192.168.40.0/24"]
[link]
rate = "20 Mbit/s"
underlay = { kind = "udp", listen = "0.0.0.0:7007", peer = "192.0.2.7:7007" }
security = "none"
[[link.services]]
number = 1
name = "files"
rate = 0.7
scheme = { kind = "sr-m2" }
[[link.classes]]
match = { protocol = "tcp" }
service = "files"
"#;

fn load(text: &str) -> Result<LiveConfig, String> {
    airlane_base::config::load(text, "up.toml").map_err(|error| error.to_string())
}

#[test]
fn a_good_file_is_read_and_resolved() {
    let config = load(GOOD).unwrap();
    assert_eq!(config.tun.name, "air0");
    assert_eq!(config.tun.mtu, Mtu::Auto);
    let all = config.resolve();
    assert_eq!(all.socket(), Path::new("/run/airlane/hill-top.sock"));
    assert_eq!(all.link.services.len(), 2, "the raw service is added");
    // The file that `explain` prints has the same meaning.
    let text = toml::to_string(&all).unwrap();
    assert!(text.contains("mtu = \"auto\""), "{text}");
    assert_eq!(load(&text).unwrap(), all);
}

/// Settings that are left out get their defaults.
#[test]
fn the_shortest_file_is_a_whole_link() {
    let shortest = "schema = 1\ntun = { addresses = [\"10.7.0.1/24\"] }\n[link]\n\
                    underlay = { kind = \"udp\", listen = \"[::]:7007\", peer = \"gate.example.org:7007\" }\n\
                    security = { private-key = \"a.key\", peer-key = \"TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=\" }\n";
    let config = load(shortest).unwrap();
    assert_eq!(config.name(), "air0");
    assert_eq!(config.socket(), Path::new("/run/airlane/air0.sock"));
    let names: Vec<_> = config.link.services.iter().map(|s| &*s.name).collect();
    assert_eq!(
        names,
        ["files", "pages", "calls", "interactive", "video", "paced"]
    );
    assert_eq!(config.link.rate_limit, RateLimit::Found);
    assert_eq!(
        load(&format!("{shortest}rate = \"auto\"\n")).unwrap(),
        config
    );
    assert!(config.link.unreached().is_empty());
    let host = config.peers()[0].host().cloned();
    assert_eq!(host, "gate.example.org:7007".parse().ok());
    let all = config.resolve();
    assert_eq!(load(&toml::to_string(&all).unwrap()).unwrap(), all);
    let estimated = load(&format!("{shortest}rate-limit = \"estimated\"\n")).unwrap();
    assert_eq!(estimated, config);
    // Explicit settings win, and explicit services get no default classes.
    let written = load(&format!("{shortest}rate = \"2 Mbit/s\"\nservices = []\n")).unwrap();
    assert_eq!(written.link.rate_limit, RateLimit::Estimated);
    assert_eq!(written.link.classes, ClassesConfig::default());
    assert!(written.link.services.is_empty());
    let beside = config.in_folder(Path::new("/etc/airlane"));
    let Some(Security::Keys(keys)) = beside.link.security else {
        panic!("it has keys");
    };
    assert_eq!(keys.private_key, Path::new("/etc/airlane/a.key"));
}

#[test]
fn a_link_without_security_is_refused_with_what_to_write() {
    let error = load(&GOOD.replace("security = \"none\"\n", "")).unwrap_err();
    assert!(error.contains("security = \"none\""), "{error}");
    assert!(error.contains("unencrypted"), "{error}");
    assert!(error.contains("link.security"), "{error}");
}

#[test]
fn bad_files_are_refused_with_the_path_and_what_would_be_right() {
    for (good, bad, expected) in [
        ("schema = 1", "schema = 2", "schema 1"),
        (
            "[tun]",
            "metrics = \"0.0.0.0:9107\"\n[tun]",
            "not on the loopback",
        ),
        ("[tun]", "metrics = \"[::1]:0\"\n[tun]", "port 0"),
        ("[tun]", "metrics = \"localhost\"\n[tun]", "metrics"),
        ("\"hill-top\"", "\"hill/top\"", "cannot name a node"),
        ("10.7.0.1/24", "10.7.0.1", "10.7.0.1/24"),
        ("10.7.0.1/24", "0.0.0.0/24", "tun.addresses[0]"),
        ("192.168.40.0/24", "192.168.40.1/24", "192.168.40.0/24"),
        ("[tun]", "[tun]\nname = \"a-name-of-16-byt\"", "1 to 15"),
        ("[tun]", "[tun]\nmtu = \"1000 B\"", "IPv6 needs 1280 B"),
        ("[tun]", "[tun]\nmtu = 1400", "\"auto\" or a size"),
        ("[tun]", "[tun]\nadresses = []", "adresses"),
        ("20 Mbit/s", "0 bit/s", "at least 1 bit/s"),
        ("20 Mbit/s", "20 Mb", "Mbit/s"),
        ("0.0.0.0:7007", "[2001:db8::1]:7007", "same IP version"),
        ("0.0.0.0:7007", "0.0.0.0:0", "port 0"),
        ("0.0.0.0:7007", "127.0.0.1:7007", "this machine alone"),
        (
            "\"0.0.0.0:7007\", peer = \"192.0.2.7:7007\"",
            "\"[::]:7007\", peer = \"[fe80::1]:7007\"",
            "link-local",
        ),
        (
            "rate = \"20 Mbit/s\"",
            "rate-limit = \"fixed\"",
            "has to be stated",
        ),
        (
            "192.0.2.7:7007",
            "gate.example.org",
            "gate.example.org:7007",
        ),
        ("192.0.2.7:7007", "gate.example.org:0", "port 0"),
        ("192.0.2.7:7007", "0.0.0.0:7007", "link.underlay.peer"),
        (
            ", peer = \"192.0.2.7:7007\"",
            "",
            "only a peer with keys may call",
        ),
        ("security = \"none\"", "security = \"yes\"", "or \"none\""),
        (
            "security = \"none\"",
            "security = { private-key = \"a.key\", peer-key = \"abc\" }",
            "44 characters",
        ),
        (
            "security = \"none\"",
            "security = { private-key = \"a.key\" }",
            "peer-key",
        ),
        ("number = 1", "number = 16", "0 to 15"),
        ("rate = 0.7", "rate = 0", "above 0"),
        ("\"20 Mbit/s\"", "\"20 bit/s\"", "at least 1 kbit/s"),
        (
            "service = \"files\"",
            "service = \"film\"",
            "no service \"film\"",
        ),
        ("\"sr-m2\"", "\"sr-m3\"", "sr-m2"),
    ] {
        assert!(GOOD.contains(good));
        let error = load(&GOOD.replacen(good, bad, 1)).unwrap_err();
        assert!(error.contains(expected), "{bad}: {error}");
        assert!(error.starts_with("up.toml:"), "{error}");
    }
}

const OVER_UDP: &str = "{ kind = \"udp\", listen = \"0.0.0.0:7007\", peer = \"192.0.2.7:7007\" }";
const OVER_ETHERNET: &str =
    "{ kind = \"ethernet\", interface = \"wlan0\", peer = \"02:00:00:00:00:01\" }";

#[test]
fn frames_may_be_sent_directly_on_an_interface() {
    let text = GOOD.replace(OVER_UDP, OVER_ETHERNET);
    let config = load(&text).unwrap();
    let UnderlayConfig::Ethernet { ether_type, .. } = &config.link.underlay else {
        panic!("{config:?}");
    };
    assert_eq!(*ether_type, EtherType(0x88b5));
    // With keys, neither end needs the other's address.
    let keys = format!(
        "{{ private-key = \"a.key\", peer-key = \"{}\" }}",
        airlane_secure::PrivateKey::generate([1; 32]).public()
    );
    let called = text
        .replace(", peer = \"02:00:00:00:00:01\"", "")
        .replace("security = \"none\"", &format!("security = {keys}"));
    assert_eq!(load(&called).unwrap().link.underlay.peer(), None);
    let explained = toml::to_string(&config.resolve()).unwrap();
    assert!(explained.contains("ether-type = \"0x88b5\""), "{explained}");
    assert_eq!(load(&explained).unwrap(), config.resolve());
}

#[test]
fn what_cannot_work_on_an_interface_is_refused() {
    let peer = "peer = \"02:00:00:00:00:01\"";
    let with_type = |value: &str| format!("{peer}, ether-type = {value}");
    for (good, bad, line, expected) in [
        ("\"wlan0\"", "\"wlan0/1\"", 9, "link.underlay.interface"),
        ("\"wlan0\"", "\"\"", 9, "1 to 15"),
        (peer, "peer = \"192.0.2.1:7007\"", 9, "02:00:00:00:00:01"),
        (peer, "peer = \"ff:ff:ff:ff:ff:ff\"", 9, "no address of one"),
        (peer, "peer = \"01:00:5e:00:00:01\"", 9, "no address of one"),
        (
            &format!(", {peer}"),
            "",
            9,
            "only a peer with keys may call",
        ),
        (peer, &with_type("0x0800"), 9, "belongs to IPv4"),
        (
            peer,
            &with_type("1500"),
            9,
            "values below 0x0600 are lengths",
        ),
        (peer, &with_type("0x188B5"), 9, "such as 0x88B5"),
        (
            peer,
            &format!("{peer}, listen = \"0.0.0.0:7007\""),
            9,
            "listen",
        ),
        (
            "rate = \"20",
            "outer = { ecn = true }\nrate = \"20",
            8,
            "no outer IP header",
        ),
    ] {
        let text = GOOD.replace(OVER_UDP, OVER_ETHERNET);
        assert!(text.contains(good), "{good}");
        let error = load(&text.replacen(good, bad, 1)).unwrap_err();
        assert!(error.contains(expected), "{bad}: {error}");
        let place = format!("up.toml:{line}:");
        assert!(error.starts_with(&place), "{bad}: {error}");
    }
}

#[test]
fn what_cannot_work_live_is_refused_with_its_line_and_the_reason() {
    let scheme = "scheme = { kind = \"sr-m2\" }";
    let snoop = "scheme = { kind = \"snoop\", base-station = \"here\" }";
    let queue = |queue: &str| format!("{scheme}\nqueue = {queue}");
    let timers = |more: &str| format!("scheme = {{ kind = \"sr-m2\", {more} }}");
    for (good, bad, line, expected) in [
        // Settings of scenarios only.
        (
            "rate = \"20",
            "header = \"study\"\nrate = \"20",
            8,
            "live headers",
        ),
        (
            "rate = \"20",
            "handed-over = \"unlimited\"\nrate = \"20",
            8,
            "one frame",
        ),
        (
            "rate = \"20",
            "pacing = \"nominal\"\nrate = \"20",
            8,
            "kernel does not",
        ),
        (
            "rate = \"20",
            "queue = \"50 packets\"\nrate = \"20",
            8,
            "each service has",
        ),
        (
            "rate = \"20",
            "frame = \"1000 B\"\nrate = \"20",
            8,
            "tun.mtu",
        ),
        (
            "rate = \"20",
            "ends = [\"a\", \"b\"]\nrate = \"20",
            8,
            "underlay.peer",
        ),
        (
            "rate = \"20",
            "errors = { kind = \"none\" }\nrate = \"20",
            8,
            "airlane air",
        ),
        // A live link has no first and second end.
        (
            scheme,
            &snoop.replace("here", "first"),
            15,
            "no first and second",
        ),
        ("\"tcp\"", "\"udp\"", 15, "travel unrepaired"),
        // Queues and timers.
        (
            scheme,
            &queue("{ kind = \"none\" }"),
            16,
            "loses every packet",
        ),
        (
            scheme,
            &queue("{ kind = \"drop-tail\", limit = \"1 kB\" }"),
            16,
            "no room for a full packet of 1500 B",
        ),
        (
            scheme,
            &timers("timers = { ack = 1, nak = 1, keepalive = 1, rto = \"80 ms\" }"),
            15,
            "a round trip takes 100 ms",
        ),
        (
            scheme,
            &timers("timers = \"tight\", multiplier = 0.5"),
            15,
            "multiplier",
        ),
        // Sequence numbers that would repeat.
        (scheme, &timers("window = 16385"), 15, "1 to 16384"),
        ("\"files\"", "\"default\"", 13, "the raw service"),
        // Addresses.
        ("0.0.0.0:7007", "192.0.2.7:7007", 9, "this end itself"),
        (
            "0.0.0.0:7007",
            "224.0.0.1:7007",
            9,
            "no address of one machine",
        ),
        (
            "192.0.2.7:7007",
            "255.255.255.255:7007",
            9,
            "cannot be sent to",
        ),
    ] {
        let whole = match expected {
            "travel unrepaired" => GOOD.replace(scheme, snoop),
            _ => GOOD.to_owned(),
        };
        assert!(whole.contains(good), "{good}");
        let error = load(&whole.replacen(good, bad, 1)).unwrap_err();
        assert!(error.contains(expected), "{bad}: {error}");
        assert!(
            error.starts_with(&format!("up.toml:{line}:")),
            "{bad}: {error}"
        );
    }
}

#[test]
fn predefined_classes_are_written_out_as_rules() {
    let rules = "[[link.classes]]\nmatch = { protocol = \"tcp\" }\nservice = \"files\"\n";
    assert!(GOOD.contains(rules));
    let named = |name: &str| {
        let at = "security = \"none\"";
        let text = GOOD.replace(rules, "");
        text.replace(at, &format!("{at}\nclasses = \"{name}\""))
    };
    let all = load(&named("heuristic")).unwrap().resolve();
    let ClassesConfig::Rules(found) = &all.link.classes else {
        panic!("{all:?}");
    };
    // The link has no service for speech.
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|class| class.service == "files"));
    assert_eq!(all.link.rates, Some(Rates::Fixed));
    let text = toml::to_string(&all).unwrap();
    assert_eq!(load(&text).unwrap(), all);

    let all = load(&named("dscp")).unwrap().resolve();
    assert_eq!(all.link.rates, Some(Rates::Fixed));
    let error = load(&named("heuristik")).unwrap_err();
    assert!(error.contains("did you mean `heuristic`"), "{error}");
    let error = load(&named("dscp").replace("sr-m2", "default")).unwrap_err();
    assert!(
        error.starts_with("up.toml:11:11: \"dscp\" finds no service"),
        "{error}"
    );
}

#[test]
fn a_socket_whose_path_no_address_takes_is_refused() {
    let long = "x".repeat(101);
    let error = load(&GOOD.replace("hill-top", &long)).unwrap_err();
    assert!(
        error.starts_with("up.toml:3:") && error.contains("107"),
        "{error}"
    );
    let control = format!("[control]\nsocket = \"/tmp/{long}/x\"\n[tun]");
    let error = load(&GOOD.replacen("[tun]", &control, 1)).unwrap_err();
    assert!(error.contains("control.socket"), "{error}");
}
