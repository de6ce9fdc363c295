//! The endpoint settings that a script needs, or why it cannot be played here.

use airlane_transport::TcpConfig;

use super::script::{Action, Call, Options, Packet, Script};

/// Bytes of the timestamps option with its padding.
const TIMESTAMPS: u64 = 12;
/// The MSS on Ethernet, as the scripts' hosts have it.
const LARGEST: u64 = 1_460;

/// The settings for playing a script.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) config: TcpConfig,
    /// User bytes of a full segment.
    pub(super) segment: u64,
    /// Window scale of the peer.
    pub(super) scale: u32,
    /// Possible boundaries between segments of the peer's data.
    pub(super) cuts: Vec<u64>,
    /// Tolerance of departure times, microseconds.
    pub(super) tolerance: u64,
}

/// The settings that the script needs, or why it is not applicable.
pub(super) fn settings(script: &Script) -> Result<Settings, String> {
    let mut lines = Lines::default();
    for (name, value) in &script.options {
        match name.as_str() {
            "tolerance_usecs" => lines.tolerance = value.parse().ok(),
            "ip_version" if value != "ipv4" => return Err("IPv6".to_owned()),
            _ => {}
        }
    }
    let mut connections = 0;
    let mut syns: Vec<&Packet> = vec![];
    for event in &script.events {
        match &event.action {
            Action::Command(text) => lines.command(text)?,
            Action::Call(call) => {
                lines.call(call)?;
                connections += usize::from(matches!(call.name.as_str(), "connect" | "accept"));
            }
            Action::Arrives(packet) | Action::Leaves(packet) => {
                look_at(packet)?;
                if packet.has('S') {
                    syns.push(packet);
                }
            }
            Action::Code(_) => {}
        }
    }
    match connections {
        0 => return Err("no connection".to_owned()),
        1 => {}
        _ => return Err("several connections".to_owned()),
    }
    let arrived = script.events.iter().find_map(|event| match &event.action {
        Action::Arrives(packet) if packet.has('S') => Some(packet),
        _ => None,
    });
    let Some(syn) = arrived else {
        return Err("no connection".to_owned());
    };
    if syn.len() > 0 {
        return Err("data in a SYN (fast open)".to_owned());
    }
    if syn.window == Some(0) {
        return Err("a SYN without a window, which SYNs here do not say".to_owned());
    }
    let agreed = Agreed::of(syn, &syns);
    let largest = lines.largest.unwrap_or(LARGEST).min(LARGEST);
    let told = syn.options.as_ref().and_then(|options| options.mss);
    let stamps = if agreed.stamps { TIMESTAMPS } else { 0 };
    let segment = told.unwrap_or(536).min(largest) - stamps;
    Ok(Settings {
        config: lines.config(&agreed)?,
        segment,
        scale: agreed.scale,
        cuts: cuts(script, syn, segment)?,
        tolerance: lines.tolerance.unwrap_or(4_000),
    })
}

/// What both SYNs have negotiated.
struct Agreed {
    sack: bool,
    stamps: bool,
    ecn: bool,
    scale: u32,
}

impl Agreed {
    fn of(peer: &Packet, all: &[&Packet]) -> Self {
        let none = Options::default();
        let said = peer.options.as_ref().unwrap_or(&none);
        // If a script ignores our options, we agree to everything.
        let ours = |has: &dyn Fn(&Options) -> bool| {
            let mut others = all.iter().filter(|syn| **syn != peer);
            others.all(|syn| syn.options.as_ref().is_none_or(has))
        };
        Self {
            sack: said.sack_permitted && ours(&|options| options.sack_permitted),
            stamps: said.stamp.is_some() && ours(&|options| options.stamp.is_some()),
            ecn: all.len() > 1 && all.iter().all(|syn| syn.has('E')),
            scale: match ours(&|options| options.scale.is_some()) {
                true => said.scale.unwrap_or(0),
                false => 0,
            },
        }
    }
}

/// The contents of commands, options and calls.
#[derive(Default)]
struct Lines {
    congestion: Option<String>,
    paces: bool,
    tolerance: Option<u64>,
    largest: Option<u64>,
}

