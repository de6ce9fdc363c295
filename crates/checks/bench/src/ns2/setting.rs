//! One transfer, for both simulators.

use std::fmt::Write as _;

use airlane_sim::Scenario;

/// A wireless link of Xylomenos 1999, tables 3.1 to 3.3, or of Xylomenos and Polyzos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WirelessLink {
    /// 14.4 kbit/s, 100 ms, 50 B.
    Cellular,
    /// 64 kbit/s, 50 ms, 250 B.
    Pcs,
    /// 2 Mbit/s, 3 ms, 1000 B.
    Wlan,
    /// 86.4 kbit/s, 100 ms, 100 B.
    Hscsd,
}

impl WirelessLink {
    /// Its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cellular => "cellular",
            Self::Pcs => "pcs",
            Self::Wlan => "wlan",
            Self::Hscsd => "hscsd",
        }
    }

    /// Rate in bit/s, delay in ms, bytes of a segment.
    const fn parameters(self) -> (u32, u32, u32) {
        match self {
            Self::Cellular => (14_400, 100, 50),
            Self::Pcs => (64_000, 50, 250),
            Self::Wlan => (2_000_000, 3, 1_000),
            Self::Hscsd => (86_400, 100, 100),
        }
    }
}

/// Where the wireless links are (Xylomenos 1999, chapter 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Host, 10 Mbit/s and 1 ms, base station, wireless link, host.
    Lan1,
    /// Host, 2 Mbit/s and 50 ms, base station, wireless link, host.
    Wan1,
    /// Host, wireless link, base station, 10 Mbit/s and 1 ms, base station, wireless link, host.
    Lan2,
    /// Host, wireless link, base station, 2 Mbit/s and 50 ms, base station, wireless link, host.
    Wan2,
}

impl Topology {
    /// Its name in tables and in our script.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lan1 => "LAN1",
            Self::Wan1 => "WAN1",
            Self::Lan2 => "LAN2",
            Self::Wan2 => "WAN2",
        }
    }
}

/// The TCP of the transfer; all but `Modern` and `Bbr` otherwise match ns-2 of 1999.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Fast retransmit, then slow start.
    Tahoe,
    /// Fast recovery.
    Reno,
    /// Fast recovery that continues on partial acknowledgments.
    NewReno,
    /// Selective acknowledgments.
    Sack,
    /// Each acknowledgment names the segment that caused it.
    Smart,
    /// Explicit loss notification.
    Eln,
    /// A window that follows round trips.
    Vegas,
    /// Reno that detects spurious retransmissions by timestamps, and undoes their window reductions.
    Eifel,
    /// All modern mechanisms.
    Modern,
    /// Likewise, with a model of the path instead of CUBIC.
    Bbr,
}

impl Variant {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Reno,
        Self::Tahoe,
        Self::NewReno,
        Self::Sack,
        Self::Smart,
        Self::Eln,
        Self::Vegas,
        Self::Eifel,
        Self::Modern,
        Self::Bbr,
    ];

    /// Its name in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tahoe => "tahoe",
            Self::Reno => "reno",
            Self::NewReno => "newreno",
            Self::Sack => "sack",
            Self::Smart => "smart",
            Self::Eln => "eln",
            Self::Vegas => "vegas",
            Self::Eifel => "eifel",
            Self::Modern => "modern",
            Self::Bbr => "bbr",
        }
    }

    /// Its settings in a scenario.
    const fn transport(self) -> &'static str {
        match self {
            Self::Tahoe => "profile = \"ns2-1999\", recovery = \"tahoe\"",
            Self::Reno => "profile = \"ns2-1999\", recovery = \"reno\"",
            Self::NewReno => {
                "profile = \"ns2-1999\", recovery = \"newreno\", partial-restart = \"first\""
            }
            Self::Sack => "profile = \"ns2-1999\", recovery = \"sack\"",
            Self::Smart => "profile = \"ns2-1999\", recovery = \"smart\"",
            Self::Eln => "profile = \"ns2-1999\", recovery = \"eln\"",
            Self::Vegas => {
                "profile = \"ns2-1999\", recovery = \"vegas\", congestion = \"vegas\", stale-times = true"
            }
            Self::Eifel => "profile = \"ns2-1999\", timestamps = true, eifel = true",
            Self::Modern => "profile = \"modern\"",
            Self::Bbr => "profile = \"modern\", congestion = \"bbr\"",
        }
    }

    /// The name of ns-2's agent, if it has one.
    const fn agent(self) -> Option<&'static str> {
        match self {
            Self::Tahoe => Some("Tahoe"),
            Self::Reno => Some("Reno"),
            Self::NewReno => Some("Newreno"),
            Self::Sack => Some("Sack1"),
            Self::Vegas => Some("Vegas"),
            Self::Smart | Self::Eln | Self::Eifel | Self::Modern | Self::Bbr => None,
        }
    }
}

