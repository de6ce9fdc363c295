//! Flows of real programs, as `captures/capture` writes them: times, lengths and first bytes, and nothing else.
//!
//! ```text
//! # curl fetches ten pages, HTTP/1.1
//! page 6 80            what it may be classified as, protocol, port of the server
//! 0>0 60               microseconds since the previous packet, direction, connection, length
//! 310<0 60 16fefd      and the first bytes after a UDP header
//! ```

use airlane_link::classify::Behaviour;

use super::traffic::{Kind, Sample};

/// Why a text is not a capture.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct CaptureError {
    line: usize,
    problem: &'static str,
}

/// Reads a capture of this name.
///
/// # Errors
/// If a line has another form.
pub fn read(name: &str, text: &str) -> Result<Kind, CaptureError> {
    let mut kind = Kind {
        name: format!("{name} (captured)"),
        source: "a capture",
        protocol: 0,
        port: 0,
        samples: Vec::new(),
    };
    let (mut may_be, mut at_us) = (None, 0);
    for (n, line) in text.lines().enumerate() {
        let wrong = |problem| CaptureError {
            line: n + 1,
            problem,
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            [what, protocol, port] if may_be.is_none() => {
                let found = EXPECTED.iter().find(|(name, _)| *name == what);
                let (_, behaviours) = found.ok_or_else(|| wrong("the kind is unknown"))?;
                may_be = Some(*behaviours);
                kind.protocol = protocol.parse().map_err(|_| wrong("no protocol"))?;
                kind.port = port.parse().map_err(|_| wrong("no port"))?;
            }
            [start, len, ref head @ ..] => {
                let up = start.contains('>');
                let (gap, connection) = start
                    .split_once(['>', '<'])
                    .ok_or_else(|| wrong("there is no way"))?;
                at_us += gap.parse::<u64>().map_err(|_| wrong("no time"))?;
                kind.samples.push(Sample {
                    at_us,
                    up,
                    len: len.parse().map_err(|_| wrong("no length"))?,
                    connection: connection.parse().map_err(|_| wrong("no connection"))?,
                    head: bytes(head.first().unwrap_or(&"")).ok_or_else(|| wrong("no bytes"))?,
                    may_be: &[],
                });
            }
            _ => return Err(wrong("it has too few words")),
        }
    }
    let (first, then) = may_be.unwrap_or((&[], &[]));
    for (n, sample) in kind.samples.iter_mut().enumerate() {
        sample.may_be = if n < LOGIN { first } else { then };
    }
    Ok(kind)
}

/// Packets of a login.
const LOGIN: usize = 60;

/// Allowed classes of a capture's packets: at first, and after as many packets as a login has.
const EXPECTED: [(&str, Allowed); 6] = [
    ("call", (&[Behaviour::Call], &[Behaviour::Call])),
    (
        "interactive",
        (&[Behaviour::Interactive], &[Behaviour::Interactive]),
    ),
    ("page", (&[Behaviour::Page], &[Behaviour::Page])),
    ("file", (&[Behaviour::File], &[Behaviour::File])),
    ("video", (&[Behaviour::Video], &[Behaviour::Video])),
    (
        "login",
        (
            &[Behaviour::Page, Behaviour::Interactive],
            &[Behaviour::Interactive],
        ),
    ),
];
type Allowed = (&'static [Behaviour], &'static [Behaviour]);

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() {
        return None;
    }
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_has_times_directions_and_lengths() {
        let text = "# dig\ninteractive 17 53\n0>0 70 12ab\n2000<0 120\n500>1 70\n";
        let kind = read("dig", text).unwrap();
        assert_eq!((kind.protocol, kind.port), (17, 53));
        let found: Vec<_> = kind
            .samples
            .iter()
            .map(|s| (s.at_us, s.up, s.len))
            .collect();
        assert_eq!(
            found,
            [(0, true, 70), (2_000, false, 120), (2_500, true, 70)]
        );
        assert_eq!(kind.samples[0].head, [0x12, 0xab]);
        for (wrong, expected) in [
            ("dance 17 53", "line 1: the kind is unknown"),
            ("page 6 80\n0=0 60", "line 2: there is no way"),
            ("page 6 80\n0>0 60 1", "line 2: no bytes"),
        ] {
            assert_eq!(read("x", wrong).unwrap_err().to_string(), expected);
        }
    }
}
