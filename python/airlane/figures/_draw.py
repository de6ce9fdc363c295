"""Draws the numbers of a study with Matplotlib; no rule here is specific to a study or a work."""

from __future__ import annotations

import math
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogFormatter, MaxNLocator, NullFormatter

from airlane import _style
from airlane._figure import HouseFigure, house_style, legend_above
from airlane.figures._outcome import Drawing, Mark

Handle = BarContainer | ErrorbarContainer

# Offset of neighbouring lines, in places of the x axis, so that intervals of equal values stay
# visible.
_DODGE = 0.035
# Inches: a panel with its labels.
_PANEL_IN = 2.0
# Width of a letter of a name on the x axis, with room to read it.
_LETTER_IN = 0.062


def render(drawing: Drawing, width: str | None = None) -> Figure:
    """Draw the numbers of a study.

    Args:
        drawing: Names, numbers and units.
        width: `single` or `double` column; None for what the study wants.

    Returns:
        A figure in print size that is not attached to a window.
    """
    inches = _style.WIDTHS_IN[width or drawing.width]
    # Panels that would become too narrow are stacked.
    columns = min(drawing.columns, max(1, int(inches / 1.75)))
    rows = math.ceil(len(drawing.panels) / columns)
    named = len(drawing.lines) > 1
    entries = [line.label for line in drawing.lines] if named else []
    with house_style():
        figure = HouseFigure(figsize=(inches, rows * _PANEL_IN))
        axes = figure.subplots(rows, columns, squeeze=False)
        panels: list[list[Handle]] = []
        for index, axis in enumerate(axes.flat):
            if index >= len(drawing.panels):
                axis.set_axis_off()
                continue
            panels.append(_panel(axis, drawing, index, 0.8 * inches / columns))
        _align(axes.flat, drawing)
        handles: list[object] = []
        if named:
            # Bars that one panel lacks would be in the legend without their style.
            handles += [max(line, key=len) for line in zip(*panels, strict=True)]
        for handle, entry in _signs(drawing):
            handles.append(handle)
            entries.append(entry)
        if entries:
            legend_above(figure, handles, entries)
    return figure


def _signs(drawing: Drawing) -> Iterator[tuple[object, str]]:
    """What is drawn in addition to the values: intervals, and printed values."""
    cells = [cell for panel in drawing.panels for row in panel.values for cell in row]
    if any(cell is not None and cell.half_width for cell in cells):
        yield Line2D([], [], color="0.3", linestyle="", marker="|", markersize=7), "95 % interval"
    if drawing.marks:
        band = Patch(color="0.3", alpha=0.25, linewidth=0)
        yield (band, Line2D([], [], color="0.3", linewidth=1.2)), "published, tolerance"


def _panel(axis: Axes, drawing: Drawing, number: int, width_in: float) -> list[Handle]:
    panel = drawing.panels[number]
    cells = [cell for row in panel.values for cell in row if cell is not None]
    unit, factor = _style.shown_unit(panel.unit, (cell.value for cell in cells))
    handles: list[Handle] = []
    for index, (line, row) in enumerate(zip(drawing.lines, panel.values, strict=True)):
        known = [(at, cell) for at, cell in enumerate(row) if cell is not None]
        x = [at for at, _ in known]
        y = [cell.value * factor for _, cell in known]
        half = [(cell.half_width or 0.0) * factor for _, cell in known]
        offset = index - (len(drawing.lines) - 1) / 2
        if drawing.kind == "bars":
            handles.append(_bars(axis, x, y, half, line.slot, offset, len(drawing.lines)))
        else:
            handles.append(_line(axis, x, y, half, line.slot, offset))
    for mark in (mark for mark in drawing.marks if mark.panel == number):
        _mark(axis, drawing, mark, factor)
    label = panel.y_label[:1].upper() + panel.y_label[1:]
    axis.set_ylabel(f"{label}, {unit}" if unit else label)
    axis.set_xlabel(drawing.x_label)
    if panel.title:
        axis.set_title(panel.title)
    axis.set_xticks(range(len(drawing.x)), drawing.x)
    longest = max((len(row) for name in drawing.x for row in name.splitlines()), default=0)
    if (longest + 1) * _LETTER_IN * len(drawing.x) > width_in:
        axis.tick_params(axis="x", rotation=90)
    axis.set_xlim(-0.5, len(drawing.x) - 0.5)
    values = [cell.value * factor for cell in cells]
    if drawing.log and all(value > 0 for value in values):
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(LogFormatter(labelOnlyBase=False))
        axis.yaxis.set_minor_formatter(NullFormatter())
    else:
        axis.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        # With an axis from zero, values that hardly vary would be a flat line far above it.
        near = drawing.kind == "lines" and values and min(values) > 0.75 * max(values)
        if not near and all(value >= 0 for value in values):
            axis.set_ylim(bottom=0)
    return handles


