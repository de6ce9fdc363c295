//! Finds the axis on which an expression is drawn.

use crate::data::MeasuredData;
use crate::expression::{Expression, Function, Operand, Operator};

/// The axis of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Axis {
    /// A number fits any axis.
    Any,
    /// An axis that ends at this value.
    To(f64),
    /// No axis shows it.
    None,
}

impl Axis {
    /// The axis that shows both expressions.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Self::None,
            (Self::Any, axis) | (axis, Self::Any) => axis,
            (Self::To(one), Self::To(other)) => Self::To(one.max(other)),
        }
    }

    pub(super) const fn end(self) -> Option<f64> {
        match self {
            Self::To(end) => Some(end),
            Self::Any | Self::None => None,
        }
    }
}

/// The axis of an expression in a claim of the study `own`.
pub(super) fn axis(data: &MeasuredData, own: &str, of: &Expression) -> Axis {
    match of {
        Expression::Number(_) => Axis::Any,
        Expression::Quantity(quantity) => data.largest(own, quantity).map_or(Axis::None, Axis::To),
        Expression::Negative(of) => axis(data, own, of),
        Expression::Call(_, of) => axis(data, own, of),
        Expression::Binary(operator, left, right) => {
            let (left, right) = (axis(data, own, left), axis(data, own, right));
            match operator {
                Operator::Add | Operator::Subtract => left.and(right),
                Operator::Multiply | Operator::Divide => match (left, right) {
                    (axis, Axis::Any) => axis,
                    (Axis::Any, axis) if *operator == Operator::Multiply => axis,
                    _ => Axis::None,
                },
            }
        }
    }
}

/// The same expression with spreads as a reader sees them: standard deviations as shares of the
/// axis.
pub(super) fn drawn(data: &MeasuredData, own: &str, of: &Operand) -> Operand {
    Operand {
        text: of.text.clone(),
        expression: with_bars(data, own, &of.expression),
    }
}

/// Whether an expression of [`drawn`] compares error bars: a share of an axis, which a number
/// stands for.
pub(super) fn shows_bars(of: &Expression) -> bool {
    match of {
        Expression::Binary(Operator::Divide, left, right) => {
            matches!(**left, Expression::Call(Function::Deviation, _))
                && matches!(**right, Expression::Number(_))
        }
        Expression::Call(Function::Min | Function::Max | Function::Mean, of) => shows_bars(of),
        _ => false,
    }
}

fn with_bars(data: &MeasuredData, own: &str, of: &Expression) -> Expression {
    let again = |of: &Expression| Box::new(with_bars(data, own, of));
    match of {
        Expression::Number(_) | Expression::Quantity(_) => of.clone(),
        Expression::Negative(of) => Expression::Negative(again(of)),
        Expression::Binary(operator, left, right) => {
            Expression::Binary(*operator, again(left), again(right))
        }
        Expression::Call(Function::Variation, inner) => match axis(data, own, inner) {
            Axis::To(end) => Expression::Binary(
                Operator::Divide,
                Box::new(Expression::Call(Function::Deviation, inner.clone())),
                Box::new(Expression::Number(end)),
            ),
            Axis::Any | Axis::None => of.clone(),
        },
        Expression::Call(function, of) => Expression::Call(*function, again(of)),
    }
}
