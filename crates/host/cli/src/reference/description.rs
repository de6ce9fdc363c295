//! Takes a schema's description apart.

use serde_json::Value;

/// The parts of a description: the meaning, what applies if the key is left out, and the source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) meaning: String,
    pub(crate) left_out: Option<String>,
    pub(crate) source: Option<String>,
}

/// Takes the sentences that begin with `Left out:` and `Source:` out of a description.
pub(crate) fn described(schema: &Value) -> Described {
    let text = schema.get("description").and_then(Value::as_str);
    let mut rest = text.unwrap_or_default().replace('\n', " ");
    let left_out = take(&mut rest, "Left out:");
    let source = take(&mut rest, "Source:");
    let meaning = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    Described {
        meaning,
        left_out,
        source,
    }
}

/// Cuts the sentence that begins with `start` out of `text`.
fn take(text: &mut String, start: &str) -> Option<String> {
    let from = text.find(start)?;
    let sentence = &text[from + start.len()..];
    // A sentence ends where a capital follows; units and abbreviations also end with a dot.
    let end = sentence
        .match_indices(". ")
        .find(|(at, _)| sentence[at + 2..].starts_with(|c: char| c.is_ascii_uppercase()))
        .map_or(sentence.len(), |(at, _)| at + 1);
    let taken = sentence[..end].trim().trim_end_matches('.').to_owned();
    text.replace_range(from..from + start.len() + end, "");
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_split_into_sentences() {
        let schema = serde_json::json!({
            "description": "How long\nit waits. Left out: 1.5 s, of `rlp` 2 s. Source: RFC 6298. Live only.",
        });
        let expected = Described {
            meaning: "How long it waits. Live only.".to_owned(),
            left_out: Some("1.5 s, of `rlp` 2 s".to_owned()),
            source: Some("RFC 6298".to_owned()),
        };
        assert_eq!(described(&schema), expected);
    }
}
