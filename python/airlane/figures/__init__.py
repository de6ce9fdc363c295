"""Published figures from the results of `airlane study run`: print size, error bars, vector files.

A study says in its own file what it draws (docs/figures.md); nothing here knows a work.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from airlane._figure import METADATA, house_style
from airlane._style import WIDTHS_IN
from airlane.figures._draw import render
from airlane.figures._outcome import ResultsError, Study, find, read

__all__ = ["FORMATS", "WIDTHS_IN", "ResultsError", "draw", "save", "save_all"]

FORMATS = ("pdf", "svg", "png")
"""Files that can be written: PDF and SVG to print, PNG of 300 dots an inch to look at."""


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
    if figures:
        studies = [find(folder, figure)[1] for figure in figures]
    else:
        studies = [s for outcome in read(folder) for s in outcome.studies if s.drawing]
    written = []
    for study in studies:
        figure = _figure(study, width)
        stem = Path(out) / study.work / study.id
        written += [save(figure, f"{stem}.{name}") for name in formats]
    return written


def _figure(study: Study, width: str | None) -> Figure:
    if width is not None and width not in WIDTHS_IN:
        raise ResultsError(f'no width "{width}"; there are: {", ".join(WIDTHS_IN)}')
    if study.drawing is None:
        raise ResultsError(
            f"{study.work}/{study.id} has nothing to draw: it runs no scenario of its own"
        )
    return render(study.drawing, width)
