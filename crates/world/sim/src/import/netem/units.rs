//! Numbers in tc's notation.

use airlane_base::{Duration, Probability, Rate};

use crate::import::words::{ImportError, Word, Words};
use crate::scenario::LONGEST_RUN;

/// The largest rate that netem and tbf can express.
const FASTEST_BPS: f64 = 1e15;

/// Percentages in order, with or without their names; the first one is required.
pub(super) fn percents<const N: usize>(
    words: &mut Words<'_>,
    names: [&str; N],
) -> Result<[Option<Probability>; N], ImportError> {
    let mut found = [None; N];
    for (i, name) in names.iter().enumerate() {
        let named = words.skip(name);
        // "1-h" begins like a number.
        let other = words
            .peek()
            .is_some_and(|word| names.contains(&word.text.as_str()));
        let word = match words.peek() {
            Some(word) if word.is_number() && !other => word,
            _ if named || i == 0 => {
                return Err(words.expect("a percentage")?.unknown("a percentage"));
            }
            _ => continue,
        };
        words.next();
        found[i] = Some(percent(word)?);
    }
    Ok(found)
}

/// A number and the unit after it.
pub(super) fn number<'a>(word: &'a Word, expected: &str) -> Result<(f64, &'a str), ImportError> {
    let text = word.text.as_str();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let value: Option<f64> = text[..end].parse().ok();
    let value = value.filter(|value| *value >= 0.0 && value.is_finite());
    Ok((value.ok_or_else(|| word.unknown(expected))?, &text[end..]))
}

pub(super) fn count(word: &Word) -> Result<u64, ImportError> {
    let expected = "a whole number";
    word.text.parse().map_err(|_| word.unknown(expected))
}

/// A percentage, with or without a percent sign.
pub(super) fn percent(word: &Word) -> Result<Probability, ImportError> {
    let expected = "a percentage, 0% to 100%";
    let (value, unit) = number(word, expected)?;
    let found = Probability::new(value / 100.0).filter(|_| matches!(unit, "" | "%"));
    found.ok_or_else(|| word.unknown(expected))
}

/// A duration; microseconds if no unit is given.
pub(super) fn time(word: &Word) -> Result<Duration, ImportError> {
    let expected = "a time, such as \"25ms\"";
    let (value, unit) = number(word, expected)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1.0,
        "ms" | "msec" | "msecs" => 1e-3,
        "" | "us" | "usec" | "usecs" => 1e-6,
        "ns" | "nsec" | "nsecs" => 1e-9,
        _ => return Err(word.unknown(expected)),
    };
    let time = Duration::from_secs_f64(value * factor);
    if time > LONGEST_RUN {
        return Err(word.wrong(
            format!("\"{}\" is longer than any run", word.text),
            format!("at most {LONGEST_RUN}"),
        ));
    }
    Ok(time)
}

/// A rate: K is 1000, `Ki` is 1024, and `bps` means bytes. None for zero, which means no limit.
pub(super) fn rate(word: &Word) -> Result<Option<Rate>, ImportError> {
    let expected = "a rate, such as \"20mbit\"";
    let (value, unit) = number(word, expected)?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, bits) = match unit.strip_suffix("bps") {
        Some(prefix) => (prefix, 8.0),
        None => (unit.strip_suffix("bit").unwrap_or(&unit), 1.0),
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1_024.0,
        "mi" => 1_048_576.0,
        "gi" => 1_073_741_824.0,
        _ => return Err(word.unknown(expected)),
    };
    let bps = value * factor * bits;
    if bps > FASTEST_BPS {
        return Err(word.wrong(
            format!("\"{}\" is faster than anything", word.text),
            "expected at most 1000tbit",
        ));
    }
    // A rate below 1 bit/s is not zero.
    let bps = if bps > 0.0 { (bps + 0.5).max(1.0) } else { 0.0 };
    Ok(Rate::from_bps(bps as u64))
}

/// A size in bytes; K is 1024.
pub(super) fn size(word: &Word) -> Result<u64, ImportError> {
    let expected = "a size, such as \"32kb\"";
    let (value, unit) = number(word, expected)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "p" => 1.0,
        "k" | "kb" => 1_024.0,
        "m" | "mb" => 1_048_576.0,
        "g" | "gb" => 1_073_741_824.0,
        "kbit" => 128.0,
        "mbit" => 131_072.0,
        "gbit" => 134_217_728.0,
        _ => return Err(word.unknown(expected)),
    };
    let bytes = value * factor;
    if bytes > 1e15 {
        return Err(word.wrong(
            format!("\"{}\" is too much", word.text),
            "expected at most 1000000gb",
        ));
    }
    Ok(bytes as u64)
}

/// A size, optionally followed by a cell size such as `/8`.
pub(super) fn size_of_cells(words: &mut Words<'_>) -> Result<u64, ImportError> {
    let word = words.expect("a size, such as \"32kbit\"")?;
    let text = word
        .text
        .split_once('/')
        .map_or(word.text.as_str(), |(size, _)| size);
    size(&Word {
        text: text.to_owned(),
        ..word.clone()
    })
}