/// The losses of the wireless links, independent in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Errors {
    /// Nothing.
    None,
    /// Each frame with this probability.
    Uniform(f64),
    /// Frames with corrupted bytes; the mean number of bytes between two of them.
    Bytes(u32),
    /// Frames that arrive in a bad period, and frames with corrupted bytes.
    Fades {
        /// Mean bad period, seconds; good ones last 10 s.
        bad_s: f64,
        /// Byte error rate.
        byte_errors: f64,
    },
}

/// Mean good period of fading links, seconds.
const GOOD_S: u32 = 10;

/// The application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// The first sends a file to the last.
    File,
    /// Likewise, with Snoop at the base station of the only wireless link. Copies and repairs wait at the tail of the
    /// queue.
    FileBehindSnoop,
    /// The last fetches pages of the same sizes in both simulators from the first.
    Pages,
}

/// The name of the pages' flow, which determines its random stream.
pub(super) const PAGES: &str = "web";

/// Bytes of a frame that holds the longest web request in one packet.
const REQUEST: u32 = 1_300;

/// One transfer, or pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The kind of its wireless links.
    pub link: WirelessLink,
    /// Where the wireless links are.
    pub topology: Topology,
    /// The receiver's window, segments.
    pub window: u32,
    /// Queue limit before a wireless link, packets.
    pub queue: u32,
    /// Their losses.
    pub errors: Errors,
    /// Length of the transfer, segments.
    pub segments: u64,
    /// The TCP of the transfer.
    pub tcp: Variant,
    /// The application.
    pub load: Load,
}

impl Setting {
    /// How long pages are fetched, seconds.
    const fn pages_s(&self) -> u32 {
        match self.link {
            WirelessLink::Wlan => 500,
            _ => 2_000,
        }
    }

    /// The arguments of `ns2/bulk.tcl` or `ns2/web.tcl`, without the repetition.
    pub(super) fn ns2_arguments(&self) -> Vec<String> {
        let (rate, delay, segment) = self.link.parameters();
        let mut arguments = vec![
            format!("topology={}", self.topology.name()),
            format!("rate={rate}"),
            format!("delay={delay}ms"),
            format!("segment={segment}"),
            format!("window={}", self.window),
            format!("queue={}", self.queue),
        ];
        if self.load == Load::Pages {
            arguments.push(format!("duration={}", self.pages_s()));
        } else {
            arguments.push(format!("segments={}", self.segments));
            arguments.extend(self.tcp.agent().map(|agent| format!("tcp={agent}")));
            arguments.push(format!(
                "snoop={}",
                u8::from(self.load == Load::FileBehindSnoop)
            ));
        }
        match self.errors {
            Errors::None => {}
            Errors::Uniform(loss) => {
                arguments.extend(["errors=pkt".to_owned(), format!("loss={loss}")]);
            }
            Errors::Bytes(mean) => {
                let rate = 1.0 / f64::from(mean);
                arguments.extend(["errors=byteexp".to_owned(), format!("ber={rate}")]);
            }
            Errors::Fades { bad_s, byte_errors } => arguments.extend([
                "errors=time2".to_owned(),
                format!("good={GOOD_S}"),
                format!("bad={bad_s}"),
                format!("ber={byte_errors}"),
            ]),
        }
        arguments
    }

    /// The same setting for Airlane. `services` is put into the wireless links' tables unchanged; empty for links
    /// without services.
    ///
    /// # Panics
    /// If `services` is not valid there.
    pub fn scenario(&self, services: &str) -> Scenario {
        let text = self.scenario_text(services);
        Scenario::from_toml(&text, "ns2").expect("a setting describes a world")
    }

