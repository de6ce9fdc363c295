//! The small language in which claims are checked: `throughput[rlp] > throughput[sr-m2] at L1 L2`.
//!
//! ```text
//! condition  = chain [ "at" VALUE.. ]  |  ( "rises" | "falls" ) "(" sum ")" [ "at" VALUE.. ]
//! chain      = sum COMPARATOR sum { COMPARATOR sum }
//! COMPARATOR = ">" "<" ">=" "<=" "~" "==" ">>" "<<" "slightly>" "slightly<"
//!              "slightly>=" "slightly<="
//! sum        = product { ("+" | "-") product }        product = factor { ("*" | "/") factor }
//! factor     = NUMBER ["%"] | QUANTITY | FUNCTION "(" sum ")" | "(" sum ")" | "-" factor
//! QUANTITY   = [STUDY "."] METRIC [ "[" VALUE { "," VALUE } "]" ]
//! FUNCTION   = "min" "max" "mean" (over the axis left open)  "sd" "cv" (over repetitions)
//! ```
//! A quantity stands for its mean over the repetitions. Axes that it leaves open are set to one
//! value after the other: a condition must be true at each of them, or at those after `at`. A `-`
//! between letters or digits without spaces belongs to a name.

mod parse;

use std::collections::BTreeSet;

pub use parse::ParseError;

/// A condition, which is true or false.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The text as written.
    pub text: String,
    /// The comparison.
    pub kind: ConditionKind,
    /// Axis values at which it must be true; empty for all.
    pub at: Vec<String>,
}

/// The two forms of conditions.
#[derive(Clone, Debug, PartialEq)]
pub enum ConditionKind {
    /// Adjacent operands are compared.
    Chain(Box<Operand>, Vec<(Comparator, Operand)>),
    /// Each value along the open axis is above (or below) the previous one.
    Monotone {
        /// Whether it rises.
        rises: bool,
        /// The expression.
        of: Operand,
    },
}

/// An expression with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The text as written.
    pub text: String,
    /// The parsed expression.
    pub expression: Expression,
}

/// An expression whose value depends on the results.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A literal number.
    Number(f64),
    /// A measured quantity.
    Quantity(Quantity),
    /// An expression with its sign changed.
    Negative(Box<Self>),
    /// An operator with two operands.
    Binary(Operator, Box<Self>, Box<Self>),
    /// A function of many values.
    Call(Function, Box<Self>),
}

/// A metric of a study.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity {
    /// Id of the study; `None` for the claim's own.
    pub study: Option<String>,
    /// Name in the study's `metrics`.
    pub metric: String,
    /// Axis values.
    pub at: Vec<String>,
}

/// Arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient.
    Divide,
}

/// Functions that reduce many values to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The smallest along the open axis.
    Min,
    /// The largest.
    Max,
    /// The mean.
    Mean,
    /// Standard deviation over the repetitions.
    Deviation,
    /// Standard deviation over mean.
    Variation,
}

/// How two values should compare. The rules are in [`verdict`](crate::verdict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// `>`
    Greater,
    /// `<`
    Less,
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `slightly>`
    SlightlyGreater,
    /// `slightly<`
    SlightlyLess,
    /// `slightly>=`
    SlightlyAtLeast,
    /// `slightly<=`
    SlightlyAtMost,
    /// `>>`
    FarGreater,
    /// `<<`
    FarLess,
    /// `~`
    Nearly,
    /// `==`
    Equal,
}

impl Comparator {
    /// The operator as written.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Greater => ">",
            Self::Less => "<",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::SlightlyGreater => "slightly>",
            Self::SlightlyLess => "slightly<",
            Self::SlightlyAtLeast => "slightly>=",
            Self::SlightlyAtMost => "slightly<=",
            Self::FarGreater => ">>",
            Self::FarLess => "<<",
            Self::Nearly => "~",
            Self::Equal => "==",
        }
    }
}

impl Expression {
    /// Every quantity in it, and whether it is inside a function over an axis.
    pub fn quantities(&self) -> BTreeSet<(&Quantity, bool)> {
        let mut found = BTreeSet::new();
        self.collect(false, &mut found);
        found
    }

    fn collect<'e>(&'e self, inside: bool, found: &mut BTreeSet<(&'e Quantity, bool)>) {
        match self {
            Self::Number(_) => {}
            Self::Quantity(quantity) => {
                found.insert((quantity, inside));
            }
            Self::Negative(of) => of.collect(inside, found),
            Self::Binary(_, left, right) => {
                left.collect(inside, found);
                right.collect(inside, found);
            }
            Self::Call(function, of) => {
                let over_axis = matches!(function, Function::Min | Function::Max | Function::Mean);
                of.collect(inside || over_axis, found);
            }
        }
    }
}

impl Condition {
    /// Its operands, in order.
    pub fn operands(&self) -> Vec<&Operand> {
        match &self.kind {
            ConditionKind::Chain(first, rest) => std::iter::once(&**first)
                .chain(rest.iter().map(|(_, operand)| operand))
                .collect(),
            ConditionKind::Monotone { of, .. } => vec![of],
        }
    }
}
