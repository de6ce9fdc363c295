//! Decides what fits side by side: columns of tables, and words of lines.

use ratatui::layout::Constraint;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};

/// A table within `width`. Each column has a rank; where there is no room, those with the highest
/// rank are left out.
pub(super) fn table(
    heads: &[(&str, u8)],
    rows: Vec<Vec<Span<'static>>>,
    width: u16,
) -> Table<'static> {
    let needs = |column: usize| {
        let cells = rows.iter().filter_map(|row| Some(row.get(column)?.width()));
        let least = if column == 0 { 14 } else { 8 };
        cells
            .chain([heads[column].0.len(), least])
            .max()
            .unwrap_or(least)
    };
    let mut shown: Vec<(usize, usize)> = (0..heads.len()).map(|at| (at, needs(at))).collect();
    // Columns are separated by one space.
    while shown.iter().map(|(_, needed)| needed + 1).sum::<usize>() > usize::from(width) + 1
        && shown.len() > 1
    {
        let last = shown.iter().max_by_key(|(column, _)| heads[*column].1);
        let last = last.map(|(column, _)| *column);
        shown.retain(|(column, _)| Some(*column) != last);
    }
    let widths: Vec<_> = shown
        .iter()
        .map(|(_, needed)| Constraint::Length(*needed as u16))
        .collect();
    let head = Row::new(shown.iter().map(|(column, _)| heads[*column].0.to_owned()));
    let head = head.style(Style::new().add_modifier(Modifier::BOLD));
    let pick = |row: Vec<Span<'static>>| {
        let cells = row.into_iter().enumerate();
        let cells = cells.filter(|(at, _)| shown.iter().any(|(column, _)| column == at));
        Row::new(cells.map(|(_, cell)| Cell::from(cell)))
    };
    Table::new(rows.into_iter().map(pick).collect::<Vec<_>>(), widths).header(head.top_margin(1))
}

/// How many rows a line takes at this width, wrapped between words.
pub(super) fn rows_of(line: &Line<'_>, width: u16) -> u16 {
    let (mut rows, mut used) = (1, 0);
    let width = usize::from(width).max(1);
    for word in line.to_string().split(' ') {
        let needed = word.chars().count();
        let with_space = used + needed + usize::from(used > 0);
        if with_space <= width {
            used = with_space;
        } else {
            rows += usize::from(used > 0) + needed.saturating_sub(1) / width;
            used = needed % width;
        }
    }
    rows as u16
}
