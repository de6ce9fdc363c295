"""Applies our style and the width of a column to plots."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from airlane._style import WIDTHS_IN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
R = TypeVar("R")


def styled(plot: Callable[P, R]) -> Callable[P, R]:
    """Draws a plot in our style without changing that of other plots."""

    @functools.wraps(plot)
    def draw(*args: P.args, **kwargs: P.kwargs) -> R:
        from airlane._figure import house_style

        with house_style():
            return plot(*args, **kwargs)

    return draw


def new_figure(height_in: float = 2.3, panels: int = 1) -> tuple[Figure, Axes]:
    """A figure of column width with its axes: of several panels, which share them, the first."""
    from airlane._figure import HouseFigure

    figure = HouseFigure(figsize=(WIDTHS_IN["single"], height_in), layout="constrained")
    if panels == 1:
        return figure, figure.add_subplot()
    return figure, figure.subplots(panels, sharex=True, sharey=True)[0]


def name_lines(figure: Figure, axes: Axes, title: str | None = None) -> None:
    """Puts a legend of the lines above the panel, under a title if there is one."""
    from airlane._figure import legend_above

    handles, names = axes.get_legend_handles_labels()
    legend_above(figure, handles, names, title)
