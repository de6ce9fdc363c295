//! The report, and the causes of differences.

use std::fmt::Write as _;

use super::compare::{Beside, LIMIT, RUNS, Reference};
use super::setting::{Places, Reception, SECONDS};

/// The columns of references, in order.
const REFERENCES: [Reference; 3] = [
    Reference::Ns3(Reception::Threshold),
    Reference::Ns3(Reception::Own),
    Reference::Ns2,
];

/// A difference beyond [`LIMIT`] whose reason is known.
struct Cause {
    /// Its letter in the table.
    letter: char,
    /// The reason.
    text: &'static str,
    /// Whether it explains so large a gap of a row to ns-3's own reception. What the gap to the same rule of reception is
    /// proves it, so a gap to that has no cause.
    explains: fn(&Beside, f64) -> bool,
}

const CAUSES: [Cause; 2] = [
    Cause {
        letter: 'a',
        text: "When two frames of equal power begin in one slot, ns-3's preamble detection, which asks for an SINR of 4 dB, \
               finds neither. Stations that found no frame have received no damaged one, so after a collision they wait \
               for DIFS (50 us), where Airlane, ns-2 and the standard have EIFS (364 us). The more stations there are, the \
               more collisions. The column \"same rule\" is the same program with nothing changed but reception: damaged \
               frames are noticed, EIFS follows, and the gap closes to within 5 %.",
        explains: |row, gap| gap < 0.0 && matches!(row.setting.places, Places::Ring(10..)),
    },
    Cause {
        letter: 'b',
        text: "The near station is 6 dB stronger. Of two RTS that begin in one slot ns-3 finds the stronger preamble (4 dB) \
               and decodes 1 Mbit/s at 6 dB, so the near station wins every collision. By the rule of 10 dB both are lost, \
               as the column \"same rule\" shows, and the far station gets as much as here.",
        explains: |row, gap| {
            gap > 0.0
                && row.far
                && row.setting.rts
                && row.setting.places == Places::Unequal(50, 100)
        },
    },
];

impl Beside {
    /// The letter of the reason for a difference beyond the limit, if one is known.
    fn cause(&self, reference: Reference) -> Option<char> {
        let is_own = reference == Reference::Ns3(Reception::Own);
        let (gap, _) = self.gap(reference)?;
        let found = CAUSES.iter().find(|cause| (cause.explains)(self, gap));
        found.filter(|_| is_own).map(|cause| cause.letter)
    }

    /// Whether each difference is within [`LIMIT`] or has a known cause.
    pub fn holds(&self) -> bool {
        REFERENCES
            .iter()
            .all(|reference| self.is_near(*reference) || self.cause(*reference).is_some())
    }
}

/// One reference in the row of a setting: its goodput, and the gap.
fn cells(row: &Beside, reference: Reference) -> String {
    let (Some(theirs), Some((gap, half))) = (row.reference(reference), row.gap(reference)) else {
        return "-|-".to_owned();
    };
    let note = match (row.is_near(reference), row.cause(reference)) {
        (true, _) => String::new(),
        (false, Some(letter)) => format!("({letter})"),
        (false, None) => "(?)".to_owned(),
    };
    let (gap, half) = (gap * 100.0, half * 100.0);
    format!("{:.3}|{gap:+.1}±{half:.1}{note}", theirs.mean / 1e6)
}

/// The report: the method, every setting, and the causes.
pub fn markdown(rows: &[Beside]) -> String {
    let mut text = format!(
        "# 802.11 over one hop: Airlane beside ns-3 and ns-2\n\n\
         Written by `make validate-ns3`, which compiles `crates/checks/bench/ns3/one_hop.cc` against ns-3.37 (Debian's \
         package `libns3-dev`) and runs `ns2/one_hop.tcl` in ns-2 2.35 if it is installed. Stations send UDP to one \
         receiver faster than the channel carries. Each has 802.11b with long preambles, 11 Mbit/s for data and 1 Mbit/s \
         for the rest, frames of 1,048 bytes, seven tries, or four after a CTS, and a queue of 100 packets. The head of \
         `one_hop.cc` lists every parameter with its source. {RUNS} runs of {SECONDS} s in each simulator.\n\n"
    );
    for reference in REFERENCES {
        let known: Vec<f64> = rows
            .iter()
            .filter_map(|row| row.gap(reference))
            .map(|(gap, _)| gap.abs())
            .collect();
        if known.is_empty() {
            continue;
        }
        let near = known.iter().filter(|gap| **gap <= LIMIT).count();
        writeln!(
            text,
            "- {}: {near} of {} goodputs are within {:.0} %.",
            name(reference),
            known.len(),
            LIMIT * 100.0
        )
        .expect("a string takes all");
    }
    text.push_str(
        "\nGoodput of all stations in Mbit/s; gap of Airlane in percent, with its 95 % confidence interval. A letter names \
         the cause of a gap beyond 5 %.\n\n\
         |setting|Airlane|ns-3, same rule|gap|ns-3, its own|gap|ns-2|gap|\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let cells = REFERENCES.map(|reference| cells(row, reference)).join("|");
        writeln!(
            text,
            "|{}|{:.3}|{cells}|",
            row.label,
            row.airlane.mean / 1e6
        )
        .expect("a string takes all");
    }
    for cause in &CAUSES {
        let used = rows.iter().any(|row| {
            REFERENCES
                .iter()
                .any(|r| !row.is_near(*r) && row.cause(*r) == Some(cause.letter))
        });
        if used {
            write!(text, "\n**({})** {}\n", cause.letter, cause.text).expect("a string takes all");
        }
    }
    text
}

/// What the report calls a reference.
pub(super) const fn name(reference: Reference) -> &'static str {
    match reference {
        Reference::Ns3(Reception::Threshold) => "ns-3 with Airlane's and ns-2's rule of reception",
        Reference::Ns3(Reception::Own) => "ns-3 with its own reception",
        Reference::Ns2 => "ns-2",
    }
}
