"""Means of a sweep with their confidence intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from airlane._check import columns
from airlane._style import COLOURS, DASHES, MARKERS, shown_unit
from airlane.plots.axis import places
from airlane.plots.style import name_lines, new_figure, styled
from airlane.summary import summary

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["means"]

_UNITS: Final = {"bps": "bit/s", "s": "s", "ratio": "ratio", "bytes": "B"}
"""What the ends of names say."""


@styled
def means(
    frame: pl.DataFrame,
    metric: str,
    *,
    x: str,
    by: str | None = None,
    x_label: str | None = None,
    y_label: str | None = None,
    confidence: float = 0.95,
) -> Figure:
    """A metric over an axis of a sweep, a line for each value of another.

    Args:
        frame: What `sweep` or `difference` gave.
        metric: Which column; the unit at the end of its name is shown with a fitting prefix.
        x: The axis to the right. Numbers and quantities (`"50 ms"`) stand where they are, names
            side by side.
        by: What each line is for; one line if None. Other axes are averaged over.
        x_label: What stands below; if left out, the name of the axis and the unit that the scenario
            file gives it.
        y_label: What stands at the side, before the unit; if left out, the name of the metric and,
            of a `difference`, from what.
        confidence: Probability that an error bar holds the true mean (Student's t). Where nothing
            measured is below 0, neither is a bar.

    Returns:
        A figure of column width; its `savefig` embeds the fonts. A line that lies under others is
        drawn wider than they are.

    Raises:
        ValueError: If the frame has no such columns, or no values.

    """
    wanted = [name for name in (x, by, metric) if name is not None]
    columns(frame, wanted)
    rows = summary(frame, wanted[:-1], metrics=metric, confidence=confidence).drop_nulls("mean")
    if rows.is_empty():
        raise ValueError(f"nothing was measured of {metric!r}")
    name, _, ending = metric.rpartition("_")
    unit, factor = shown_unit(_UNITS.get(ending, ""), rows["mean"])
    figure, axes = new_figure()
    # A share or a time cannot be less than nothing, whatever a t distribution thinks of few runs.
    from_ = frame["difference_from"].unique() if "difference_from" in frame.columns else None
    least = -math.inf if from_ is not None or (frame[metric] < 0).any() else 0.0
    lines = rows.partition_by(by, as_dict=True, maintain_order=True) if by else {("",): rows}
    where, x_words = places(x, rows[x].unique(maintain_order=True))
    stands = dict(zip(rows[x].unique(maintain_order=True), where, strict=True))
    over_it = _hidden([dict(zip(line[x], line["mean"], strict=True)) for line in lines.values()])
    for index, ((value,), line) in enumerate(lines.items()):
        mean = line["mean"] * factor
        half = line["half_width"].fill_null(0.0) * factor
        axes.errorbar(
            [stands[at] for at in line[x]],
            mean,
            yerr=[[min(h, m - least) for h, m in zip(half, mean, strict=True)], half.to_list()],
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            linestyle=DASHES[index % len(DASHES)],
            linewidth=1.0 + 1.4 * over_it[index],
            markersize=3.6 + 2.0 * over_it[index],
            elinewidth=0.8,
            capsize=2,
            label=str(value),
        )
    words = (name if _UNITS.get(ending) else metric).replace(".", ": ", 1).replace("_", " ")
    side = words if y_label is None else y_label
    side += f" ({unit})" if unit else ""
    if from_ is not None and y_label is None:
        side += f",\ndifference from {', '.join(from_)}"
    axes.set(xlabel=x_words if x_label is None else x_label, ylabel=side)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if by:
        name_lines(figure, axes, by)
    return figure


def _hidden(lines: list[dict[object, float]]) -> list[int]:
    """How many of the lines after it each lies under, for more than half of its length."""
    values = [mean for line in lines for mean in line.values()]
    # Of the height of the panel, which begins at 0 or below: half of the height of a marker.
    near = 0.01 * (max(*values, 0.0) - min(*values, 0.0))

    def is_under(line: dict[object, float], other: dict[object, float]) -> bool:
        meet = [x for x in line if x in other and abs(line[x] - other[x]) <= near]
        return 2 * len(meet) > len(line)

    return [sum(is_under(line, over) for over in lines[i + 1 :]) for i, line in enumerate(lines)]
