//! Parses `--vary`: keys of scenarios and the values that each takes in turn.

use crate::fault::BadInput;

/// A table cannot show more points, and memory needs a bound.
const MOST_POINTS: usize = 1_000;

/// A key of the files and the values that it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vary {
    pub(crate) key: String,
    pub(crate) values: Vec<String>,
}

impl Vary {
    /// Parses `KEY=V1,V2,..`. Commas within brackets and quotes do not separate values.
    pub(crate) fn parse(text: &str) -> Result<Self, BadInput> {
        let wrong = |why: &str| {
            BadInput(format!(
                "--vary {text}: {why}; write KEY=V1,V2,.., such as links.radio.errors.rate=0.01,0.05"
            ))
        };
        let (key, list) = text
            .split_once('=')
            .ok_or_else(|| wrong("there is no `=` here"))?;
        let (mut values, mut depth, mut quote) = (vec![String::new()], 0, None);
        for c in list.chars() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('"' | '\'', None) => quote = Some(c),
                ('[' | '{', None) => depth += 1,
                (']' | '}', None) => depth -= 1,
                (',', None) if depth == 0 => {
                    values.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let Some(last) = values.last_mut() {
                last.push(c);
            }
        }
        let values: Vec<String> = values.iter().map(|v| v.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err(wrong("a value is empty"));
        }
        let key = key.trim().to_owned();
        Ok(Self { key, values })
    }

    /// All axes, each with a different key.
    pub(crate) fn all(texts: &[String]) -> Result<Vec<Self>, BadInput> {
        let axes = texts.iter().map(|text| Self::parse(text));
        let axes: Vec<Self> = axes.collect::<Result<_, _>>()?;
        for (i, axis) in axes.iter().enumerate() {
            if axes[..i].iter().any(|other| other.key == axis.key) {
                let key = &axis.key;
                return Err(BadInput(format!(
                    "--vary {key}: it is varied twice; write all of its values after one `{key}=`"
                )));
            }
        }
        let most = axes
            .iter()
            .try_fold(1, |n: usize, axis| n.checked_mul(axis.values.len()));
        if most.is_none_or(|points| points > MOST_POINTS) {
            let counts: Vec<String> = axes
                .iter()
                .map(|axis| axis.values.len().to_string())
                .collect();
            return Err(BadInput(format!(
                "--vary: {} combinations of values are too many; at most {MOST_POINTS}",
                counts.join(" x ")
            )));
        }
        Ok(axes)
    }
}

/// Every combination of values; the last axis varies fastest. One point without values if nothing
/// is varied.
pub(crate) fn points(axes: &[Vary]) -> Vec<Vec<String>> {
    axes.iter().fold(vec![vec![]], |points, axis| {
        let with = |point: &Vec<String>| {
            let values = axis.values.iter();
            values
                .map(|value| [&point[..], std::slice::from_ref(value)].concat())
                .collect::<Vec<_>>()
        };
        points.iter().flat_map(with).collect()
    })
}

/// `a = 1, b = 2`.
pub(crate) fn named(axes: &[Vary], point: &[String]) -> String {
    let pairs = axes.iter().zip(point);
    let pairs: Vec<String> = pairs
        .map(|(axis, value)| format!("{} = {value}", axis.key))
        .collect();
    pairs.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_outside_of_brackets_and_quotes() {
        let vary = Vary::parse("a.b = 1, \"2, 3\",{ kind = 'x', y = [1,2] }").unwrap();
        assert_eq!(vary.key, "a.b");
        assert_eq!(vary.values, ["1", "\"2, 3\"", "{ kind = 'x', y = [1,2] }"]);
        for text in ["a", "a=", "a=1,,2"] {
            let error = Vary::parse(text).unwrap_err().to_string();
            assert!(error.contains("write KEY=V1,V2"), "{error}");
        }
    }

    fn all(texts: &[&str]) -> Result<Vec<Vary>, String> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        Vary::all(&texts).map_err(|error| error.to_string())
    }

    #[test]
    fn axes_are_combined() {
        assert_eq!(points(&[]), [Vec::<String>::new()]);
        let axes = all(&["a=1,2", "b=x,y,z"]).unwrap();
        let all = points(&axes);
        assert_eq!(all.len(), 6);
        assert_eq!(
            (&all[1][..], &all[3][..]),
            (
                &["1", "y"].map(str::to_owned)[..],
                &["2", "x"].map(str::to_owned)[..]
            )
        );
        assert_eq!(named(&axes, &all[4]), "a = 2, b = y");
    }

    #[test]
    fn too_many_points_are_refused_before_there_are_any() {
        let ten = "1,2,3,4,5,6,7,8,9,10";
        let axes = ["a", "b", "c"].map(|key| format!("{key}={ten}"));
        let mut texts: Vec<&str> = axes.iter().map(String::as_str).collect();
        assert_eq!(all(&texts).unwrap().len(), 3);
        texts.push("d=1,2");
        assert_eq!(
            all(&texts).unwrap_err(),
            "--vary: 10 x 10 x 10 x 2 combinations of values are too many; at most 1000"
        );
        let many: Vec<String> = (0..30).map(|n| format!("k{n}={ten}")).collect();
        assert!(Vary::all(&many).is_err());
        assert!(all(&["a=1", "a=2"]).unwrap_err().contains("varied twice"));
    }
}
