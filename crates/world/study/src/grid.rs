//! Factorial experiments: every combination of values of several keys.

use serde::Serialize;

use crate::point::TOGETHER;

/// A key of the scenarios and the values that it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    path: String,
    values: Vec<String>,
}

impl Grid {
    /// Parses `PATH=VALUE,VALUE`. Equal signs and commas in brackets belong to the path or to a
    /// value.
    pub fn parse(text: &str) -> Option<Self> {
        let at = outside(text, '=').next()?;
        let (path, rest) = (&text[..at], &text[at + 1..]);
        let mut values = vec![];
        let mut from = 0;
        for comma in outside(rest, ',').chain([rest.len()]) {
            values.push(rest[from..comma].trim().to_owned());
            from = comma + 1;
        }
        let whole = !path.is_empty() && values.iter().all(|value| !value.is_empty());
        whole.then(|| Self {
            path: path.to_owned(),
            values,
        })
    }
}

/// The choices that the name of an alternative combines: a place and a value each, or the name of
/// an alternative of the work.
pub(crate) fn choices(name: &str) -> Vec<Choice> {
    let one = |part: &str| match outside(part, '=').next() {
        Some(at) => Choice {
            place: part[..at].to_owned(),
            value: Some(part[at + 1..].to_owned()),
        },
        None => Choice {
            place: part.to_owned(),
            value: None,
        },
    };
    name.split(TOGETHER).map(one).collect()
}

/// One of several choices that apply together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// A path into scenarios, or the name of an alternative.
    pub place: String,
    /// The value at that path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The positions of a character outside brackets and quotes.
fn outside(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let (mut depth, mut quoted) = (0, false);
    text.char_indices().filter_map(move |(at, c)| {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        (c == wanted && depth == 0 && !quoted).then_some(at)
    })
}

/// The alternatives that a command asks for: all of `named` together, at every point of the grids.
/// Empty if nothing is named.
pub fn alternatives_of(named: &[String], grids: &[Grid]) -> Vec<String> {
    let mut points = vec![named.to_vec()];
    for grid in grids {
        points = points
            .iter()
            .flat_map(|point| {
                let values = grid.values.iter();
                values.map(|value| [&point[..], &[format!("{}={value}", grid.path)]].concat())
            })
            .collect();
    }
    points.retain(|point| !point.is_empty());
    points.iter().map(|point| point.join(TOGETHER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_quotes_keep_their_commas() {
        let grid =
            Grid::parse("links.*.scheme(kind=rlp|sr).timers=tight,{ nak = 1, rto = 2 },\"a,b\"")
                .unwrap();
        assert_eq!(grid.path, "links.*.scheme(kind=rlp|sr).timers");
        assert_eq!(grid.values, ["tight", "{ nak = 1, rto = 2 }", "\"a,b\""]);
        for wrong in ["traffic-seed", "=1,2", "a=", "a=1,,2"] {
            assert_eq!(Grid::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_combination_comes_once() {
        let grids = ["a=1,2", "b=x,y,z"].map(|text| Grid::parse(text).unwrap());
        let found = alternatives_of(&["tight".to_owned()], &grids);
        assert_eq!(found.len(), 6);
        assert_eq!(found[0], "tight + a=1 + b=x");
        assert_eq!(found[5], "tight + a=2 + b=z");
        let [tight, a, b] = &choices(&found[5])[..] else {
            panic!("three choices");
        };
        assert_eq!((tight.place.as_str(), &tight.value), ("tight", &None));
        assert_eq!((a.place.as_str(), a.value.as_deref()), ("a", Some("2")));
        assert_eq!((b.place.as_str(), b.value.as_deref()), ("b", Some("z")));
        let both = ["tight".to_owned(), "max-rto-64".to_owned()];
        assert_eq!(alternatives_of(&both, &[]), ["tight + max-rto-64"]);
        assert!(alternatives_of(&[], &[]).is_empty());
    }
}
