//! Finds claims that their own source contradicts: pairs of checks that cannot both hold, whatever
//! is measured.
//!
//! Two orderings of the same two values exclude each other if their bands share no difference, as
//! with "slightly above" and "far above", or "above" and "at most". An ordering of two ratios and
//! the printed ranges of both exclude each other unless both the least and the greatest values are
//! in that order.
//!
//! A sentence about one figure outranks a summary of the chapter, and a printed number outranks
//! both. Of two claims, the one of lower rank is contradicted; if they rank equally, both are.

use std::collections::BTreeMap;

use super::Claim;
use crate::data::MeasuredData;
use crate::expression::{Comparator, Expression, Operand, Quantity};
use crate::study::Study;
use crate::verdict::print;

/// Difference from which a value is "far above", as a share of the axis.
const FAR: f64 = 0.25;
/// Two ratios that are this far apart are not even nearly equal.
const APART: f64 = 1.15;

/// An ordering at one place.
struct Relation<'c> {
    claim: &'c Claim,
    /// Whether it is about one figure rather than a chapter.
    figure: bool,
    text: String,
    band: [f64; 2],
}

/// For each contradicted claim, what contradicts it.
pub(crate) type Contradictions = BTreeMap<String, Vec<String>>;

/// The contradictions among the claims of all studies of a work.
pub(crate) fn contradictions(studies: &[Study]) -> Contradictions {
    let mut data = MeasuredData::new(1);
    for study in studies {
        data.insert(study, BTreeMap::new());
    }
    let mut found = Contradictions::new();
    let ranges = printed_ranges(&data, studies);
    let mut relations: BTreeMap<(String, String), Vec<Relation>> = BTreeMap::new();
    for study in studies {
        for claim in study.claims.iter().filter(|c| c.class.is_none()) {
            for (left, comparator, right, at) in claim.pairs() {
                let expressions = [&left.expression, &right.expression];
                let Ok(places) = data.places(&study.id, &expressions, at) else {
                    continue;
                };
                against_ranges(
                    &data,
                    study,
                    claim,
                    (left, comparator, right),
                    &places,
                    &ranges,
                    &mut found,
                );
                for place in &places {
                    let name = |of: &Operand| name(&data, &study.id, &of.expression, place);
                    let (mut one, mut other) = (name(left), name(right));
                    let mut band = print::band(comparator, FAR);
                    if other < one {
                        (one, other) = (other, one);
                        band = [-band[1], -band[0]];
                    }
                    let at = if place.is_empty() {
                        String::new()
                    } else {
                        format!(" at {}", place.join(" "))
                    };
                    let (left, right, sign) = (&left.text, &right.text, comparator.sign());
                    relations.entry((one, other)).or_default().push(Relation {
                        claim,
                        figure: !study.id.starts_with('C'),
                        text: format!("{}: {left} {sign} {right}{at}", claim.id),
                        band: if is_strict(comparator) {
                            opened(band)
                        } else {
                            band
                        },
                    });
                }
            }
        }
    }
    for relations in relations.values() {
        for (i, one) in relations.iter().enumerate() {
            for other in &relations[i + 1..] {
                if one.band[0].max(other.band[0]) <= one.band[1].min(other.band[1]) {
                    continue;
                }
                if !one.figure || other.figure {
                    note(
                        &mut found,
                        &one.claim.id,
                        format!("{} excludes {}", other.text, one.text),
                    );
                }
                if !other.figure || one.figure {
                    note(
                        &mut found,
                        &other.claim.id,
                        format!("{} excludes {}", one.text, other.text),
                    );
                }
            }
        }
    }
    found
}

fn note(found: &mut Contradictions, claim: &str, text: String) {
    let texts = found.entry(claim.to_owned()).or_default();
    if !texts.contains(&text) {
        texts.push(text);
    }
}

const fn is_strict(comparator: Comparator) -> bool {
    matches!(
        comparator,
        Comparator::Greater
            | Comparator::Less
            | Comparator::SlightlyGreater
            | Comparator::SlightlyLess
    )
}