impl Lines {
    /// A shell command. Settings of segment batching or memory have no meaning here and are ignored.
    fn command(&mut self, text: &str) -> Result<(), String> {
        for word in text.split_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let name = name.rsplit(['.', '/']).next().unwrap_or(name);
            match (name, value) {
                ("tcp_congestion_control", "reno" | "cubic" | "bbr") => {
                    self.congestion = Some(value.to_owned());
                }
                ("tcp_slow_start_after_idle", "1") => {
                    return Err("slow start after an idle time, which we leave out".to_owned());
                }
                ("tcp_early_retrans", "0") => return Err("no tail loss probes".to_owned()),
                ("tcp_mtu_probing", _) => return Err("probes of the path's MTU".to_owned()),
                ("tcp_notsent_lowat", _) => return Err("when a socket is writable".to_owned()),
                (name, _) if name.starts_with("tcp_fastopen") => {
                    return Err("fast open".to_owned());
                }
                _ => {}
            }
        }
        if text.contains("root fq") {
            self.paces = true;
        } else if text.contains("limit 0") {
            return Err("a host's own queue that drops".to_owned());
        } else if text.contains("ip route") {
            return Err("probes of the path's MTU".to_owned());
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        let has = |word: &str| call.arguments.iter().any(|a| a.contains(word));
        for (word, why) in [
            ("FASTOPEN", "fast open"),
            ("ZEROCOPY", "zero copy"),
            ("MSG_MORE", "corked writes"),
            ("TCP_CORK", "corked writes"),
            ("TCP_INQ", "what a socket's queue holds"),
            ("NOTSENT_LOWAT", "when a socket is writable"),
            ("SO_TIMESTAMPING", "timestamps of packets for applications"),
            ("SO_KEEPALIVE", "keepalives"),
            ("TCP_KEEPIDLE", "keepalives"),
            ("TCP_MD5SIG", "signatures"),
            ("TCP_USER_TIMEOUT", "a time limit of a socket"),
            ("TCP_SYNCNT", "a count of SYNs of a socket"),
            ("IPPROTO_UDP", "UDP"),
            ("NULL", "bad arguments"),
        ] {
            if has(word) {
                return Err(why.to_owned());
            }
        }
        if call.name == "setsockopt" && has("TCP_MAXSEG") {
            let value = call
                .arguments
                .get(3)
                .map(|value| value.trim_matches(['[', ']']));
            self.largest = value.and_then(|value| value.parse().ok());
        }
        match call.name.as_str() {
            "socket" | "bind" | "listen" | "accept" | "connect" | "setsockopt" | "getsockopt"
            | "fcntl" | "write" | "send" | "sendto" | "sendmsg" | "writev" | "read" | "recv"
            | "recvfrom" | "close" | "shutdown" => Ok(()),
            "epoll_create" | "epoll_ctl" | "epoll_wait" | "poll" => {
                Err("when a socket is writable".to_owned())
            }
            "ioctl" | "recvmsg" => Err("what a socket's queue holds".to_owned()),
            "sendfile" | "splice" | "open" | "pipe" => Err("files".to_owned()),
            other => Err(format!("the call {other}")),
        }
    }

    /// Where the kernel's defaults differ from `modern`, the kernel's are used, as the scripts expect: no pacing
    /// without a pacing queue, an RTO of at least 200 ms more than the round trip, acknowledgments delayed by up to
    /// 40 ms after the first sixteen segments, and its HyStart.
    fn config(&self, agreed: &Agreed) -> Result<TcpConfig, String> {
        let congestion = self.congestion.as_deref().unwrap_or("cubic");
        let recovery = match (agreed.sack, congestion) {
            (true, _) => "recovery = \"rack\"",
            (false, "bbr") => return Err("BBR without selective acknowledgments".to_owned()),
            (false, _) => "recovery = \"newreno\"\nlimited-transmit = true",
        };
        let cubic = match congestion {
            "cubic" => "conservative-rounds = 0\ncatch-up = false",
            _ => "",
        };
        let (Agreed { stamps, ecn, .. }, paces) = (agreed, self.paces || congestion == "bbr");
        let text = format!(
            "profile = \"modern\"\ncongestion = \"{congestion}\"\n{recovery}\n{cubic}\ntimestamps = {stamps}\n\
             eifel = {stamps}\necn = {ecn}\npacing = {paces}\ntick = \"200 ms\"\nmin-rto = \"200 ms\"\n\
             delayed-ack = {{ every = 2, within = \"40 ms\", quick = 16 }}"
        );
        toml::from_str(&text).map_err(|error| error.to_string())
    }
}

fn look_at(packet: &Packet) -> Result<(), String> {
    if packet.has('R') {
        return Err("resets, which we leave out".to_owned());
    }
    if packet.has('U') || packet.flags == "-" {
        return Err("urgent data, or a header without a flag".to_owned());
    }
    let other = packet
        .options
        .as_ref()
        .and_then(|options| options.other.as_deref());
    match other {
        None => Ok(()),
        Some(name) if name.starts_with("FO") => Err("fast open".to_owned()),
        Some(name) if name.starts_with("md5") => Err("signatures".to_owned()),
        Some(name) => Err(format!("the option {name}")),
    }
}

/// Boundaries of the peer's data: those of its packets, and every segment length inside longer packets.
fn cuts(script: &Script, syn: &Packet, segment: u64) -> Result<Vec<u64>, String> {
    let mut all = std::collections::BTreeSet::from([syn.seq + 1]);
    let mut end_of_data = None;
    for event in &script.events {
        let Action::Arrives(packet) = &event.action else {
            continue;
        };
        if packet.has('S') {
            continue;
        }
        if packet.len() > 0 {
            all.extend([packet.seq, packet.end]);
        }
        if packet.has('F') {
            end_of_data = Some(packet.end);
        }
    }
    let mut cuts: Vec<u64> = vec![];
    for next in all {
        while let Some(last) = cuts.last().filter(|last| next > **last + segment) {
            cuts.push(last + segment);
        }
        cuts.push(next);
    }
    match end_of_data.is_some_and(|end| cuts.last() != Some(&end)) {
        true => Err("data behind its end".to_owned()),
        false => Ok(cuts),
    }
}
