//! What the checks of a link find.

use serde::Serialize;

/// How one check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// All is as it should be.
    Good,
    /// It may work all the same.
    Warning,
    /// The link does not come up, or is up and carries nothing.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub what: &'static str,
    /// How it ended.
    pub verdict: Grade,
    /// What was found.
    pub found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Where findings go, in order.
pub(super) struct Findings<'a>(pub(super) &'a mut dyn FnMut(Check));

impl Findings<'_> {
    pub(super) fn add(
        &mut self,
        what: &'static str,
        verdict: Grade,
        found: impl Into<String>,
        help: &str,
    ) {
        (self.0)(Check {
            what,
            verdict,
            found: found.into(),
            help: (!help.is_empty()).then(|| help.to_owned()),
        });
    }

    pub(super) fn good(&mut self, what: &'static str, found: impl Into<String>) {
        self.add(what, Grade::Good, found, "");
    }

    pub(super) fn bad(&mut self, what: &'static str, found: impl ToString) {
        self.add(what, Grade::Bad, found.to_string(), "");
    }
}