def _mark(axis: Axes, drawing: Drawing, mark: Mark, factor: float) -> None:
    """Draws printed values: a line across the place, and a band of values that count as equal."""
    lines = len(drawing.lines)
    apart = 0.8 / lines if drawing.kind == "bars" else _DODGE
    at = mark.at + (mark.line - (lines - 1) / 2) * apart
    colour = _style.COLOURS[drawing.lines[mark.line].slot % len(_style.COLOURS)]
    low, high = (bound * factor for bound in mark.band)
    width = max(apart, 0.12)
    axis.bar(at, high - low, width, bottom=low, color=colour, alpha=0.25, linewidth=0, zorder=0.5)
    # On a bar its own colour could not be seen.
    line = "black" if drawing.kind == "bars" else colour
    axis.hlines(mark.value * factor, at - width / 2, at + width / 2, color=line, linewidth=1.2)


def _line(
    axis: Axes, x: list[int], y: list[float], half: list[float], slot: int, offset: float
) -> ErrorbarContainer:
    colour = _style.COLOURS[slot % len(_style.COLOURS)]
    return axis.errorbar(
        [at + offset * _DODGE for at in x],
        y,
        yerr=half,
        color=colour,
        marker=_style.MARKERS[slot % len(_style.MARKERS)],
        markerfacecolor="white" if slot % 2 else colour,
        markeredgewidth=0.8,
        linestyle=_style.DASHES[slot % len(_style.DASHES)],
        elinewidth=0.7,
        capsize=1.6,
        capthick=0.7,
    )


def _bars(
    axis: Axes,
    x: list[int],
    y: list[float],
    half: list[float],
    slot: int,
    offset: float,
    lines: int,
) -> BarContainer:
    width = 0.8 / lines
    return axis.bar(
        [at + offset * width for at in x],
        y,
        width=width * 0.92,
        yerr=half,
        color=_style.COLOURS[slot % len(_style.COLOURS)] if slot else "#606060",
        edgecolor="white",
        linewidth=0.3,
        hatch=_style.HATCHES[slot % len(_style.HATCHES)],
        error_kw={"elinewidth": 0.7, "capsize": 1.6, "capthick": 0.7, "ecolor": "black"},
    )


def _align(axes: Iterator[Axes], drawing: Drawing) -> None:
    """Panels of the same quantity have the same y axis, so that they can be compared."""
    shown: dict[str, list[Axes]] = {}
    for axis, panel in zip(axes, drawing.panels, strict=False):
        shown.setdefault(panel.y_label, []).append(axis)
    for same in shown.values():
        # Units are chosen by panel; only panels with the same unit share an axis.
        if len({axis.get_ylabel() for axis in same}) == 1:
            low = min(axis.get_ylim()[0] for axis in same)
            high = max(axis.get_ylim()[1] for axis in same)
            for axis in same:
                axis.set_ylim(low, high)
