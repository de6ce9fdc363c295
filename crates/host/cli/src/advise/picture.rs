//! The candidates as an SVG picture: a row for each, and a panel for each measure with its own scale.
//!
//! A point is the mean over the runs and a bar its 95 % interval. The thin line through a panel is the base, which all
//! are compared with. What is better is on the right in every panel, so that times and losses run from right to left.

use airlane_advise::{Advice, Measure, What};
use airlane_sim::Estimate;

use super::words::{head, name, of_runs, unit};
use crate::quantity::Estimate as Shown;
use crate::svg::{interval, push, text};

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
    let bold = format!("fill=\"{INK}\" font-weight=\"bold\" font-size=\"14\"");
    text(&mut svg, MARGIN, MARGIN + 12.0, "start", &bold, &title);
    let [chosen, _] = advice.taken_and_other();
    for (row, outcome) in advice.outcomes.iter().enumerate() {
        let weight = if outcome.kind == chosen {
            "bold"
        } else {
            "normal"
        };
        text(
            &mut svg,
            MARGIN + NAMES - 10.0,
            middle(top, row) + 4.0,
            "end",
            &format!("fill=\"{INK}\" font-weight=\"{weight}\""),
            name(outcome.kind),
        );
    }
    for (at, measure) in advice.measures.iter().enumerate() {
        let left = MARGIN + NAMES + at as f64 * (PANEL + GAP);
        panel(&mut svg, advice, at, measure, [left, top, bottom]);
    }
    let note = format!(
        "{}; the line is {}, bold is advised; better is on the right",
        of_runs(advice),
        name(advice.base)
    );
    text(&mut svg, MARGIN, height - 12.0, "start", &small(11), &note);
    svg.push_str("</svg>\n");
    svg
}

/// The middle of a row.
fn middle(top: f64, row: usize) -> f64 {
    top + (row as f64 + 0.5) * ROW
}

fn small(size: u8) -> String {
    format!("fill=\"{PALE}\" font-size=\"{size}\"")
}

fn panel(svg: &mut String, advice: &Advice, at: usize, measure: &Measure, place: [f64; 3]) {
    let [left, top, bottom] = place;
    let reach = |value: &Estimate| {
        let half = value.ci95_half_width.unwrap_or(0.0);
        [(value.mean - half).max(0.0), value.mean + half]
    };
    let reaches = || {
        advice
            .outcomes
            .iter()
            .map(|outcome| reach(&outcome.values[at]))
    };
    let least = reaches().map(|[low, _]| low).fold(f64::INFINITY, f64::min);
    let most = reaches().map(|[_, high]| high).fold(0.0, f64::max);
    // One candidate that is far from all others leaves these room only if the scale is of ratios.
    let logarithmic = least > 0.0 && most > 20.0 * least;
    let scaled = |value: f64| match logarithmic {
        true => libm::log10(value),
        false => value,
    };
    let (low, high) = (scaled(least), scaled(most));
    let margin = 0.05 * (high - low).max(f64::MIN_POSITIVE);
    let rises = measure.what == What::Throughput;
    let x = |value: f64| {
        let part = (scaled(value) - low + margin) / (high - low + 2.0 * margin);
        let part = if rises { part } else { 1.0 - part };
        left + PANEL * part.clamp(0.0, 1.0)
    };
    let centre = left + PANEL / 2.0;
    let ink = format!("fill=\"{INK}\"");
    text(svg, centre, top - 10.0, "middle", &ink, &head(measure));
    push(
        svg,
        format_args!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{PANEL}\" height=\"{}\" fill=\"none\" stroke=\"{PALE}\"/>",
            bottom - top
        ),
    );
    let base = advice.outcomes.iter().find(|of| of.kind == advice.base);
    if let Some(base) = base {
        let x = x(base.values[at].mean);
        push(
            svg,
            format_args!(
                "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"{PALE}\" stroke-dasharray=\"3 3\"/>"
            ),
        );
    }
    let [chosen, _] = advice.taken_and_other();
    for (row, outcome) in advice.outcomes.iter().enumerate() {
        let y = middle(top, row);
        let colour = if outcome.kind == chosen {
            CHOSEN
        } else {
            USUAL
        };
        let value = &outcome.values[at];
        interval(svg, reach(value).map(x), y, colour);
        let x = x(value.mean);
        push(
            svg,
            format_args!("<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"4\" fill=\"{colour}\"/>"),
        );
    }
    let below = bottom + 14.0;
    let ends = if rises { [least, most] } else { [most, least] };
    let places = [(left, "start"), (left + PANEL, "end")];
    for (value, (at, anchor)) in ends.into_iter().zip(places) {
        let shown = Shown::single(value).show(unit(measure)).to_string();
        text(svg, at, below, anchor, &small(11), &shown);
    }
    if logarithmic {
        text(
            svg,
            centre,
            below + 12.0,
            "middle",
            &small(9),
            "logarithmic",
        );
    }
}
