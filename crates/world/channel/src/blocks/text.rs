//! The file format of block traces, which the parent module describes.

use std::fmt::Write;

use airlane_base::Size;

use super::{Blocks, BlocksHeader, MOST_BLOCKS};

const FIRST: &str = "# airlane blocks 1";
/// Characters per line when writing.
const LINE: u32 = 100;
/// Longest quotation of a wrong word in an error, characters.
const WORD: usize = 20;

/// Why a text is not a trace of blocks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlocksError {
    /// A line is neither blocks nor run lengths.
    #[error(
        "line {line}: \"{found}\" is neither 0 nor 1; a line of row lengths is r and the lengths"
    )]
    Character {
        /// The line, from 1.
        line: usize,
        /// The first word that is not made of 0 and 1.
        found: String,
    },
    /// A run length is not a number.
    #[error(
        "line {line}: \"{found}\" is no length of a row; lengths are whole numbers up to {MOST_BLOCKS}"
    )]
    Length {
        /// The line, from 1.
        line: usize,
        /// The word found.
        found: String,
    },
    /// The header cannot be read.
    #[error(
        "line 2: {what}; it looks like # block = \"20 ms\"  size = \"30 B\"  origin = \"my radio\"  parts = [3000, 3000]"
    )]
    Header {
        /// The problem.
        what: String,
    },
    /// The parts do not add up to the trace.
    #[error("line 2: parts have {parts} blocks together, the trace has {blocks}")]
    Parts {
        /// The sum of the parts.
        parts: u64,
        /// Blocks in the trace.
        blocks: u32,
    },
    /// The trace is too long.
    #[error("line {line}: a trace has at most {MOST_BLOCKS} blocks")]
    TooLong {
        /// The line, from 1.
        line: usize,
    },
    /// The trace has no blocks.
    #[error(
        "there are no blocks in it; write 0 for each block that came and 1 for each that was erased"
    )]
    Empty,
}

impl Blocks {
    /// Whether a file begins like a trace of blocks.
    pub fn is_blocks(bytes: &[u8]) -> bool {
        bytes.starts_with(FIRST.as_bytes())
    }

    /// Parses a trace. Without the first two lines, blocks are those of `BlocksHeader::default`.
    ///
    /// # Errors
    /// A [`BlocksError`] that names the line.
    pub fn read(text: &str) -> Result<Self, BlocksError> {
        let mut lines = text.lines().enumerate();
        let (mut header, mut parts) = (BlocksHeader::default(), None);
        if text.starts_with(FIRST) {
            let second = lines.nth(1).map_or("", |(_, line)| line);
            (header, parts) = read_header(second)?;
        }
        let mut blocks = Self::new(header);
        for (at, line) in lines {
            let (line, text) = (at + 1, line.trim());
            if text.starts_with('#') {
                continue;
            }
            let mut words = text.split_whitespace().peekable();
            if words.next_if_eq(&"r").is_some() {
                let mut erased = false;
                for found in words {
                    let wrong = || BlocksError::Length {
                        line,
                        found: found.to_owned(),
                    };
                    let len: u32 = found.parse().map_err(|_| wrong())?;
                    add(&mut blocks, erased, len, line)?;
                    erased = !erased;
                }
                continue;
            }
            for word in words {
                for found in word.chars() {
                    let is = match found {
                        '0' => false,
                        '1' => true,
                        _ => {
                            let found = word.chars().take(WORD).collect();
                            return Err(BlocksError::Character { line, found });
                        }
                    };
                    add(&mut blocks, is, 1, line)?;
                }
            }
        }
        if blocks.is_empty() {
            return Err(BlocksError::Empty);
        }
        match parts {
            Some(parts) => blocks.cut(&parts),
            None => Ok(blocks),
        }
    }

    /// Splits the trace into parts of these lengths.
    fn cut(self, parts: &[u32]) -> Result<Self, BlocksError> {
        let sum: u64 = parts.iter().map(|len| u64::from(*len)).sum();
        if sum != u64::from(self.len()) {
            return Err(BlocksError::Parts {
                parts: sum,
                blocks: self.len(),
            });
        }
        let mut cut = Self::new(self.header.clone());
        let mut parts = parts.iter().copied();
        let mut left = parts.next().unwrap_or(0);
        for (erased, mut len) in self.rows().flatten() {
            while len > 0 {
                while left == 0 {
                    cut.end_part();
                    left = parts.next().unwrap_or(u32::MAX);
                }
                let now = len.min(left);
                cut.push(erased, now);
                (len, left) = (len - now, left - now);
            }
        }
        Ok(cut)
    }

