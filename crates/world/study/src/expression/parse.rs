//! Parses [`Condition`] and [`Operand`]; the grammar is in the parent module.

use super::{
    Comparator, Condition, ConditionKind, Expression, Function, Operand, Operator, Quantity,
};

/// Deeper expressions could exhaust the stack.
const DEEPEST: usize = 64;

/// Why a text is not an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem} at `{rest}`")]
pub struct ParseError {
    text: String,
    problem: &'static str,
    rest: String,
}

/// The longest spelling comes first.
const COMPARATORS: [(&str, Comparator); 12] = [
    ("slightly>=", Comparator::SlightlyAtLeast),
    ("slightly<=", Comparator::SlightlyAtMost),
    ("slightly>", Comparator::SlightlyGreater),
    ("slightly<", Comparator::SlightlyLess),
    (">>", Comparator::FarGreater),
    ("<<", Comparator::FarLess),
    (">=", Comparator::AtLeast),
    ("<=", Comparator::AtMost),
    (">", Comparator::Greater),
    ("<", Comparator::Less),
    ("~", Comparator::Nearly),
    ("==", Comparator::Equal),
];

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// If the text is not one.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text);
        let kind = match parser.monotone()? {
            Some(kind) => kind,
            None => parser.chain()?,
        };
        let mut at = vec![];
        if parser.word("at") {
            while let Some(value) = parser.value() {
                at.push(value);
            }
            if at.is_empty() {
                return Err(parser.error("a value of an axis was expected"));
            }
        }
        parser.end()?;
        let text = text.to_owned();
        Ok(Self { text, kind, at })
    }
}

