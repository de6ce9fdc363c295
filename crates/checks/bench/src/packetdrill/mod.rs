//! Plays packetdrill scripts (Cardwell et al. 2013) against the profile `modern`, without packetdrill: the packets of
//! the script's peer go into an endpoint, and the packets that leave must match the script within its time tolerance.
//!
//! A script with settings that our endpoint lacks is not applicable, with a short reason; for the others the first
//! difference counts.

mod assertions;
mod parse;
mod play;
mod script;
mod settings;
mod table;

use play::{Play, Stop};

pub use table::{Row, table};

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every packet that it expects left at the expected time.
    Passes {
        /// Assertions about state that were compared.
        asserted: usize,
        /// Assertions about values that our endpoint does not have.
        unread: usize,
    },
    /// The first difference.
    Fails(String),
    /// Why it cannot be played.
    Inapplicable(String),
}

/// Plays one script.
pub fn play(text: &str) -> Verdict {
    let script = match parse::parse(text) {
        Ok(script) => script,
        Err(why) if why.ends_with(parse::OTHER) => {
            return Verdict::Inapplicable("packets that are not TCP's".to_owned());
        }
        Err(why) => return Verdict::Inapplicable(format!("it cannot be read: {why}")),
    };
    let settings = match settings::settings(&script) {
        Ok(settings) => settings,
        Err(why) => return Verdict::Inapplicable(why),
    };
    let mut play = Play::new(&settings);
    match play.run(&script) {
        Ok(()) => Verdict::Passes {
            asserted: play.looked_at[0],
            unread: play.looked_at[1],
        },
        Err(Stop::Differs(what)) => Verdict::Fails(what),
        Err(Stop::Inapplicable(why)) => Verdict::Inapplicable(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
        +.1 < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>\n+0 > S. 0:0(0) ack 1 <...>\n\
        +.1 < . 1:1(0) ack 1 win 257\n+0 accept(3, ..., ...) = 4\n";

    fn after(text: &str) -> Verdict {
        play(&format!("{OPENING}{text}"))
    }

    #[test]
    fn a_script_that_holds_passes_and_one_that_does_not_says_where() {
        let holds = "+0 write(4, ..., 2500) = 2500\n+0 > P. 1:2501(2500) ack 1\n+0 %{ assert tcpi_unacked == 3 }%\n\
                     +.1 < P. 1:1001(1000) ack 2501 win 257\n+0 > . 2501:2501(0) ack 1001\n+0 close(4) = 0\n\
                     +0 > F. 2501:2501(0) ack 1001\n+.1 < F. 1001:1001(0) ack 2502 win 257\n+0 > . 2502:2502(0) ack 1002\n";
        assert_eq!(
            after(holds),
            Verdict::Passes {
                asserted: 1,
                unread: 0
            }
        );
        for (text, what) in [
            (
                "+0 write(4, ..., 500) = 500\n+0 > P. 1:1001(1000) ack 1",
                "line 9: nothing leaves behind 501",
            ),
            ("+0 > P. 1:1001(1000) ack 1", "line 8: nothing leaves"),
            (
                "+0 write(4, ..., 500) = 500\n+.2 > P. 1:501(500) ack 1",
                "line 9: . 1:501(500) ack 1 at 0.200 s, and not from 0.400",
            ),
            (
                "+0 write(4, ..., 500) = 500\n+0 %{ assert tcpi_unacked == 3 }%",
                "line 9: tcpi_unacked is 1",
            ),
        ] {
            let Verdict::Fails(why) = after(text) else {
                panic!("{text}");
            };
            assert!(why.starts_with(what), "{why}");
        }
    }

    #[test]
    fn unsupported_statements_make_a_script_not_applicable() {
        for (text, why) in [
            ("+0 < R. 1:1(0) ack 1 win 257", "resets"),
            (
                "+0 setsockopt(4, SOL_SOCKET, SO_ZEROCOPY, [1], 4) = 0",
                "zero copy",
            ),
            (
                "+0 `sysctl -q net.ipv4.tcp_early_retrans=0`",
                "no tail loss probes",
            ),
            (
                "+0 write(4, ..., 500) = 500\n+.1 < . 1:1(0) ack 100 win 257",
                "a part of a segment",
            ),
            ("+0 quux", "it cannot be read: line 8"),
        ] {
            let Verdict::Inapplicable(is) = after(text) else {
                panic!("{text}: {:?}", after(text));
            };
            assert!(is.contains(why), "{is}");
        }
    }
}
