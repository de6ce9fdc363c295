//! Commands and lines of output, up to a qdisc's options.

use crate::import::words::{ImportError, Word, Words};

pub(super) const EXPECTED: &str = "the output of `tc qdisc show`, `tc qdisc add dev X root netem ...`, or what \
     stands behind `netem`";

/// A qdisc, and the words behind its kind.
pub(super) struct Qdisc<'a> {
    pub(super) kind: &'a str,
    /// Where it is named.
    pub(super) word: &'a Word,
    pub(super) device: Option<&'a str>,
    /// It stands below another one.
    pub(super) is_child: bool,
    pub(super) options: Words<'a>,
}

/// Reads what is in front of a qdisc's options; none if the command is about something else.
pub(super) fn qdisc(command: &[Word]) -> Result<Option<Qdisc<'_>>, ImportError> {
    let mut words = Words::new(command);
    words.skip("sudo");
    let (first, mut device, mut is_child) = (words.clone().expect(EXPECTED)?, None, false);
    let word = match first.text.as_str() {
        // `tc -s qdisc show` has counters below each qdisc.
        "Sent" | "backlog" | "maxpacket" | "new_flows_len" => return Ok(None),
        "tc" => {
            words.next();
            while words.peek().is_some_and(|word| word.text.starts_with('-')) {
                words.next();
            }
            let what = words.expect("\"qdisc\"")?;
            match what.text.as_str() {
                "qdisc" => {}
                "class" | "filter" => return Ok(None),
                _ => return Err(what.unknown("\"qdisc\"")),
            }
            let verb = words.expect("\"add\"")?;
            match verb.text.as_str() {
                "add" | "replace" | "change" => {}
                "del" | "delete" => return Ok(None),
                "show" | "list" | "ls" => {
                    return Err(verb.wrong(
                        format!(
                            "\"{}\" prints what is shaped, and shapes nothing",
                            verb.text
                        ),
                        "give its output: `tc qdisc show | airlane scenario from-netem -`",
                    ));
                }
                _ => return Err(verb.unknown("\"add\", \"replace\" or \"change\"")),
            }
            attach(&mut words, &mut device, &mut is_child)?;
            words.expect("a qdisc, such as \"netem\"")?
        }
        "qdisc" => {
            words.next();
            let word = words.expect("a qdisc, such as \"netem\"")?;
            words.expect("its handle, such as \"8001:\"")?;
            attach(&mut words, &mut device, &mut is_child)?;
            word
        }
        "netem" | "tbf" => words.expect(EXPECTED)?,
        // It is an option of netem, whose name is left out.
        _ => first,
    };
    let kind = match word.text.as_str() {
        _ if std::ptr::eq(word, first) && word.text != "tbf" => "netem",
        kind => kind,
    };
    Ok(Some(Qdisc {
        kind,
        word,
        device,
        is_child,
        options: words,
    }))
}

/// Where a qdisc stands.
fn attach<'a>(
    words: &mut Words<'a>,
    device: &mut Option<&'a str>,
    is_child: &mut bool,
) -> Result<(), ImportError> {
    while let Some(word) = words.peek() {
        match word.text.as_str() {
            "root" => {
                words.next();
            }
            "dev" => {
                words.next();
                *device = Some(words.expect("an interface")?.text.as_str());
            }
            "parent" => {
                words.next();
                words.expect("a handle, such as \"1:1\"")?;
                *is_child = true;
            }
            "handle" | "refcnt" => {
                words.next();
                words.expect("a number")?;
            }
            _ => break,
        }
    }
    Ok(())
}
