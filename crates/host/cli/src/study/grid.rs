//! Verdicts under several choices side by side: the results of a factorial experiment.

use airlane_study::{Verdict, WorkOutcome};

use super::text::verdict_style;
use crate::table::{Align, Cell, Table};

/// A row for each choice and a column for each claim, then the choices that contradict no claim.
/// `None` unless several choices were run without the baseline.
pub(super) fn grid_text(outcomes: &[WorkOutcome]) -> Option<String> {
    let mut text = String::new();
    for of_work in outcomes.chunk_by(|a, b| a.work == b.work) {
        if of_work.len() < 2 || of_work[0].alternative.is_none() {
            return None;
        }
        text += &table(of_work);
    }
    Some(text)
}

fn table(outcomes: &[WorkOutcome]) -> String {
    let claims = || outcomes[0].claims.iter();
    let mut text = String::from("\nclaims\n");
    let mut names = Table::new([("", Align::Right), ("", Align::Left), ("", Align::Left)]);
    for (number, claim) in (1..).zip(claims()) {
        names.row([
            format!("c{number}"),
            claim.id.clone(),
            claim.published.clone(),
        ]);
    }
    text += &names.render();
    text += "\nchoices\n";
    let heads = (1..=claims().count()).map(|number| (format!("c{number}"), Align::Left));
    let heads = std::iter::once((String::new(), Align::Right)).chain(heads);
    let tail = [
        ("agree".to_owned(), Align::Right),
        (String::new(), Align::Left),
    ];
    let mut table = Table::new(heads.chain(tail));
    let mut all = vec![];
    for (number, outcome) in (1..).zip(outcomes) {
        let claims = || outcome.claims.iter();
        let cells = claims().map(|claim| match claim.verdict {
            Some(verdict) => Cell::styled(verdict.word(), verdict_style(verdict)),
            None => Cell::from("-"),
        });
        let agreements = || claims().filter_map(|claim| claim.agreement);
        let (agree, of): (usize, usize) =
            agreements().fold((0, 0), |(agree, of), a| (agree + a.agree, of + a.all));
        let name = outcome.alternative.as_deref().unwrap_or_default();
        let last = [Cell::from(format!("{agree}/{of}")), Cell::from(name)];
        table.row(
            std::iter::once(Cell::from(number.to_string()))
                .chain(cells)
                .chain(last),
        );
        let against = |verdict: Option<Verdict>| verdict.is_none_or(|v| v < Verdict::Consistent);
        if !claims().any(|claim| against(claim.verdict)) {
            all.push(number.to_string());
        }
    }
    text += &table.render();
    text += &match all[..] {
        [] => "\nno choice has every claim hold or consistent\n".to_owned(),
        _ => format!(
            "\nevery claim holds or is consistent under {}\n",
            all.join(", ")
        ),
    };
    text
}
