//! Writes every single comparison as a row of CSV, for readers who want to judge by other rules.

use std::fmt::Write as _;

use crate::report::Report;

/// The columns; quantities are in base units.
const HEAD: &str =
    "work,study,claim,check,at,measured,against,ci95_half_width,axis,unit,probability,verdict\n";

/// The comparisons of all claims of a report.
pub fn comparisons(report: &Report) -> String {
    let mut out = HEAD.to_owned();
    for claim in report.claims.iter().chain(&report.apart) {
        for c in &claim.item.comparisons {
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{},{}",
                claim.work,
                claim.item.study,
                cell(&claim.item.id),
                cell(&c.check),
                c.at.join(" "),
                c.measured,
                c.against,
                c.ci95_half_width,
                c.axis.map_or(String::new(), |axis| axis.to_string()),
                c.unit,
                c.probability,
                c.verdict.word(),
            );
        }
    }
    out
}

/// Quoted, because checks contain commas.
fn cell(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_keeps_commas_and_quotes() {
        assert_eq!(cell("t[rlp, L1] > \"1\""), "\"t[rlp, L1] > \"\"1\"\"\"");
    }
}
