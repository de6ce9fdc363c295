//! Counts by folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Verdict;

const TITLE: &str = "# TCP of today: packetdrill's scripts\n\n\
    Written by `make packetdrill`, which plays the scripts of github.com/google/packetdrill, `gtests/net/tcp`, against the \
    profile `modern` without packetdrill: what a script's peer sends goes into an end, and what leaves has to be what the \
    script expects of Linux, when it expects it. Nothing of the suite is part of Airlane. Where the kernel's defaults \
    differ from `modern`, the end has the kernel's, as in [validation-kernel.md](validation-kernel.md). A script is not \
    applicable where it asks for something beside TCP's segments, or that an end here leaves out.\n\n";

/// The causes of the remaining differences, each confirmed by a change that lets the script pass or, if the text says
/// so, get further.
const CAUSES: [(&str, &str); 7] = [
    (
        "cubic-rto-ss-ca",
        "RFC 9438 computes each window anew; Linux in whole segments, and every 31 ms. With its arithmetic the script passes",
    ),
    (
        "cwnd-moderation-ecn",
        "a mark halves the window at once (RFC 3168, section 6.1.2); for Linux the window is then what is on its way and \
         may leave by proportional reduction. Said so, the script passes",
    ),
    (
        "no-coalesce",
        "each write begins a segment here, which makes 21 of what Linux sends in 20. Without the end of the first write, \
         which Linux joins with the second, the script passes",
    ),
    (
        "prr-ss-ack-below",
        "of what an acknowledgment shows RFC 8985 takes the round trip of what left last; Linux of what it looks at last, \
         an earlier segment, so that the last of the window is not lost yet. With Linux's order the script passes",
    ),
    (
        "fr-4pkt-fack-last-mss",
        "RFC 8985 waits for a quarter of a round trip; Linux for two ticks of its clock more, and until a tick. With ticks of \
         4 ms the script passes",
    ),
    (
        "limited-transmit-no-sack",
        "slow start counts what an acknowledgment confirms (RFC 3465), in Linux less the duplicates before it. With that \
         the script passes",
    ),
    (
        "slow-start-fq-ack-per-2pkt",
        "pacing begins with the handshake's round trip; Linux sends the first ten segments at once. With that it comes to \
         line 41, where Linux' queue makes up for time that a timer was late by",
    ),
];

fn cause(name: &str) -> &'static str {
    let known = CAUSES.iter().find(|(part, _)| name.starts_with(part));
    known.map_or("not known", |(_, cause)| cause)
}

/// One script: its folder, its name and its result.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Row {
    /// Relative to the root folder.
    pub folder: String,
    /// Without extension.
    pub name: String,
    /// Its result.
    pub verdict: Verdict,
}

/// Counts by folder, failures with their first difference, and inapplicable scripts by reason, as Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut folders: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut asserted, mut unread) = (0, 0);
    for row in rows {
        let counts = folders.entry(&row.folder).or_default();
        match &row.verdict {
            Verdict::Passes {
                asserted: these,
                unread: others,
            } => {
                counts[0] += 1;
                asserted += these;
                unread += others;
            }
            Verdict::Fails(_) => counts[1] += 1,
            Verdict::Inapplicable(why) => {
                counts[2] += 1;
                *reasons.entry(why).or_default() += 1;
            }
        }
    }
    let mut text = TITLE.to_owned();
    text.push_str("| folder | pass | fail | not applicable |\n|---|---|---|---|\n");
    let mut line = |what: &str, [pass, fail, not]: [usize; 3]| {
        writeln!(text, "| {what} | {pass} | {fail} | {not} |").expect("a string takes all");
    };
    let mut sums = [0; 3];
    for (folder, counts) in folders {
        line(folder, counts);
        sums.iter_mut()
            .zip(counts)
            .for_each(|(sum, count)| *sum += count);
    }
    line("all", sums);
    writeln!(
        text,
        "\nOf the assertions in those that pass {asserted} were compared, and {unread} ask for what an end here does not \
         have.\n"
    )
    .expect("a string takes all");
    if sums[1] > 0 {
        text.push_str("| fails | first difference | why |\n|---|---|---|\n");
    }
    for row in rows {
        if let Verdict::Fails(what) = &row.verdict {
            writeln!(
                text,
                "| {}/{} | {what} | {} |",
                row.folder,
                row.name,
                cause(&row.name)
            )
            .expect("a string takes all");
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(why, count)| (usize::MAX - count, *why));
    let reasons = reasons
        .iter()
        .map(|(why, count)| format!("{why} ({count})"));
    let reasons: Vec<String> = reasons.collect();
    if !reasons.is_empty() {
        writeln!(text, "\nNot applicable: {}.", reasons.join("; ")).expect("a string takes all");
    }
    text
}