    /// The first two lines of the file.
    fn head(&self) -> String {
        let BlocksHeader {
            block,
            size,
            direction,
            origin,
            seed,
        } = &self.header;
        let mut text = format!("{FIRST}\n# block = \"{block}\"  size = \"{size}\"");
        for (key, value) in [("direction", direction), ("origin", origin)] {
            if let Some(value) = value {
                let value = value.replace(['"', '\n', '\r'], " ");
                let _ = write!(text, "  {key} = \"{value}\"");
            }
        }
        if let Some(seed) = seed {
            let _ = write!(text, "  seed = {seed}");
        }
        let parts: Vec<String> = self.parts().map(|[a, b]| (b - a).to_string()).collect();
        let _ = writeln!(text, "  parts = [{}]", parts.join(", "));
        text
    }

    /// The file with one character per block.
    pub fn to_text(&self) -> String {
        let mut text = self.head();
        text.reserve(self.len() as usize + (self.len() / LINE) as usize);
        let mut column = 0;
        for (erased, len) in self.rows().flatten() {
            let character = if erased { '1' } else { '0' };
            for _ in 0..len {
                text.push(character);
                column += 1;
                if column == LINE {
                    text.push('\n');
                    column = 0;
                }
            }
        }
        if column > 0 {
            text.push('\n');
        }
        text
    }

    /// The file with run lengths, which is short if erasures are rare.
    pub fn to_rows(&self) -> String {
        let mut text = self.head();
        let (mut erased, mut sum, mut lengths) = (false, 0u32, Vec::new());
        for (is, len) in self.rows().flatten() {
            if is == erased {
                sum += len;
            } else {
                lengths.push(sum);
                (erased, sum) = (is, len);
            }
        }
        lengths.push(sum);
        for line in lengths.chunks(16) {
            let line: Vec<String> = line.iter().map(u32::to_string).collect();
            let _ = writeln!(text, "r {}", line.join(" "));
        }
        text
    }
}

fn add(blocks: &mut Blocks, erased: bool, len: u32, line: usize) -> Result<(), BlocksError> {
    if len > MOST_BLOCKS - blocks.len() {
        return Err(BlocksError::TooLong { line });
    }
    blocks.push(erased, len);
    Ok(())
}

/// `# key = "text"  key = 17  key = [1, 2]`
fn read_header(line: &str) -> Result<(BlocksHeader, Option<Vec<u32>>), BlocksError> {
    let wrong = |what: String| BlocksError::Header { what };
    let mut rest = line
        .strip_prefix('#')
        .ok_or_else(|| wrong("it says nothing about the trace".to_owned()))?
        .trim();
    let (mut header, mut parts) = (BlocksHeader::default(), None);
    while !rest.is_empty() {
        let (key, tail) = rest
            .split_once('=')
            .ok_or_else(|| wrong(format!("\"{rest}\" is no key with a value")))?;
        let (key, tail) = (key.trim(), tail.trim_start());
        let end = match tail.chars().next() {
            Some('"') => tail[1..].find('"').map(|at| at + 2),
            Some('[') => tail.find(']').map(|at| at + 1),
            _ => Some(tail.find(char::is_whitespace).unwrap_or(tail.len())),
        };
        let end = end.ok_or_else(|| wrong(format!("the value of {key} does not end")))?;
        let (value, tail) = tail.split_at(end);
        let text = || value.trim_matches('"').to_owned();
        let number = |text: &str| -> Result<u64, BlocksError> {
            let text = text.trim();
            text.parse()
                .map_err(|_| wrong(format!("{key}: \"{text}\" is no whole number")))
        };
        match key {
            "block" => {
                let block: airlane_base::Duration = text()
                    .parse()
                    .map_err(|error| wrong(format!("block: {error}")))?;
                if block.as_nanos() == 0 {
                    return Err(wrong("block: a block must be longer than 0 s".to_owned()));
                }
                header.block = block;
            }
            "size" => {
                let size: Size = text()
                    .parse()
                    .map_err(|error| wrong(format!("size: {error}")))?;
                header.size = size;
            }
            "direction" => header.direction = Some(text()),
            "origin" => header.origin = Some(text()),
            "seed" => header.seed = Some(number(value)?),
            "parts" => {
                let inner = value.trim_matches(['[', ']']).split(',');
                let lengths = inner.filter(|part| !part.trim().is_empty()).map(|part| {
                    let len = number(part)?;
                    u32::try_from(len).map_err(|_| wrong(format!("parts: {len} is too long")))
                });
                parts = Some(lengths.collect::<Result<_, _>>()?);
            }
            other => {
                return Err(wrong(format!(
                    "\"{other}\" is none of block, size, direction, origin, seed, parts"
                )));
            }
        }
        rest = tail.trim_start();
    }
    Ok((header, parts))
}
