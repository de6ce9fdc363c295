//! The only place that writes to the terminal.
//!
//! Colours follow the stream: there are none if it is not a terminal or `NO_COLOR` is set.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use airlane_base::config::{Problem, RefusedFile};
use anstyle::{AnsiColor, Style};
use anyhow::Context as _;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HELP: Style = AnsiColor::Cyan.on_default().bold();
const STRONG: Style = Style::new().bold();
const MARGIN: Style = AnsiColor::Blue.on_default();

/// Writes results to standard output.
///
/// # Errors
/// If it cannot be written. A closed pipe (`| head`) is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_while_read(text).map(|_| ())
}

/// Writes results to standard output. Returns whether its reader is still there, which `| head` is not for long.
///
/// # Errors
/// If it cannot be written for another reason.
pub fn print_while_read(text: &str) -> anyhow::Result<bool> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes results to a file, or to standard output if none is named.
///
/// # Errors
/// If it cannot be written.
pub fn write(text: &str, path: Option<&Path>) -> anyhow::Result<()> {
    match path {
        None => print(text),
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
    }
}

/// Writes something other than a result to standard error; write errors are ignored.
pub fn note(text: &str) {
    _ = writeln!(anstream::stderr(), "{text}");
}

/// Writes a question to standard error; the answer is typed on the same line.
pub fn ask(text: &str) {
    let mut out = anstream::stderr();
    _ = write!(out, "{text}");
    _ = out.flush();
}

/// Writes a warning to standard error.
pub fn warn(text: &str) {
    note(&format!("{WARNING}warning{WARNING:#}: {text}"));
}

/// Writes a warning unless it has been written before: several values of a varied key may cause the
/// same one.
pub fn warn_once(text: &str) {
    static WRITTEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    if written.insert(text.to_owned()) {
        warn(text);
    }
}

/// Makes text from others safe for a terminal: no character does more than print itself or end a
/// line.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '"' | '\'' => plain.push(character),
            _ => plain.extend(character.escape_debug()),
        }
    }
    plain
}

/// Appends a line to a text.
pub(crate) fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("writing to a string cannot fail");
}

/// The warning that a file ends within a record.
#[cfg(any(feature = "lab", feature = "live"))]
pub(crate) fn cut_off(file: &Path, byte: impl std::fmt::Display) -> String {
    let file = file.display();
    format!("{file} is cut off at byte {byte}; everything before that is intact")
}

/// The text without terminal colours.
#[cfg(all(feature = "live", feature = "lab"))]
pub(crate) fn uncoloured(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Whether standard error is a terminal.
pub fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Several errors, none of which is the cause of another.
#[derive(Debug)]
pub struct Several(pub Vec<String>);

impl std::fmt::Display for Several {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for Several {}

/// An error and its causes in one line, each cause once, since some errors include theirs in their
/// own text.
pub(crate) fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
    }
    text
}

/// The text of an error with its causes.
pub fn error_text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    if let Some(config) = error.downcast_ref::<RefusedFile>() {
        for (i, problem) in config.problems().iter().enumerate() {
            text.push_str(if i == 0 { "" } else { "\n\n" });
            text.push_str(&problem_text(problem));
        }
    } else if let Some(Several(all)) = error.downcast_ref() {
        let lines = all
            .iter()
            .map(|text| format!("{ERROR}error{ERROR:#}: {text}"));
        text = lines.collect::<Vec<_>>().join("\n");
    } else {
        text = format!("{ERROR}error{ERROR:#}: {}", with_causes(error));
    }
    text
}

/// The text that `Problem` displays, in colour.
fn problem_text(problem: &Problem) -> String {
    let Problem {
        file,
        line,
        column,
        message,
        ..
    } = problem;
    let mut text =
        format!("{ERROR}error{ERROR:#}: {STRONG}{file}:{line}:{column}: {message}{STRONG:#}");
    if problem.width > 0 {
        let (source, before) = problem.excerpt();
        let carets = "^".repeat(problem.width.min(source.chars().count() - before));
        let gap = " ".repeat(line.to_string().len());
        let indent = " ".repeat(before);
        text.push_str(&format!("\n  {MARGIN}{line} |{MARGIN:#} {source}"));
        text.push_str(&format!(
            "\n  {MARGIN}{gap} |{MARGIN:#} {indent}{ERROR}{carets}{ERROR:#}"
        ));
    }
    if !problem.path.is_empty() {
        write!(text, "\n  at {}", problem.path).expect("writing to a string cannot fail");
    }
    if !problem.help.is_empty() {
        write!(text, "\n  {HELP}help{HELP:#}: {}", problem.help)
            .expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        let causes = ["it is gone", "cannot read it: it is gone", "no key"];
        let [root, named, outer] = causes.map(str::to_owned);
        let error = anyhow::Error::msg(root).context(named).context(outer);
        assert_eq!(with_causes(&error), "no key: cannot read it: it is gone");
    }

    #[test]
    fn control_characters_from_the_peer_are_escaped() {
        let theirs = "1 \"web\" sr\n2 \u{1b}]0;owned\u{7}\u{1b}[2J\r\u{9b}31m\u{202e}gp\u{e9}j";
        let shown = plain(theirs);
        assert!(shown.starts_with("1 \"web\" sr\n2 \\u{1b}]0;owned"));
        assert!(shown.ends_with("gp\u{e9}j"));
        let harmless = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
        assert!(shown.chars().all(harmless), "{shown:?}");
    }
}
