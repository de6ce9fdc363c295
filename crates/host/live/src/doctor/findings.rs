//! Findings of the checks of a link.

use serde::Serialize;

/// The remedy where no datagram leaves for a peer.
pub(super) const NO_WAY_HELP: &str =
    "`ip link` and `ip route get` show what the kernel knows; the link keeps retrying";

/// Result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// No problem.
    Good,
    /// The link may work all the same.
    Warning,
    /// The link does not come up, or carries nothing.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Subject of the check.
    pub what: &'static str,
    /// Result.
    pub verdict: Grade,
    /// The finding.
    pub found: String,
    /// A remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Reports findings in order.
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
