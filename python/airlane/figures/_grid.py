"""Results of a factorial experiment: a row for each setting, a column for each claim."""

from __future__ import annotations

import re
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from airlane import _style
from airlane._figure import HouseFigure, house_style, legend_above
from airlane.figures._outcome import Grid, GridPoint

# The colour, and the letter that says the same without colour.
_LOOKS = {
    "holds": (_style.BLUE, "h", "holds"),
    "consistent": ("#BFE3F5", "c", "consistent"),
    "near": (_style.ORANGE, "n", "near"),
    "misses": (_style.VERMILION, "m", "misses"),
    "source-inconsistent": ("#BBBBBB", "s", "source inconsistent"),
    None: ("#FFFFFF", "-", "nothing to compare"),
}
_DARK = {"holds", "misses"}
# Inches: a row, and the space above and below all of them.
_ROW_IN = 0.155
_AROUND_IN = 1.8


def render_grid(grid: Grid) -> Figure:
    """Draw the verdicts of all settings, and how many comparisons agree in each.

    Args:
        grid: The settings and their verdicts.

    Returns:
        A figure of both columns' width.
    """
    names, labels = _settings(grid.points)
    rows = len(grid.points)
    verdicts = [[point.verdicts.get(claim) for claim in grid.claims] for point in grid.points]
    with house_style():
        size = (_style.WIDTHS_IN["double"], rows * _ROW_IN + _AROUND_IN)
        figure = HouseFigure(figsize=size)
        cells, bars = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
        _cells(cells, verdicts)
        cells.set_yticks(range(rows), [", ".join(label) for label in labels])
        cells.set_ylabel(", ".join(names))
        # Works name their claims `XYL-...`; a prefix that all of them share says nothing.
        prefixes = {claim.partition("-")[0] for claim in grid.claims}
        common = prefixes.pop() + "-" if len(prefixes) == 1 else ""
        short = [claim.removeprefix(common) for claim in grid.claims]
        cells.set_xticks(range(len(short)), short, rotation=90)
        for at, (above, below) in enumerate(pairwise(labels)):
            if len(names) > 1 and above[:1] != below[:1]:
                cells.axhline(at + 0.5, color="black", linewidth=0.8)
        _agreement(bars, grid.points)
        used = [look for look in _LOOKS if any(look in row for row in verdicts)]
        patches = [Patch(facecolor=_LOOKS[v][0], edgecolor="black", linewidth=0.4) for v in used]
        legend_above(figure, patches, [f"{_LOOKS[v][1]}: {_LOOKS[v][2]}" for v in used])
    return figure


def _cells(axis: Axes, verdicts: list[list[str | None]]) -> None:
    for y, row in enumerate(verdicts):
        for x, verdict in enumerate(row):
            colour, letter, _ = _LOOKS[verdict]
            axis.barh(y, 1, 1, left=x - 0.5, color=colour, edgecolor="white", linewidth=0.6)
            ink = "white" if verdict in _DARK else "black"
            axis.text(x, y, letter, ha="center", va="center_baseline", color=ink, fontsize=7)
    axis.set_xlim(-0.5, len(verdicts[0]) - 0.5)
    axis.set_ylim(len(verdicts) - 0.5, -0.5)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    for side in axis.spines.values():
        side.set_visible(False)


def _agreement(axis: Axes, points: tuple[GridPoint, ...]) -> None:
    counts = [point.agree for point in points]
    most = max(point.all for point in points)
    what = f"Agree, of {most}"
    if most == 0:
        # With printed numbers, a claim is one comparison.
        counts = [sum(v == "holds" for v in point.verdicts.values()) for point in points]
        most = len(points[0].verdicts)
        what = f"Hold, of {most}"
    for y, count in enumerate(counts):
        colour = _style.GREEN if count == max(counts) else _style.GREY
        axis.barh(y, count, 0.7, color=colour)
        axis.text(count, y, f" {count}", ha="left", va="center_baseline", fontsize=7)
    axis.set_xlim(0, 1.12 * most)
    axis.set_xlabel(what)
    ticks = MaxNLocator(4, integer=True).tick_values(0, most)
    axis.set_xticks([tick for tick in ticks if tick <= most])
    axis.tick_params(axis="y", length=0, labelleft=False)
    axis.grid(visible=False)


_PAIR = re.compile(r'([\w-]+) = ("[^"]*"|[^,}]+)')


def _settings(points: tuple[GridPoint, ...]) -> tuple[list[str], list[tuple[str, ...]]]:
    """The choices that differ between the settings: their names, and the values in each setting."""
    told = [_told(point) for point in points]
    names = [name for name in told[0] if len({one.get(name) for one in told}) > 1]
    # In the sort order of the rows: the choice that changes least often comes first.
    names.sort(key=lambda name: sum(a.get(name) != b.get(name) for a, b in pairwise(told)))
    # The same key may occur twice, of which the later one applies.
    labels = [tuple(one.get(name, "-") for name in names) for one in told]
    return names, labels


def _told(point: GridPoint) -> dict[str, str]:
    told = {}
    for place, value in point.choices:
        name = re.sub(r"\([^)]*\)", "", place).rpartition(".")[2]
        if value is None:
            told[place] = "yes"
        elif value.startswith("{"):
            told |= {key: text.strip().strip('"') for key, text in _PAIR.findall(value)}
        else:
            told[name] = value.strip('"')
    return told
