//! A comparison as an SVG picture: one panel for each measure, one bar for each scenario.
//!
//! The SVG is written by hand, since a bar chart is only rectangles and text. No fonts or scripts
//! are embedded. The colours are those of Okabe and Ito, which colour-blind readers can tell apart.

use std::fmt::{Display, Write as _};

use crate::chart::{Chart, Measure};

const COLOURS: [&str; 6] = [
    "#999999", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9",
];
const WIDTH: usize = 760;
const MARGIN: usize = 24;
/// Where bars start, pixels.
const BAR_X: usize = 250;
const BAR_LENGTH: f64 = 340.0;
const BAR_HEIGHT: usize = 18;
const BAR_STEP: usize = 23;
const PANEL_GAP: usize = 16;

/// The picture of all `comparisons`, one below the other.
pub fn picture(comparisons: &[Chart]) -> String {
    let mut body = String::new();
    let mut y = MARGIN;
    for comparison in comparisons {
        y = draw(&mut body, comparison, y);
    }
    let height = y + MARGIN / 2;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// Draws downwards from `y`; returns where the next comparison may start.
fn draw(body: &mut String, comparison: &Chart, mut y: usize) -> usize {
    y += 8;
    for (i, line) in comparison.title.lines().enumerate() {
        let bold = "font-size=\"16\" font-weight=\"bold\"";
        let style = if i == 0 { bold } else { "fill=\"#444444\"" };
        text(body, MARGIN, y, "start", style, line);
        y += 22;
    }
    let mut x = MARGIN;
    for (i, way) in comparison.ways.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let top = y - 10;
        push(
            body,
            format_args!(
                "<rect x=\"{x}\" y=\"{top}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>"
            ),
        );
        text(body, x + 18, y, "start", "fill=\"#444444\"", way);
        // Seven pixels a character suffice for any sans-serif face of this size.
        x += 18 + 7 * way.chars().count() + 22;
    }
    y += 18;
    for measure in &comparison.measures {
        y = panel(body, measure, y) + PANEL_GAP;
    }
    y + MARGIN / 2
}

fn panel(body: &mut String, measure: &Measure, top: usize) -> usize {
    let longest = measure
        .values
        .iter()
        .flatten()
        .map(|v| v.mean + v.half_width.unwrap_or(0.0))
        .filter(|reach| reach.is_finite())
        .fold(measure.longest(), f64::max);
    let mut y = top;
    let name = format!("{} {}", measure.flow, measure.what);
    text(body, BAR_X - 12, top + 14, "end", "", &name);
    let hint = "fill=\"#777777\" font-size=\"11\"";
    text(
        body,
        BAR_X - 12,
        top + 30,
        "end",
        hint,
        measure.better.in_words(),
    );
    for (i, value) in measure.values.iter().enumerate() {
        let Some(value) = value.filter(|v| v.mean.is_finite()) else {
            y += BAR_STEP;
            continue;
        };
        let colour = COLOURS[i % COLOURS.len()];
        let length = (value.mean / longest * BAR_LENGTH).max(1.0);
        push(
            body,
            format_args!(
                "<rect x=\"{BAR_X}\" y=\"{y}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" fill=\"{colour}\"/>"
            ),
        );
        let mut label_x = BAR_X as f64 + length;
        if let Some(half) = value.half_width.filter(|h| *h > 0.0) {
            let at = |v: f64| BAR_X as f64 + (v / longest * BAR_LENGTH).max(0.0);
            let (from, to) = (at(value.mean - half), at(value.mean + half));
            interval(body, [from, to], (y + BAR_HEIGHT / 2) as f64, "black");
            label_x = label_x.max(to);
        }
        let shown = value.show(measure.unit).to_string();
        text(
            body,
            label_x as usize + 8,
            y + 13,
            "start",
            "fill=\"#444444\"",
            &shown,
        );
        y += BAR_STEP;
    }
    y
}

/// An interval between two x positions.
pub(crate) fn interval(body: &mut String, [from, to]: [f64; 2], y: f64, colour: &str) {
    let (above, below) = (y - 4.0, y + 4.0);
    push(
        body,
        format_args!(
            "<path d=\"M{from:.1} {y}H{to:.1}M{from:.1} {above}V{below}M{to:.1} {above}V{below}\" \
             stroke=\"{colour}\" fill=\"none\"/>"
        ),
    );
}

pub(crate) fn text(
    body: &mut String,
    x: impl Display,
    y: impl Display,
    anchor: &str,
    more: &str,
    content: &str,
) {
    let content = content
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    push(
        body,
        format_args!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" {more}>{content}</text>"),
    );
}

pub(crate) fn push(body: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(body, "{element}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Better;
    use crate::quantity::{Estimate, Unit};

    #[test]
    fn the_picture_is_well_formed_and_escapes_names() {
        let picture = picture(&[Chart {
            title: "a < b & c".to_owned(),
            ways: vec!["raw".to_owned(), "services".to_owned()],
            measures: vec![Measure {
                flow: "file".to_owned(),
                what: "throughput".to_owned(),
                unit: Unit::BitsPerSecond,
                better: Better::Higher,
                values: vec![
                    Some(Estimate {
                        half_width: Some(2e5),
                        ..Estimate::single(1e6)
                    }),
                    Some(Estimate::single(f64::NAN)),
                ],
            }],
        }]);
        assert!(picture.contains("a &lt; b &amp; c"));
        assert_eq!(
            picture.matches("<text").count(),
            picture.matches("</text>").count()
        );
        // The background, two keys of the legend and one bar: the value that is not a number gets
        // no bar.
        assert_eq!(picture.matches("<rect").count(), 4);
        assert!(picture.contains("<path"), "the interval is drawn");
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }
}
