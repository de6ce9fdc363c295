//! Plain text tables: columns as wide as necessary, numbers aligned to the right.

use anstyle::Style;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// To the left, for words.
    Left,
    /// To the right, for numbers.
    Right,
}

/// One cell: its text and style.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in `style`.
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::styled(text, Style::new())
    }
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<Cell>),
    Gap,
}

impl Table {
    /// An empty table with these column heads.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        Self {
            columns: columns.into_iter().map(|(s, a)| (s.into(), a)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows
            .push(Row::Cells(cells.into_iter().map(Into::into).collect()));
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.rows.push(Row::Gap);
    }

    /// The table's text, each line indented by two spaces and ended by a line feed.
    pub fn render(&self) -> String {
        let mut widths: Vec<usize> = self.columns.iter().map(|(head, _)| width(head)).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (widest, cell) in widths.iter_mut().zip(cells) {
                    *widest = (*widest).max(width(&cell.text));
                }
            }
        }
        let heads = self
            .columns
            .iter()
            .map(|(head, _)| Cell::styled(head.as_str(), Style::new().bold()));
        let mut text = String::new();
        if self.columns.iter().any(|(head, _)| !head.is_empty()) {
            self.line(&mut text, &heads.collect::<Vec<_>>(), &widths);
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.line(&mut text, cells, &widths),
                Row::Gap => text.push('\n'),
            }
        }
        text
    }

    fn line(&self, text: &mut String, cells: &[Cell], widths: &[usize]) {
        let mut line = String::new();
        for ((cell, (_, align)), widest) in cells.iter().zip(&self.columns).zip(widths) {
            let padding = " ".repeat(widest - width(&cell.text));
            let Cell { text, style } = cell;
            let styled = if text.is_empty() || style.is_plain() {
                text.clone()
            } else {
                format!("{style}{text}{style:#}")
            };
            line.push_str("  ");
            match align {
                Align::Left => line.extend([styled, padding]),
                Align::Right => line.extend([padding, styled]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Width on the screen, columns. All our text is narrow: Latin letters, `±`, block characters.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("flow", Align::Left), ("loss", Align::Right)]);
        table.row(["file", "0 %"]);
        table.gap();
        table.row(["conference", "12.5 ± 0.1 %"]);
        let plain = anstream::adapter::strip_str(&table.render()).to_string();
        let expected = "  flow                loss\n  file                 0 %\n\n  conference  12.5 ± 0.1 %\n";
        assert_eq!(plain, expected);
    }
}