impl Operand {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the text is not one.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser::new(text);
        let operand = parser.operand()?;
        parser.end()?;
        Ok(operand)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    const fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, problem: &'static str) -> ParseError {
        ParseError {
            text: self.text.to_owned(),
            problem,
            rest: self.rest().to_owned(),
        }
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn end(&mut self) -> Result<(), ParseError> {
        self.space();
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.error("the end was expected"))
        }
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(symbol);
        self.at += if found { symbol.len() } else { 0 };
        found
    }

    /// A whole word, such as `at`.
    fn word(&mut self, word: &str) -> bool {
        self.space();
        let rest = self.rest();
        let found = rest
            .strip_prefix(word)
            .is_some_and(|after| !after.starts_with(is_name));
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// The value of an axis: anything up to a space, comma or bracket.
    fn value(&mut self) -> Option<String> {
        self.space();
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || ",[]()<>~=".contains(c);
        let end = rest.find(ends).unwrap_or(rest.len());
        self.at += end;
        (end > 0).then(|| rest[..end].to_owned())
    }

    /// Letters, digits, `_`, `.`, and `-` between two of these.
    fn name(&mut self) -> Option<&'t str> {
        self.space();
        let rest = self.rest();
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let bytes = rest.as_bytes();
        let part = |b: Option<&u8>| b.is_some_and(|b| is_name(char::from(*b)));
        let end = (0..bytes.len())
            .find(|i| !(part(bytes.get(*i)) || bytes[*i] == b'-' && part(bytes.get(i + 1))))
            .unwrap_or(bytes.len());
        self.at += end;
        Some(&rest[..end])
    }

    fn monotone(&mut self) -> Result<Option<ConditionKind>, ParseError> {
        let rises = self.word("rises");
        if !rises && !self.word("falls") {
            return Ok(None);
        }
        if !self.symbol("(") {
            return Err(self.error("`(` was expected"));
        }
        let of = self.operand()?;
        if !self.symbol(")") {
            return Err(self.error("`)` was expected"));
        }
        Ok(Some(ConditionKind::Monotone { rises, of }))
    }

    fn chain(&mut self) -> Result<ConditionKind, ParseError> {
        let first = self.operand()?;
        let mut rest = vec![];
        while let Some((_, comparator)) = COMPARATORS.iter().find(|(text, _)| self.symbol(text)) {
            rest.push((*comparator, self.operand()?));
        }
        if rest.is_empty() {
            return Err(self.error("a comparator such as `>` was expected"));
        }
        Ok(ConditionKind::Chain(Box::new(first), rest))
    }

    fn operand(&mut self) -> Result<Operand, ParseError> {
        self.space();
        let start = self.at;
        let expression = self.sum()?;
        Ok(Operand {
            text: self.text[start..self.at].trim().to_owned(),
            expression,
        })
    }

    fn sum(&mut self) -> Result<Expression, ParseError> {
        let mut left = self.product()?;
        loop {
            let operator = if self.symbol("+") {
                Operator::Add
            } else if self.symbol("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Expression, ParseError> {
        let mut left = self.factor()?;
        loop {
            let operator = if self.symbol("*") {
                Operator::Multiply
            } else if self.symbol("/") {
                Operator::Divide
            } else {
                return Ok(left);
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Expression, ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("this is nested too deeply"));
        }
        let factor = self.plain_factor();
        self.depth -= 1;
        factor
    }

    fn plain_factor(&mut self) -> Result<Expression, ParseError> {
        if self.symbol("-") {
            return Ok(Expression::Negative(Box::new(self.factor()?)));
        }
        if self.symbol("(") {
            let inside = self.sum()?;
            return if self.symbol(")") {
                Ok(inside)
            } else {
                Err(self.error("`)` was expected"))
            };
        }
        if let Some(number) = self.number()? {
            return Ok(Expression::Number(number));
        }
        let Some(name) = self.name() else {
            return Err(self.error("a number or a quantity was expected"));
        };
        if self.symbol("(") {
            let function = match name {
                "min" => Function::Min,
                "max" => Function::Max,
                "mean" => Function::Mean,
                "sd" => Function::Deviation,
                "cv" => Function::Variation,
                _ => {
                    return Err(self.error("the functions are min, max, mean, sd and cv; not this"));
                }
            };
            let inside = Box::new(self.sum()?);
            let closed = self.symbol(")");
            let call = Expression::Call(function, inside);
            return if closed {
                Ok(call)
            } else {
                Err(self.error("`)` was expected"))
            };
        }
        let mut at = vec![];
        if self.symbol("[") {
            loop {
                at.push(
                    self.value()
                        .ok_or_else(|| self.error("a value of an axis was expected"))?,
                );
                if self.symbol("]") {
                    break;
                }
                if !self.symbol(",") {
                    return Err(self.error("`,` or `]` was expected"));
                }
            }
        }
        let (study, metric) = match name.rsplit_once('.') {
            Some((study, metric)) => (Some(study.to_owned()), metric.to_owned()),
            None => (None, name.to_owned()),
        };
        Ok(Expression::Quantity(Quantity { study, metric, at }))
    }

    fn number(&mut self) -> Result<Option<f64>, ParseError> {
        self.space();
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(rest.len());
        if end == 0 {
            return Ok(None);
        }
        let value: f64 = rest[..end]
            .parse()
            .map_err(|_| self.error("this is no number"))?;
        self.at += end;
        Ok(Some(if self.symbol("%") {
            value / 100.0
        } else {
            value
        }))
    }
}

const fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(study: Option<&str>, metric: &str, at: &[&str]) -> Expression {
        Expression::Quantity(Quantity {
            study: study.map(str::to_owned),
            metric: metric.to_owned(),
            at: at.iter().map(|v| (*v).to_owned()).collect(),
        })
    }

    #[test]
    fn a_chain_with_places() {
        let condition = Condition::parse("y[rlp-oos] slightly> y[default] >> 5% at L1 L2").unwrap();
        assert_eq!(condition.at, ["L1", "L2"]);
        let ConditionKind::Chain(first, rest) = condition.kind else {
            panic!("a chain");
        };
        assert_eq!(first.text, "y[rlp-oos]");
        assert_eq!(rest[0].0, Comparator::SlightlyGreater);
        assert_eq!(rest[0].1.expression, quantity(None, "y", &["default"]));
        assert_eq!(rest[1].0, Comparator::FarGreater);
        assert_eq!(rest[1].1.expression, Expression::Number(0.05));
    }

    #[test]
    fn other_studies_and_hyphens() {
        let operand = Operand::parse("F4.2-WAN1.t[a-b, L1] - t").unwrap();
        let Expression::Binary(Operator::Subtract, left, right) = operand.expression else {
            panic!("a difference");
        };
        assert_eq!(*left, quantity(Some("F4.2-WAN1"), "t", &["a-b", "L1"]));
        assert_eq!(*right, quantity(None, "t", &[]));
    }

    #[test]
    fn products_bind_before_sums_and_functions_nest() {
        let operand = Operand::parse("1 + 2 * max(cv(t[x]))").unwrap();
        let Expression::Binary(Operator::Add, one, product) = operand.expression else {
            panic!("a sum");
        };
        assert_eq!(*one, Expression::Number(1.0));
        assert!(matches!(
            *product,
            Expression::Binary(Operator::Multiply, ..)
        ));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, problem) in [
            ("a", "comparator"),
            ("a > ", "number or a quantity"),
            ("a > b at", "value of an axis"),
            ("a[ > b", "value of an axis"),
            ("a[x > b", "`,` or `]`"),
            ("sum(a) > b", "functions are"),
            ("falls(a", "`)`"),
            ("a > b c", "end"),
            ("1.2.3 > a", "no number"),
            (&("(".repeat(70) + "a"), "too deeply"),
        ] {
            let error = Condition::parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