/// Opens the range at zero, which a strict order excludes.
fn opened([low, high]: [f64; 2]) -> [f64; 2] {
    const LEAST: f64 = 1e-9;
    [
        if low == 0.0 { LEAST } else { low },
        if high == 0.0 { -LEAST } else { high },
    ]
}

/// The printed ranges of a ratio, by its names at all places.
type Ranges = BTreeMap<Vec<String>, (String, [f64; 2])>;

fn printed_ranges(data: &MeasuredData, studies: &[Study]) -> Ranges {
    let mut ranges = Ranges::new();
    for study in studies {
        for claim in &study.claims {
            let [gain] = claim.gain.as_slice() else {
                continue;
            };
            let [of] = gain.of.as_slice() else { continue };
            let Ok(places) = data.places(&study.id, &[&of.expression], &[]) else {
                continue;
            };
            let names = names(data, &study.id, of, &places);
            ranges.insert(names, (claim.id.clone(), gain.range));
        }
    }
    ranges
}

fn names(data: &MeasuredData, study: &str, of: &Operand, places: &[Vec<String>]) -> Vec<String> {
    let name = |place: &Vec<String>| name(data, study, &of.expression, place);
    let mut names: Vec<String> = places.iter().map(name).collect();
    names.sort();
    names
}

/// Compares an ordering of ratios with the printed ranges of both, for each value of the axis
/// before the last.
fn against_ranges(
    data: &MeasuredData,
    study: &Study,
    claim: &Claim,
    (left, comparator, right): (&Operand, Comparator, &Operand),
    places: &[Vec<String>],
    ranges: &Ranges,
    found: &mut Contradictions,
) {
    // All places together, and those of each scheme.
    let of_value = |value: &String| {
        let line = places.iter().filter(|place| place.contains(value));
        line.cloned().collect::<Vec<_>>()
    };
    let lines = axis_values(places).into_iter().map(of_value);
    for line in lines.chain([places.to_vec()]) {
        let range = |of: &Operand| ranges.get(&names(data, &study.id, of, &line));
        let (Some((one, [a, b])), Some((other, [c, d]))) = (range(left), range(right)) else {
            continue;
        };
        let excluded = match comparator {
            Comparator::Greater => a < c || b < d,
            Comparator::Less => a > c || b > d,
            Comparator::Nearly => (a / c).max(c / a) > APART || (b / d).max(d / b) > APART,
            _ => false,
        };
        if excluded {
            let (l, r, sign) = (&left.text, &right.text, comparator.sign());
            let text = format!(
                "{one} ({a} to {b} times) and {other} ({c} to {d} times) exclude {}: {l} {sign} {r}",
                claim.id
            );
            note(found, &claim.id, text);
        }
    }
}

fn axis_values(places: &[Vec<String>]) -> Vec<&String> {
    let mut values: Vec<&String> = places.iter().flatten().collect();
    values.sort();
    values.dedup();
    values
}

/// A name that is equal for equal quantities, however they are written.
pub(super) fn name(data: &MeasuredData, own: &str, of: &Expression, place: &[String]) -> String {
    let name = |of: &Expression| name(data, own, of, place);
    match of {
        Expression::Number(number) => number.to_string(),
        Expression::Quantity(quantity) => quantity_name(data, own, quantity, place),
        Expression::Negative(of) => format!("-{}", name(of)),
        Expression::Binary(operator, left, right) => {
            format!("({} {operator:?} {})", name(left), name(right))
        }
        Expression::Call(function, of) => format!("{function:?}({})", name(of)),
    }
}

