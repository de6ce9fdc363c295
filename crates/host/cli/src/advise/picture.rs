//! The candidates as an SVG picture: a row for each, and a panel for each measure with its own scale.
//!
//! A point is the mean over the runs and a bar its 95 % interval. The thin line through a panel is the base, which all
//! are compared with. What is better is on the right in every panel, so that times and losses run from right to left.

use std::fmt::Write as _;

use airlane_advise::{Advice, Kind, Measure, What};
use airlane_sim::Estimate;

use super::words::{head, name, unit};
use crate::quantity::Estimate as Shown;
use crate::svg::escaped;

const ROW: f64 = 26.0;
/// Width of the names of the candidates.
const NAMES: f64 = 150.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 24.0;
const MARGIN: f64 = 20.0;
/// The note below the panels takes so much.
const LEAST: f64 = 780.0;
/// Height of the titles above the panels.
const TITLES: f64 = 62.0;
/// Height of the scales below them.
const SCALES: f64 = 58.0;

const INK: &str = "#222222";
const PALE: &str = "#888888";
// Okabe and Ito's, which colour-blind readers can tell apart.
const USUAL: &str = "#0072b2";
const CHOSEN: &str = "#d55e00";

/// The picture.
pub(super) fn picture(link: &str, advice: &Advice) -> String {
    let measures = advice.measures.len() as f64;
    let width = (2.0 * MARGIN + NAMES + measures * (PANEL + GAP)).max(LEAST);
    let top = MARGIN + TITLES;
    let bottom = top + advice.outcomes.len() as f64 * ROW;
    let height = bottom + SCALES;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let title = match link {
        "" => "Candidates on the recorded link".to_owned(),
        link => format!("Candidates on the link of {link}"),
    };
    let bold = "font-weight=\"bold\" font-size=\"14\"";
    text(
        &mut svg,
        [MARGIN, MARGIN + 12.0],
        "start",
        INK,
        bold,
        &title,
    );
    let chosen = chosen(advice);
    for (row, outcome) in advice.outcomes.iter().enumerate() {
        let y = top + (row as f64 + 0.5) * ROW;
        let style = if outcome.kind == chosen {
            "font-weight=\"bold\""
        } else {
            ""
        };
        text(
            &mut svg,
            [MARGIN + NAMES - 10.0, y + 4.0],
            "end",
            INK,
            style,
            name(outcome.kind),
        );
    }
    for (at, measure) in advice.measures.iter().enumerate() {
        let left = MARGIN + NAMES + at as f64 * (PANEL + GAP);
        panel(&mut svg, advice, at, measure, [left, top, bottom]);
    }
    let note = format!(
        "mean and 95 % interval of {} runs of {} s, seed {}; the line is {}, bold is advised; better is on the right",
        advice.runs,
        advice.run_length_s,
        advice.seed,
        name(advice.base)
    );
    let small = "font-size=\"11\"";
    text(
        &mut svg,
        [MARGIN, height - 12.0],
        "start",
        PALE,
        small,
        &note,
    );
    svg.push_str("</svg>\n");
    svg
}

/// The candidate to take.
fn chosen(advice: &Advice) -> Kind {
    match advice.choice {
        airlane_advise::Choice::Keep => advice.base,
        airlane_advise::Choice::Change { to, .. } => to,
    }
}

fn panel(svg: &mut String, advice: &Advice, at: usize, measure: &Measure, place: [f64; 3]) {
    let [left, top, bottom] = place;
    let reach = |value: &Estimate| {
        let half = value.ci95_half_width.unwrap_or(0.0);
        [(value.mean - half).max(0.0), value.mean + half]
    };
    let values = || advice.outcomes.iter().map(|outcome| &outcome.values[at]);
    let least = values()
        .map(|value| reach(value)[0])
        .fold(f64::INFINITY, f64::min);
    let most = values().map(|value| reach(value)[1]).fold(0.0, f64::max);
    // One candidate that is far from all others leaves these room only if the scale is of ratios.
    let logarithmic = least > 0.0 && most > 20.0 * least;
    let scaled = |value: f64| {
        if logarithmic {
            libm::log10(value)
        } else {
            value
        }
    };
    let (low, high) = (scaled(least), scaled(most));
    let margin = 0.05 * (high - low).max(f64::MIN_POSITIVE);
    let (low, high) = (low - margin, high + margin);
    let x = |value: f64| {
        let part = (scaled(value) - low) / (high - low);
        let part = if measure.what == What::Throughput {
            part
        } else {
            1.0 - part
        };
        left + PANEL * part.clamp(0.0, 1.0)
    };
    text(
        svg,
        [left + PANEL / 2.0, top - 10.0],
        "middle",
        INK,
        "",
        &head(measure),
    );
    let frame = format!(
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{PANEL:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"{PALE}\"/>",
        bottom - top
    );
    push(svg, &frame);
    let base = advice
        .outcomes
        .iter()
        .find(|outcome| outcome.kind == advice.base);
    if let Some(base) = base {
        let x = x(base.values[at].mean);
        let line = format!(
            "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" stroke=\"{PALE}\" stroke-dasharray=\"3 3\"/>"
        );
        push(svg, &line);
    }
    for (row, outcome) in advice.outcomes.iter().enumerate() {
        let y = top + (row as f64 + 0.5) * ROW;
        let colour = if outcome.kind == chosen(advice) {
            CHOSEN
        } else {
            USUAL
        };
        let value = &outcome.values[at];
        let [from, to] = reach(value).map(x);
        let (above, below) = (y - 4.0, y + 4.0);
        let bar = format!(
            "<path d=\"M{from:.1} {y:.1}H{to:.1}M{from:.1} {above:.1}V{below:.1}M{to:.1} {above:.1}V{below:.1}\" \
             stroke=\"{colour}\" stroke-width=\"1.5\" fill=\"none\"/>"
        );
        push(svg, &bar);
        let point = format!(
            "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>",
            x(value.mean)
        );
        push(svg, &point);
    }
    let ends = [(least, 14.0), (most, 14.0)];
    let anchors = if measure.what == What::Throughput {
        ["start", "end"]
    } else {
        ["end", "start"]
    };
    for ((value, below), anchor) in ends.into_iter().zip(anchors) {
        let at = if anchor == "start" {
            left
        } else {
            left + PANEL
        };
        let shown = Shown::single(value).show(unit(measure)).to_string();
        text(
            svg,
            [at, bottom + below],
            anchor,
            PALE,
            "font-size=\"11\"",
            &shown,
        );
    }
    if logarithmic {
        let said = "logarithmic";
        text(
            svg,
            [left + PANEL / 2.0, bottom + 14.0],
            "middle",
            PALE,
            "font-size=\"9\"",
            said,
        );
    }
}

fn text(svg: &mut String, at: [f64; 2], anchor: &str, colour: &str, more: &str, content: &str) {
    let content = escaped(content);
    let [x, y] = at;
    let element = format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\" {more}>{content}</text>"
    );
    push(svg, &element);
}

fn push(svg: &mut String, element: &str) {
    let _ = writeln!(svg, "{element}");
}
