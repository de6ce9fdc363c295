//! Makes the compact tables of `data/http-mah` from the full ones:
//!
//! ```text
//! cargo run -p airlane-sim --example compact_cdf < HttpReplyLength.cdf > data/http-mah/HttpReplyLength.cdf
//! ```
//!
//! Merges neighbouring values that differ by at most 1.5 % into their mean, rounded to a whole number. So every
//! quantile stays within 1 %, and the mean and the deviation stay closer than that.

#![expect(clippy::print_stdout, reason = "the table goes to standard output")]

use std::io::Read as _;

const CLOSE: f64 = 1.015;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let mut groups: Vec<Vec<(f64, u64)>> = vec![];
    for line in text.lines() {
        let mut fields = line.split_whitespace();
        let (Some(value), Some(count)) = (fields.next(), fields.next()) else {
            continue;
        };
        let row: (f64, u64) = (value.parse()?, count.parse()?);
        match groups.last_mut() {
            Some(group) if row.0 <= group[0].0 * CLOSE => group.push(row),
            _ => groups.push(vec![row]),
        }
    }
    let all: u64 = groups.iter().flatten().map(|row| row.1).sum();
    let mut below = 0;
    for group in groups {
        let count: u64 = group.iter().map(|row| row.1).sum();
        let mean = group.iter().map(|(v, n)| v * *n as f64).sum::<f64>() / count as f64;
        below += count;
        println!("{} {count} {:.12}", mean.round(), below as f64 / all as f64);
    }
    Ok(())
}
