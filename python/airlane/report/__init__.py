"""One self-contained HTML page for each work: figures, claims, verdicts, and how to rerun them.

A page loads nothing, runs no script and is the same for the same results. docs/lab/figures.md says
how to make one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2

from airlane._style import shown_unit
from airlane.figures._outcome import Claim, Outcome, ResultsError, Study, read

__all__ = ["ResultsError", "write"]

VERDICTS = ("holds", "consistent", "near", "misses")


@dataclass(frozen=True, slots=True)
class Section:
    """A study, as its section of the page shows it."""

    study: Study
    anchor: str
    claims: list[Claim]
    command: str
    pictures: list[str]
    tables: list[Table]


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a panel as a table, for readers who cannot see it: a row for each line."""

    caption: str
    head: tuple[str, ...]
    rows: list[tuple[str, list[str]]]


def write(folder: str | Path, out: str | Path | None = None) -> list[Path]:
    """Write a page for each work in a folder of results.

    Args:
        folder: The folder given to `airlane study run --out`.
        out: Folder for the pages, `WORK.html`; `report` in the folder of results if None.

    Returns:
        The pages, by the works' names. Equal results give equal bytes.

    Raises:
        ResultsError: If the folder has no results of studies.
    """
    outcomes = read(folder)
    out = Path(folder) / "report" if out is None else Path(out)
    out.mkdir(parents=True, exist_ok=True)
    pages = []
    for outcome in outcomes:
        page = out / f"{outcome.work}.html"
        page.write_text(_page(outcome), encoding="utf-8")
        pages.append(page)
    return pages


def _page(outcome: Outcome) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("airlane.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    template = environment.get_template("page.html.jinja")
    return template.render(
        outcome=outcome,
        verdicts=tuple(verdict for verdict in VERDICTS if verdict in outcome.counts),
        total=sum(outcome.counts.get(verdict, 0) for verdict in VERDICTS),
        apart=sum(claim.apart is not None for claim in outcome.claims),
        unjudged=sum(claim.unjudged is not None for claim in outcome.claims),
        command=_command(outcome, *outcome.asked),
        sections=[_section(outcome, study) for study in outcome.studies],
    )


def _section(outcome: Outcome, study: Study) -> Section:
    # Matplotlib takes a second to load; a check whether the package is installed should not wait
    # for it.
    from airlane.report import _svg

    anchor = study.id.replace(" ", "-")
    shown = ((study.drawing, anchor), (study.curves, f"{anchor}-time"))
    return Section(
        study=study,
        anchor=anchor,
        claims=[claim for claim in outcome.claims if claim.study == study.id],
        command=_command(outcome, f"{outcome.work}/{study.id}"),
        pictures=[_svg.inline(what, prefix) for what, prefix in shown if what],
        tables=list(_tables(study)),
    )


def _command(outcome: Outcome, *what: str) -> str:
    """The commands that rerun it and write the page, a line each."""
    options = outcome.options
    run = shlex.join(["airlane", "study", "run", *what, *options, "--out", "results"])
    at = options.index("--studies") if "--studies" in options else len(options)
    page = shlex.join(["airlane", "study", "report", "results", *options[at : at + 2]])
    return f"{run}\n{page}"


def _tables(study: Study) -> Iterator[Table]:
    drawing = study.drawing
    if drawing is None:
        return
    for panel in drawing.panels:
        cells = (cell for row in panel.values for cell in row if cell is not None)
        unit, factor = shown_unit(panel.unit, (cell.value for cell in cells))
        named = [panel.y_label, panel.title]
        caption = ", ".join(part for part in named if part) + (f", {unit}" if unit else "")
        rows = []
        for line, values in zip(drawing.lines, panel.values, strict=True):
            texts = []
            for cell in values:
                if cell is None:
                    texts.append("not measured")
                elif cell.half_width is None:
                    texts.append(_digits(cell.value * factor))
                else:
                    half = _digits(cell.half_width * factor)
                    texts.append(f"{_digits(cell.value * factor)} ± {half}")
            rows.append((line.label, texts))
        yield Table(caption, drawing.x, rows)


def _digits(value: float) -> str:
    """Three significant digits, or more before the decimal point."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