fn quantity_name(data: &MeasuredData, own: &str, quantity: &Quantity, place: &[String]) -> String {
    let id = quantity.study.as_deref().unwrap_or(own);
    let at: Vec<&str> = data
        .axes(own, quantity)
        .map(|axis| {
            let mut named = quantity.at.iter().chain(place);
            named
                .find(|v| axis.values.contains(v))
                .map_or("", String::as_str)
        })
        .collect();
    format!("{id}.{}[{}]", quantity.metric, at.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::StudyFile;

    fn study(id: &str, claims: &str) -> Study {
        let text = format!(
            "title = \"T\"\nscenario.schema = 1\nmetrics.t = \"a.throughput_bps\"\n\
             axes.scheme = {{ sr = [], rlp = [], default = [] }}\naxes.level = {{ L1 = [], L4 = [] }}\n{claims}"
        );
        let file: StudyFile = toml::from_str(&text).unwrap();
        Study::new(id, file, &BTreeMap::new(), &BTreeMap::new()).unwrap()
    }

    fn claim(id: &str, check: &str) -> String {
        format!("[[claims]]\nid = \"{id}\"\npublished = \"p\"\n{check}\n")
    }

    fn ids(studies: &[Study]) -> Vec<String> {
        contradictions(studies).into_keys().collect()
    }

    #[test]
    fn a_figure_outranks_its_chapter() {
        let figure = study("F1", &claim("figure", "check = \"t[rlp] slightly> t[sr]\""));
        let summary = |check: &str| study("C1", &claim("summary", check));
        for (check, contradicted) in [
            ("check = \"F1.t[sr] > F1.t[rlp] at L4\"", true),
            ("check = \"F1.t[sr] >= F1.t[rlp] at L4\"", true),
            ("check = \"F1.t[rlp] >> F1.t[sr] at L1\"", true),
            ("check = \"F1.t[rlp] > F1.t[sr]\"", false),
            ("check = \"F1.t[rlp] ~ F1.t[sr]\"", false),
            ("check = \"F1.t[sr] > F1.t[default]\"", false),
        ] {
            let found = ids(&[figure.clone(), summary(check)]);
            let expected: &[&str] = if contradicted { &["summary"] } else { &[] };
            assert_eq!(found, expected, "{check}");
        }
    }

    #[test]
    fn the_dissertation_contradicts_itself_where_it_is_known_to() {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../studies/xylomenos-1999"
        );
        let work = crate::Work::load(std::path::Path::new(folder)).unwrap();
        let found = contradictions(&work.studies);
        let by = |id: &str| found.get(&format!("XYL-Q-{id}")).map(|by| by.join("\n"));
        for (id, other) in [
            ("C4-2", "XYL-Q-F4.15-1"),
            ("C4-7", "XYL-Q-F4.15-1"),
            ("C7-5", "XYL-Q-F7.17-1"),
            ("C7-1", "XYL-F7.2-SRM2-gain"),
        ] {
            assert!(
                by(id).is_some_and(|by| by.contains(other)),
                "{id}: {found:#?}"
            );
        }
        assert_eq!(by("F4.15-1"), None);
        assert_eq!(by("F7.17-1"), None);
        assert_eq!(by("F4.2-1"), None);
    }

    #[test]
    fn of_equals_both_are_contradicted() {
        let one = study("F1", &claim("one", "check = \"t[rlp] > t[sr] at L4\""));
        let other = study("F2", &claim("other", "check = \"F1.t[rlp] < F1.t[sr]\""));
        assert_eq!(ids(&[one, other]), ["one", "other"]);
    }

    #[test]
    fn printed_ranges_outrank_orderings() {
        let gain = |id, low, high| {
            claim(
                id,
                &format!("gain = {{ of = \"t[sr] / t[default]\", range = [{low}, {high}] }}"),
            )
        };
        let alone = study("F1", &gain("alone", 2.4, 31.0));
        let mixed = study("F2", &gain("mixed", 1.3, 16.5));
        let summary = |sign: &str| {
            let check =
                format!("check = \"F2.t / F2.t[default] {sign} F1.t / F1.t[default] at sr\"");
            study("C1", &claim("summary", &check))
        };
        for (sign, contradicted) in [("~", true), (">", true), ("<", false)] {
            let found = contradictions(&[alone.clone(), mixed.clone(), summary(sign)]);
            assert_eq!(
                found.contains_key("summary"),
                contradicted,
                "{sign}: {found:?}"
            );
            assert!(!found.contains_key("alone"));
        }
    }
}