    fn scenario_text(&self, services: &str) -> String {
        let (rate, delay, segment) = self.link.parameters();
        let errors = match self.errors {
            Errors::None => "{ kind = \"none\" }".to_owned(),
            Errors::Uniform(rate) => format!("{{ kind = \"uniform\", rate = {rate} }}"),
            Errors::Bytes(mean) => {
                format!("{{ kind = \"byte-exponential\", mean = \"{mean} B\" }}")
            }
            Errors::Fades { bad_s, byte_errors } => {
                // The bit error rate with the same probability of an error in a byte.
                let bits = -libm::expm1(libm::log1p(-byte_errors) / 8.0);
                format!(
                    "{{ kind = \"two-state-arrival\", good = \"{GOOD_S} s\", bad = \"{bad_s} s\", \
                     ber_good = {bits}, ber_bad = 1 }}"
                )
            }
        };
        // A frame holds the longest acknowledgment, and the headers before the user data.
        let frame = match self.tcp {
            _ if self.load == Load::Pages => segment.max(REQUEST),
            Variant::Sack
            | Variant::Smart
            | Variant::Eln
            | Variant::Eifel
            | Variant::Modern
            | Variant::Bbr => segment + 64,
            _ => segment,
        };
        let mut text = match self.load {
            Load::Pages => format!(
                "schema = 1\nname = \"pages\"\nduration = \"{} s\"\ntraffic-seed = \"each-run\"\n",
                self.pages_s()
            ),
            Load::File | Load::FileBehindSnoop => {
                let head = "schema = 1\nname = \"bulk transfer\"\n";
                format!("{head}duration = \"1000000000 s\"\nuntil = \"file\"\n")
            }
        };
        // A service's header adds a byte to each frame, but the time of a segment's frame must be ns-2's. Frames are
        // handed over as packets arrive, so that Snoop caches what waits, and a repair waits after it.
        let (rate, services, more) = match self.load {
            Load::FileBehindSnoop => (
                f64::from(rate) * f64::from(segment + 1) / f64::from(segment),
                "{ number = 0, name = \"all\", rate = 1.0, scheme = { kind = \"snoop\", \
                 base-station = \"first\", variant = \"ns2-connections\" } }",
                "handed-over = \"unlimited\"\n",
            ),
            Load::File | Load::Pages => (f64::from(rate), services, ""),
        };
        let (wired, wireless, last): (_, &[_], _) = match self.topology {
            Topology::Lan1 => (
                ("n0", "n1", "10 Mbit/s", "1 ms"),
                &[("radio", "n1", "n2")],
                "n2",
            ),
            Topology::Wan1 => (
                ("n0", "n1", "2 Mbit/s", "50 ms"),
                &[("radio", "n1", "n2")],
                "n2",
            ),
            Topology::Lan2 => (
                ("n1", "n2", "10 Mbit/s", "1 ms"),
                &[("radio-1", "n0", "n1"), ("radio-2", "n2", "n3")],
                "n3",
            ),
            Topology::Wan2 => (
                ("n1", "n2", "2 Mbit/s", "50 ms"),
                &[("radio-1", "n0", "n1"), ("radio-2", "n2", "n3")],
                "n3",
            ),
        };
        for node in ["n0", "n1", "n2", "n3"] {
            text.push_str(&format!("[nodes.{node}]\n"));
            if node == last {
                break;
            }
        }
        let (a, b, wired_rate, wired_delay) = wired;
        let mut add = |part: std::fmt::Arguments<'_>| {
            text.write_fmt(part).expect("a string takes everything");
        };
        add(format_args!(
            "[links.wired]\nends = [\"{a}\", \"{b}\"]\nrate = \"{wired_rate}\"\n\
             delay = \"{wired_delay}\"\nqueue = \"1000 packets\"\n"
        ));
        for (name, a, b) in wireless {
            add(format_args!(
                "[links.{name}]\nends = [\"{a}\", \"{b}\"]\nrate = \"{rate} bit/s\"\n\
                 delay = \"{delay} ms\"\nqueue = \"{} packets\"\nframe = \"{frame} B\"\n\
                 errors = {errors}\nheader = \"study\"\nservices = [{services}]\n{more}",
                self.queue
            ));
        }
        let (flow, app) = match self.load {
            Load::Pages => (PAGES, "kind = \"web\", requests = \"one\"".to_owned()),
            Load::File | Load::FileBehindSnoop => {
                let size = self.segments * u64::from(segment);
                ("file", format!("kind = \"bulk\", size = \"{size} B\""))
            }
        };
        add(format_args!(
            "[[flows]]\nname = \"{flow}\"\nends = [\"n0\", \"{last}\"]\n\
             transport = {{ kind = \"tcp\", {}, window = {} }}\n\
             app = {{ {app}, packet = \"{segment} B\" }}\n",
            self.tcp.transport(),
            self.window,
        ));
        text
    }
}
