"""Published figures from the results of `airlane study run`: print size, error bars, vector files.

A study's own file says what it draws (docs/lab/figures.md); nothing here is specific to a work.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from airlane._figure import METADATA, house_style
from airlane._style import WIDTHS_IN
from airlane.figures._draw import render
from airlane.figures._grid import render_grid
from airlane.figures._outcome import ResultsError, Study, find, read
from airlane.figures._over_time import read_points, render_curves

__all__ = [
    "FORMATS",
    "WIDTHS_IN",
    "ResultsError",
    "draw",
    "draw_grid",
    "draw_over_time",
    "save",
    "save_all",
]

FORMATS = ("pdf", "svg", "png")
"""File formats: PDF and SVG for print, PNG at 300 dots per inch for the screen."""


def draw(folder: str | Path, figure: str, *, width: str | None = None) -> Figure:
    """Draw a published figure from a folder of results.

    Error bars are 95 % confidence intervals over the repetitions.

    Args:
        folder: What `airlane study run --out` was given.
        figure: A study, such as `F4.2`; `WORK/F4.2` where two works have one of that name.
        width: `single` (3.5 in) or `double` (7.16 in) column; None for what the study wants.

    Returns:
        A Matplotlib figure; `save` writes it to a file that is the same on every machine.

    Raises:
        ResultsError: If the folder has no such study, or the study nothing to draw.
    """
    _, study = find(folder, figure)
    return _figure(study, width)


def draw_over_time(folder: str | Path, figure: str, *, width: str | None = None) -> Figure:
    """Draw what a published figure shows over the time of one run, the first repetition.

    Args:
        folder: What `airlane study run --out` was given.
        figure: A study, as for `draw`.
        width: `single` (3.5 in) or `double` (7.16 in) column; None for the latter.

    Returns:
        A Matplotlib figure.

    Raises:
        ResultsError: If the folder has no such study, or the study nothing over time.
    """
    _, study = find(folder, figure)
    return _over_time(study, width)


def draw_grid(folder: str | Path) -> Figure:
    """Draw the results of `airlane study run --grid`: verdicts by setting and claim.

    Args:
        folder: What `airlane study run --out` was given.

    Returns:
        A Matplotlib figure.

    Raises:
        ResultsError: If the folder has no experiment, or those of several works.
    """
    grids = [outcome.grid for outcome in read(folder) if outcome.grid]
    if len(grids) != 1:
        raise ResultsError(
            f"{folder}: {len(grids)} experiments, where one is drawn; `airlane study run --grid`"
            " makes one"
        )
    return render_grid(grids[0])


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure as PDF, SVG or PNG, by the name's ending; fonts are embedded.

    Args:
        figure: From `draw`, or any other of Matplotlib's.
        path: Of the file; its folder is made.

    Returns:
        The path. Equal figures give equal bytes.

    Raises:
        ResultsError: If the ending is none of these.
    """
    path = Path(path)
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise ResultsError(f"{path}: figures are written as {', '.join(FORMATS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with house_style():
        figure.savefig(path, format=kind, metadata=METADATA[kind])
    return path


def save_all(
    folder: str | Path,
    out: str | Path,
    *,
    figures: Sequence[str] = (),
    formats: Sequence[str] = ("pdf", "svg"),
    width: str | None = None,
) -> list[Path]:
    """Draw all figures in a folder of results, or some, into `OUT/WORK/FIGURE.FORMAT`.

    What a study draws over time beside its figure is `OUT/WORK/FIGURE-time.FORMAT`.

    Of an experiment with several choices (`--grid`), `OUT/WORK/grid.FORMAT` shows the verdicts.

    Args:
        folder: What `airlane study run --out` was given.
        out: Where the files go.
        figures: Some of its studies; all that have something to draw if empty.
        formats: Of `FORMATS`.
        width: As for `draw`.

    Returns:
        The files, in the order of the studies.

    Raises:
        ResultsError: If a study is missing or a format unknown.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ResultsError(f'no format "{unknown[0]}"; there are: {", ".join(FORMATS)}')
    outcomes = read(folder)
    drawn = [(f"{o.work}/grid", render_grid(o.grid)) for o in outcomes if o.grid and not figures]
    if figures:
        studies = [find(folder, figure)[1] for figure in figures]
    else:
        of = [s for o in outcomes if not o.grid for s in o.studies]
        studies = [study for study in of if study.drawing or study.curves]
    for study in studies:
        if study.drawing or not study.curves:
            drawn.append((f"{study.work}/{study.id}", _figure(study, width)))
        if study.curves:
            drawn.append((f"{study.work}/{study.curves.name}", _over_time(study, width)))
    return [
        save(figure, Path(out) / f"{stem}.{name}") for stem, figure in drawn for name in formats
    ]


def _check(width: str | None) -> None:
    if width is not None and width not in WIDTHS_IN:
        raise ResultsError(f'no width "{width}"; there are: {", ".join(WIDTHS_IN)}')


def _over_time(study: Study, width: str | None) -> Figure:
    _check(width)
    if study.curves is None:
        raise ResultsError(f"{study.work}/{study.id} draws nothing over time")
    return render_curves(study.curves, read_points(study.curves.path), width)


def _figure(study: Study, width: str | None) -> Figure:
    _check(width)
    if study.drawing is None:
        raise ResultsError(
            f"{study.work}/{study.id} has nothing to draw: it runs no scenario of its own"
        )
    return render(study.drawing, width)
