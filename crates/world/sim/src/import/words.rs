//! The words of a command line, with their positions.

use std::fmt;

/// Why a command of another tool cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}; {help}", place = self.place())]
pub struct ImportError {
    /// Line of the text, from 1; 0 if the error concerns the text as a whole.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub help: String,
}

impl ImportError {
    fn place(&self) -> String {
        match self.line {
            0 => String::new(),
            line => format!("line {line}, column {}: ", self.column),
        }
    }
}

/// A word, without shell quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Word {
    pub(super) fn wrong(&self, problem: impl fmt::Display, help: impl Into<String>) -> ImportError {
        ImportError {
            line: self.line,
            column: self.column,
            problem: problem.to_string(),
            help: help.into(),
        }
    }

    /// The error for a word in place of what is expected.
    pub(super) fn unknown(&self, expected: &str) -> ImportError {
        self.wrong(
            format!("\"{}\" is not known here", self.text),
            format!("expected {expected}"),
        )
    }

    /// Whether it begins like a number.
    pub(super) fn is_number(&self) -> bool {
        self.text
            .starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))
    }
}

/// A reader of words.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    left: &'a [Word],
    /// The last word read.
    last: Option<&'a Word>,
}

impl<'a> Words<'a> {
    pub(super) const fn new(words: &'a [Word]) -> Self {
        let last = None;
        Self { left: words, last }
    }

    pub(super) fn peek(&self) -> Option<&'a Word> {
        self.left.first()
    }

    pub(super) fn next(&mut self) -> Option<&'a Word> {
        let (word, left) = self.left.split_first()?;
        (self.left, self.last) = (left, Some(word));
        Some(word)
    }

    /// The next word if it is a number.
    pub(super) fn next_number(&mut self) -> Option<&'a Word> {
        self.peek().filter(|word| word.is_number())?;
        self.next()
    }

    /// Takes the next word if it is `text`.
    pub(super) fn skip(&mut self, text: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.text == text);
        if is {
            self.next();
        }
        is
    }

    /// The next word, which must be there.
    pub(super) fn expect(&mut self, expected: &str) -> Result<&'a Word, ImportError> {
        let last = self.last;
        self.next().ok_or_else(|| match last {
            Some(word) => word.wrong(
                format!("nothing comes after \"{}\"", word.text),
                format!("expected {expected}"),
            ),
            None => nothing(expected),
        })
    }
}

/// The error for a missing word.
pub(super) fn nothing(expected: &str) -> ImportError {
    ImportError {
        line: 1,
        column: 1,
        problem: "there is nothing to translate".to_owned(),
        help: format!("expected {expected}"),
    }
}

/// How a command follows the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    /// Always: a new line, `;`, `&`.
    Next,
    /// If the previous one succeeded: `&&`.
    And,
    /// If the previous one failed: `||`.
    Or,
    /// With the output of the previous one as input: `|`.
    Pipe,
}

/// A shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) joint: Joint,
    /// At least one.
    pub(super) words: Vec<Word>,
}

