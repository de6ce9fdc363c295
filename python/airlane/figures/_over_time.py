"""Draws what a study records over the time of one run; no rule here is specific to a work."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, MaxNLocator

from airlane import _style
from airlane._figure import HouseFigure, house_style, legend_above
from airlane.figures._outcome import Curves, CurvesPanel, ResultsError

# By panel (`at`), line and quantity: times in seconds and values.
Points = dict[tuple[str, str, str], tuple[list[float], list[float]]]

# Inches: a panel with its labels.
_PANEL_IN = 1.7
# How marks on a curve look, and what they say.
_MARKS = {
    "sent_again_bytes": ("x", "sent again"),
    "repaired_on_link_bytes": ("+", "repaired on the link"),
    "fast_retransmit_bytes": ("v", "fast retransmit"),
    "timeout_bytes": ("D", "timeout"),
}
# Constant until the next point, as a sender's window is.
_STEPS = {"window_bytes", "sent_bytes"}


def read_points(path: Path) -> Points:
    """Read the curves that `airlane study run` wrote.

    Args:
        path: The CSV file.

    Returns:
        Times and values.

    Raises:
        ResultsError: If there is no such file, or it holds something else.
    """
    points: Points = defaultdict(lambda: ([], []))
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                times, values = points[row["at"], row["line"], row["quantity"]]
                times.append(float(row["time_s"]))
                values.append(float(row["value"]))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ResultsError(
            f"{path}: no curves over time ({error}); `airlane study run` writes them"
        ) from error
    return points


def render_curves(curves: Curves, points: Points, width: str | None = None) -> Figure:
    """Draw the curves of a study.

    Args:
        curves: What stands where.
        points: From `read_points`.
        width: `single` or `double` column; None for both columns of a page.

    Returns:
        A figure in print size that is not attached to a window.
    """
    inches = _style.WIDTHS_IN[width or "double"]
    rows = len(curves.panels) // curves.columns
    handles: list[object] = []
    entries: list[str] = []
    with house_style():
        figure = HouseFigure(figsize=(inches, rows * _PANEL_IN))
        axes = figure.subplots(rows, curves.columns, squeeze=False, sharex=True, sharey="row")
        marks: set[str] = set()
        for axis, panel in zip(axes.flat, curves.panels, strict=True):
            marks |= _panel(axis, curves, panel, points)
        # Panels share their axes: limits before the last curve would cut that off.
        for axis in axes.flat:
            axis.set_ylim(bottom=0)
            axis.set_xlim(0, curves.until_s)
        # The panels below show the same part of the study.
        for axis, panel in zip(axes[0], curves.panels, strict=False):
            axis.set_title(panel.title.replace("\n", " "))
        for axis in axes[-1]:
            axis.set_xlabel(f"Time, s (one run, seed {curves.seed})")
        for axis, panel in zip(axes[:, 0], curves.panels[:: curves.columns], strict=True):
            label = panel.y_label[:1].upper() + panel.y_label[1:]
            axis.set_ylabel(f"{label}, {panel.unit}")
        for line in curves.lines:
            colour = _style.COLOURS[line.slot % len(_style.COLOURS)]
            dash = _style.DASHES[line.slot % len(_style.DASHES)]
            handles.append(Line2D([], [], color=colour, linestyle=dash))
            entries.append(line.label.replace("\n", " "))
        for quantity, (marker, name) in _MARKS.items():
            if quantity in marks:
                handles.append(Line2D([], [], color="0.3", linestyle="", marker=marker))
                entries.append(name)
        if any(panel.level is not None for panel in curves.panels):
            handles.append(Line2D([], [], color="0.3", linestyle="--", linewidth=0.8))
            entries.append("named by the work")
        legend_above(figure, handles, entries)
    return figure


def _panel(axis: Axes, curves: Curves, panel: CurvesPanel, points: Points) -> set[str]:
    """Draws a panel; returns the marks that are in it."""
    found = set()
    for line in curves.lines:
        colour = _style.COLOURS[line.slot % len(_style.COLOURS)]
        for quantity in panel.quantities:
            times, values = points.get((panel.at, line.id, quantity), ([], []))
            if not times:
                continue
            if quantity in _MARKS:
                found.add(quantity)
                marker = _MARKS[quantity][0]
                size = 3 if marker in "x+" else 2.5
                axis.plot(times, values, marker, color=colour, markersize=size, markeredgewidth=0.6)
                continue
            axis.plot(
                times,
                values,
                color=colour,
                linestyle=_style.DASHES[line.slot % len(_style.DASHES)],
                linewidth=0.8,
                drawstyle="steps-post" if quantity in _STEPS else "default",
            )
    if panel.level is not None:
        axis.axhline(panel.level, color="0.3", linestyle="--", linewidth=0.8)
    axis.yaxis.set_major_formatter(EngFormatter(sep=" "))
    axis.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    return found
