"""Plots means of a sweep with their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from airlane._check import columns
from airlane._frames import polars_of
from airlane._style import COLOURS, DASHES, MARKERS, shown_unit
from airlane.plots.axis import places
from airlane.plots.style import name_lines, new_figure, styled
from airlane.summary import summary

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["means"]

_UNITS: Final = {"bps": "bit/s", "s": "s", "ratio": "ratio", "bytes": "B"}
"""Units by the ending of a metric's name."""


@styled
def means(
    frame: object,
    metric: str,
    *,
    x: str,
    by: str | None = None,
    facet: str | None = None,
    log: str = "",
    x_label: str | None = None,
    y_label: str | None = None,
    confidence: float = 0.95,
) -> Figure:
    """A metric over an axis of a sweep, with a line for each value of another axis.

    Args:
        frame: The result of `sweep` or `difference`, in Polars or pandas.
        metric: Its column; the unit at the end of its name is shown with a fitting prefix.
        x: The horizontal axis. Numbers and quantities (`"50 ms"`) are placed to scale, names
            side by side.
        by: Axis whose values have a line each; one line if None. Other axes are averaged over.
        facet: Axis whose values have a panel each; one panel if None. Panels are stacked and
            have the same axes.
        log: Which axes are logarithmic: `"x"`, `"y"` or `"xy"`. A value not above 0 has no place
            on such an axis and is left out.
        x_label: Label of the x axis; by default the name of the axis and the unit that the scenario
            file gives it.
        y_label: Label of the y axis, before the unit; if left out, the name of the metric and,
            of a `difference`, the baseline.
        confidence: Probability that an error bar holds the true mean (Student's t). Where nothing
            measured is below 0, neither is a bar.

    Returns:
        A figure of column width; its `savefig` embeds the fonts. A line that others cover is drawn
        wider than they are. A mean that not all runs measured is marked with their number.

    Raises:
        ValueError: If a column is missing, there are no values, or `log` is not an axis.

    """
    table = polars_of(frame)
    if set(log) - {"x", "y"}:
        raise ValueError(f'log={log!r}: "x", "y", "xy", or "" for none')
    wanted = [name for name in (facet, x, by) if name is not None]
    columns(table, [*wanted, metric])
    rows = summary(table, wanted, metrics=metric, confidence=confidence).drop_nulls("mean")
    if rows.is_empty():
        raise ValueError(f"nothing was measured of {metric!r}")
    where, x_words = places(x, rows[x].unique(maintain_order=True))
    stands = dict(zip(rows[x].unique(maintain_order=True), where, strict=True))
    if "x" in log and any(isinstance(at, str) for at in where):
        raise ValueError(f"log={log!r}: the values of {x!r} are names, which have no logarithms")
    if "y" in log:
        rows = rows.filter(rows["mean"] > 0)
    if "x" in log:
        above = {at: place for at, place in stands.items() if float(place) > 0}
        rows = rows.filter(rows[x].is_in(list(above)))
        stands = above
    if rows.is_empty():
        raise ValueError(f"log={log!r}: nothing is above 0")
    name, _, ending = metric.rpartition("_")
    unit, factor = shown_unit(_UNITS.get(ending, ""), rows["mean"])
    panels = rows.partition_by(facet, as_dict=True, maintain_order=True) if facet else {("",): rows}
    height = 2.3 if len(panels) == 1 else 0.4 + 1.6 * len(panels)
    figure, first = new_figure(height, len(panels))
    # A share or a time cannot be negative, even if a t interval of few runs says so.
    from_ = table["difference_from"].unique() if "difference_from" in table.columns else None
    least = -math.inf if from_ is not None or (table[metric] < 0).any() else 0.0
    names = rows[by].unique(maintain_order=True).to_list() if by else [""]
    for axes, ((title,), panel) in zip(figure.axes, panels.items(), strict=True):
        lines = [panel.filter(panel[by] == value) for value in names] if by else [panel]
        _draw(axes, lines, names, x, stands, (factor, least, log))
        if facet:
            axes.set_title(f"{facet.rpartition('.')[2]} {title}")
    words = (name if _UNITS.get(ending) else metric).replace(".", ": ", 1).replace("_", " ")
    side = words if y_label is None else y_label
    side += f" ({unit})" if unit else ""
    if from_ is not None and y_label is None:
        side += f",\ndifference from {', '.join(from_)}"
    figure.axes[-1].set(xlabel=x_words if x_label is None else x_label)
    for axes in figure.axes:
        axes.set(ylabel=side)
    if "y" not in log:
        first.set_ylim(bottom=min(0.0, first.get_ylim()[0]))
    if by:
        name_lines(figure, first, f"{by} (bars: {100 * confidence:g} % intervals)")
    return figure


def _draw(
    axes: Axes,
    lines: list[pl.DataFrame],
    names: list[object],
    x: str,
    stands: Mapping[object, float | str],
    scale: tuple[float, float, str],
) -> None:
    """Draws the lines of a panel. `scale`: the factor of the unit shown, the least value, `log`."""
    factor, least, log = scale
    over_it = _hidden([dict(zip(line[x], line["mean"], strict=True)) for line in lines])
    for index, (value, line) in enumerate(zip(names, lines, strict=True)):
        mean = line["mean"] * factor
        half = line["half_width"].fill_null(0.0) * factor
        # On a logarithmic axis, a bar that reaches 0 would be infinitely long.
        room = [m - least if "y" not in log else 0.999 * m for m in mean]
        at = [stands[place] for place in line[x]]
        axes.errorbar(
            at,
            mean,
            yerr=[[min(h, r) for h, r in zip(half, room, strict=True)], half.to_list()],
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle=DASHES[index % len(DASHES)],
            linewidth=1.0 + 1.4 * over_it[index],
            markersize=3.6 + 2.0 * over_it[index],
            elinewidth=0.8,
            capsize=2,
            label=str(value),
        )
        for place, height, n, runs in zip(at, mean, line["n"], line["runs"], strict=True):
            if n < runs:
                axes.annotate(
                    f"{n} of {runs} runs",
                    (place, height),
                    (3, 3),
                    textcoords="offset points",
                    fontsize=5.5,
                )
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")


def _hidden(lines: list[dict[object, float]]) -> list[int]:
    """For each line, how many later lines cover it for more than half of its length."""
    values = [mean for line in lines for mean in line.values()]
    # As a share of the panel's height, which starts at 0 or below: half the height of a marker.
    near = 0.01 * (max(*values, 0.0) - min(*values, 0.0))

    def is_under(line: dict[object, float], other: dict[object, float]) -> bool:
        meet = [x for x in line if x in other and abs(line[x] - other[x]) <= near]
        return 2 * len(meet) > len(line)

    return [sum(is_under(line, over) for over in lines[i + 1 :]) for i, line in enumerate(lines)]
