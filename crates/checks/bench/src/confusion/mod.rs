//! The classifier's confusion matrix: flows of known kinds, from models and from real programs, through the
//! classifiers at both ends of a link, alone and all at once. What counts is the service that each packet gets.

mod capture;
mod kinds;
mod matrix;
mod traffic;

pub use capture::{CaptureError, read};
pub use kinds::kinds;
pub use matrix::{Line, Verdict, alone, together};
pub use traffic::{Kind, Sample};

/// Largest share of bytes that may get another kind's service.
pub const BYTES: f64 = 0.05;
/// Largest share of a call's packets that may.
pub const CALLS: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_traffic_is_classified_as_expected() {
        let mut all = kinds(1);
        for (name, text) in [
            ("curl-pages", include_str!("../../captures/curl-pages.txt")),
            ("dig", include_str!("../../captures/dig.txt")),
            (
                "ffmpeg-opus",
                include_str!("../../captures/ffmpeg-opus.txt"),
            ),
            ("ssh-typing", include_str!("../../captures/ssh-typing.txt")),
        ] {
            all.push(read(name, text).unwrap());
        }
        for lines in [alone(&all), together(&all)] {
            for (kind, line) in all.iter().zip(lines) {
                assert_eq!(line.verdict(), Verdict::Held, "{}: {line:?}", kind.name);
            }
        }
    }
}
