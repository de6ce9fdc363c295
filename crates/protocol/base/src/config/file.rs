//! Reads whole files, up to a length limit: a device such as `/dev/zero` has no end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Longest text that is read, bytes: enough for a scenario with the greatest number of nodes.
pub const LONGEST_TEXT: u64 = 64 << 20;
/// Longest recording that is read, bytes.
pub const LONGEST_DATA: u64 = 4 << 30;

/// Reads a file of at most `most` bytes. A pipe or a device, whose length is unknown, is read up to [`LONGEST_TEXT`].
///
/// # Errors
/// If the operating system refuses, or the file is longer.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let facts = file.metadata()?;
    let most = if facts.is_file() {
        most
    } else {
        most.min(LONGEST_TEXT)
    };
    let mut bytes = Vec::new();
    if facts.len() <= most {
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    if facts.len() > most || bytes.len() as u64 > most {
        let problem = format!(
            "it is longer than {} MB, more than is read of such a file",
            most >> 20
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

/// Reads a text of at most [`LONGEST_TEXT`] bytes.
///
/// # Errors
/// If the operating system refuses, or the file is longer or not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let bytes = read_file(path, LONGEST_TEXT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused_and_a_short_one_is_read() {
        for most in [LONGEST_TEXT, LONGEST_DATA] {
            let error = read_file(Path::new("/dev/zero"), most).unwrap_err();
            assert!(error.to_string().contains("longer than 64 MB"), "{error}");
        }
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        assert!(read_text(&own).unwrap().contains("airlane-base"));
        assert!(read_file(&own, 10).is_err());
        assert!(read_text(Path::new("/nowhere")).is_err());
    }
}