/// A sequence of commands: lines, and what `;`, `&&` or `|` separates on them. A backslash joins a line to the next,
/// `#` begins a comment, quotes and `$(...)` keep words together; redirections are left out.
pub(super) fn commands(text: &str) -> Result<Vec<Command>, ImportError> {
    let mut commands = vec![];
    let mut command: Vec<Word> = vec![];
    let mut word: Option<Word> = None;
    let mut quote: Option<(char, Word)> = None;
    let mut joint = Joint::Next;
    // Number of open `$(`.
    let mut depth = 0_u32;
    let (mut line, mut column) = (1, 0);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        column += 1;
        let empty = Word {
            text: String::new(),
            line,
            column,
        };
        if c == '\n' {
            (line, column) = (line + 1, 0);
        }
        let redirects = |word: &Option<Word>| word.as_ref().is_some_and(|w| w.text.ends_with('>'));
        match (c, &quote) {
            (c, Some((end, _))) if c == *end => quote = None,
            (c, Some(_)) => word.get_or_insert(empty).text.push(shown(c)),
            (c, None) if depth > 0 => {
                match c {
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                word.get_or_insert(empty).text.push(shown(c));
            }
            ('$', None) if chars.peek() == Some(&'(') => {
                word.get_or_insert(empty).text.push_str("$(");
                (depth, column) = (1, column + 1);
                chars.next();
            }
            ('\'' | '"', None) => {
                quote = Some((c, empty.clone()));
                word.get_or_insert(empty);
            }
            ('\\', None) if matches!(chars.peek(), Some('\n' | '\r')) => {
                command.extend(word.take());
                while let Some(end) = chars.next_if(|c| matches!(c, '\n' | '\r')) {
                    if end == '\n' {
                        (line, column) = (line + 1, 0);
                        break;
                    }
                }
            }
            ('#', None) if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            ('&', None) if redirects(&word) || chars.peek() == Some(&'>') => {
                word.get_or_insert(empty).text.push(c);
            }
            ('\n' | ';' | '&' | '|', None) => {
                command.extend(word.take());
                let had_words = !command.is_empty();
                push(&mut commands, joint, &mut command);
                let twice = matches!(c, '&' | '|') && chars.next_if_eq(&c).is_some();
                column += usize::from(twice);
                joint = match (c, twice) {
                    ('&', true) => Joint::And,
                    ('|', true) => Joint::Or,
                    ('|', false) => Joint::Pipe,
                    // A line may end with the operator that joins it to the next.
                    ('\n', _) if !had_words => joint,
                    _ => Joint::Next,
                };
            }
            (c, None) if c.is_whitespace() => command.extend(word.take()),
            (c, None) => word.get_or_insert(empty).text.push(shown(c)),
        }
    }
    if let Some((c, at)) = quote {
        return Err(at.wrong(
            format!("this {c} is never closed"),
            "close it, or leave it out",
        ));
    }
    command.extend(word);
    push(&mut commands, joint, &mut command);
    Ok(commands)
}

fn push(commands: &mut Vec<Command>, joint: Joint, command: &mut Vec<Word>) {
    let mut words = vec![];
    let mut rest = std::mem::take(command).into_iter();
    while let Some(word) = rest.next() {
        let redirects = word
            .text
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if !redirects.starts_with(['>', '<']) {
            words.push(word);
        } else if redirects.trim_start_matches(['>', '<']).is_empty() {
            // The target of the redirection is the next word.
            rest.next();
        }
    }
    if !words.is_empty() {
        commands.push(Command { joint, words });
    }
}

/// Words appear on terminals and in comments, where control characters do harm.
fn shown(c: char) -> char {
    if c.is_control() {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<Vec<String>> {
        let texts = |command: Command| command.words.into_iter().map(|word| word.text).collect();
        commands(text).unwrap().into_iter().map(texts).collect()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(
            texts("a 'b  c' --d=\"e f\"g # h\n\n i && j\\\n k; ''"),
            [
                vec!["a", "b  c", "--d=e fg"],
                vec!["i"],
                vec!["j", "k"],
                vec![""]
            ]
        );
        let said = commands("a\n b 'c").unwrap_err().to_string();
        assert!(
            said.starts_with("line 2, column 4: this ' is never"),
            "{said}"
        );
    }

    #[test]
    fn output_goes_where_it_may_and_what_is_substituted_stays_whole() {
        let text = "a 2>/dev/null || b > /dev/null 2>&1 &&\nc $(d | e (f)) &> g; h | i";
        assert_eq!(
            texts(text),
            [
                vec!["a"],
                vec!["b"],
                vec!["c", "$(d | e (f))"],
                vec!["h"],
                vec!["i"]
            ]
        );
        let joints: Vec<Joint> = commands(text).unwrap().iter().map(|c| c.joint).collect();
        let expected = [Joint::Next, Joint::Or, Joint::And, Joint::Next, Joint::Pipe];
        assert_eq!(joints, expected);
    }

    #[test]
    fn places_are_counted_in_characters() {
        let commands = commands("ä b\\\nc\n  d").unwrap();
        let places: Vec<_> = commands
            .iter()
            .flat_map(|command| &command.words)
            .map(|word| (word.line, word.column))
            .collect();
        assert_eq!(places, [(1, 1), (1, 3), (2, 1), (3, 3)]);
    }
}
