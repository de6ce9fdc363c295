//! Words for candidates, measures, gains and prices.

use airlane_advise::{Advice, Compared, Kind, Measure, What};
use airlane_sim::Estimate as Measured;

use crate::quantity::{Estimate, Unit};

pub(super) const fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Without => "without Airlane",
        Kind::NoRepair => "no repair",
        Kind::Default => "the default",
        Kind::Yours => "your file",
        Kind::PagesCopied => "pages copied",
        Kind::PagesCopiedLate => "pages copied late",
        Kind::PagesFirst => "pages first",
        Kind::CallsYounger => "calls younger",
        Kind::Searched => "found by search",
    }
}

/// What the values are of.
pub(super) fn of_runs(advice: &Advice) -> String {
    let Advice {
        runs,
        runs_least: least,
        run_length_s: length,
        seed,
        ..
    } = advice;
    let fewer = match least < runs {
        true => format!(", or {least} where these are clear"),
        false => String::new(),
    };
    format!("mean ± 95 % interval of {runs} runs of {length} s{fewer}, seed {seed}")
}

pub(super) fn head(measure: &Measure) -> String {
    let app = measure.app.name();
    match measure.what {
        What::Throughput | What::PageTime => app,
        What::PageTail => format!("{app}, 95 % within"),
        What::CallLoss => format!("{app}, lost"),
        What::CallDelay => format!("{app}, 99 % within"),
    }
}

pub(super) const fn unit(measure: &Measure) -> Unit {
    match measure.what {
        What::Throughput => Unit::BitsPerSecond,
        What::PageTime | What::PageTail | What::CallDelay => Unit::Seconds,
        What::CallLoss => Unit::Ratio,
    }
}

pub(super) fn show(measure: &Measure, value: &Measured) -> String {
    let estimate = Estimate {
        mean: value.mean,
        half_width: value.ci95_half_width,
        of_runs: None,
    };
    estimate.show(unit(measure)).to_string()
}

/// A gain or a loss: `pages 22 % sooner`.
pub(super) fn change(compared: &Compared) -> String {
    let Compared { measure, gain } = compared;
    let app = measure.app.name();
    let part = measure.said(gain.mean);
    let percent = part.abs() * 100.0;
    let better = gain.mean > 0.0;
    match (measure.what, better) {
        (What::Throughput, _) if part > 1.0 => {
            format!("{app} {:.1} times as fast", part + 1.0)
        }
        (What::Throughput, true) => format!("{app} {percent:.0} % faster"),
        (What::Throughput, false) => format!("{app} {percent:.0} % slower"),
        (What::PageTime, true) => format!("{app} {percent:.0} % sooner"),
        (What::PageTime, false) => format!("{app} {percent:.0} % later"),
        (What::PageTail, true) => format!("{app}: the slowest 5 % {percent:.0} % sooner"),
        (What::PageTail, false) => format!("{app}: the slowest 5 % {percent:.0} % later"),
        (What::CallLoss, true) => format!("{app}: {percent:.1} points less lost"),
        (What::CallLoss, false) => format!("{app}: {percent:.1} points more lost"),
        (What::CallDelay, true) => format!("{app}: {percent:.0} % less delay"),
        (What::CallDelay, false) => format!("{app}: {percent:.0} % more delay"),
    }
}

/// The price of a candidate, taken from the worst case if the mean shows none.
pub(super) fn price(compared: &Compared) -> String {
    match compared.is_loss() {
        true => change(compared),
        false => {
            let half = compared.gain.ci95_half_width.unwrap_or(0.0);
            let mut worst = compared.clone();
            worst.gain.mean -= half;
            format!("{}, at worst", change(&worst))
        }
    }
}

pub(super) fn balance(all: &[Compared]) -> (String, String) {
    let gains: Vec<String> = all.iter().filter(|c| c.is_gain()).map(change).collect();
    let prices: Vec<String> = all.iter().filter(|c| c.is_price()).map(price).collect();
    (gains.join(", "), prices.join(", "))
}

/// What may be gained, where the interval is too wide to tell; empty if nothing.
pub(super) fn open(all: &[Compared]) -> String {
    let open: Vec<String> = all.iter().filter(|c| c.may_gain()).map(change).collect();
    open.join(", ")
}

pub(super) fn balanced(all: &[Compared]) -> String {
    let (gains, prices) = balance(all);
    let open = open(all);
    let named = [
        ("gains", gains),
        ("costs", prices),
        ("may gain, but the interval is too wide to tell", open),
    ];
    let named = named.iter().filter(|(_, what)| !what.is_empty());
    let named: Vec<String> = named
        .map(|(verb, what)| format!("{verb}: {what}"))
        .collect();
    match &named[..] {
        [] => "changes nothing by 3 %".to_owned(),
        [only] if only.starts_with("costs") => format!("gains nothing, and {only}"),
        named => named.join("; "),
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use airlane_advise::Apps;
    use airlane_sim::Estimate;

    use super::*;

    /// A gain of the file's throughput, and half of its interval.
    fn file(mean: f64, half: f64) -> Compared {
        Compared {
            measure: Measure {
                app: "file".parse::<Apps>().unwrap().0[0],
                what: What::Throughput,
            },
            gain: Estimate {
                n: 3,
                runs: 3,
                mean,
                sd: half,
                ci95_half_width: Some(half),
            },
        }
    }

    #[test]
    fn a_wide_interval_is_not_nothing() {
        let wide = balanced(&[file(14.0, 26.0)]);
        assert!(wide.contains("may gain") && wide.contains("file"), "{wide}");
        assert!(balanced(&[file(14.0, 2.0)]).starts_with("gains: file"));
        assert_eq!(balanced(&[file(0.01, 0.5)]), "changes nothing by 3 %");
        assert!(balanced(&[file(-0.5, 0.1)]).starts_with("gains nothing, and costs: file"));
    }
}
