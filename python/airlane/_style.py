"""The look of all drawings: print sizes, colours that all readers can tell apart, units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

WIDTHS_IN: Final = {"single": 3.5, "double": 7.16}
"""Widths of one and of both columns of an IEEE page, in inches."""

BLACK: Final = "#000000"
VERMILION: Final = "#D55E00"
BLUE: Final = "#0072B2"
GREEN: Final = "#009E73"
PURPLE: Final = "#CC79A7"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
GREY: Final = "#777777"

COLOURS: Final = (BLACK, VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY)
"""Okabe and Ito's palette (2008) without its yellow, which is too pale for lines."""
# One more than there are colours: all 56 combinations of the two differ.
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES: Final[tuple[Any, ...]] = (
    "solid",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1.2, 1.5)),
    (0, (8, 2)),
    (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (2.5, 2.5)),
    "solid",
)
HATCHES: Final = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "oo", "||||")

RC: Final[Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#808080",
    "grid.alpha": 0.35,
    "grid.linewidth": 0.4,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.6,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.columnspacing": 1.2,
    "legend.labelspacing": 0.3,
    "legend.borderaxespad": 0.2,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    # Whole TrueType fonts in PDF and outlines in SVG, so that readers do not need our fonts.
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    # Ids in SVG derive from this instead of random numbers.
    "svg.hashsalt": "airlane",
    "savefig.dpi": 300,
}

_PREFIXES: Final[dict[str, tuple[tuple[float, str, float], ...]]] = {
    "bit/s": ((1e9, "Gbit/s", 1e-9), (1e6, "Mbit/s", 1e-6), (1e3, "kbit/s", 1e-3)),
    "s": ((1.0, "s", 1.0), (1e-3, "ms", 1e3), (0.0, "µs", 1e6)),
    "ratio": ((0.0, "%", 100.0),),
}


def shown_unit(unit: str, values: Iterable[float]) -> tuple[str, float]:
    """Choose the prefix in which numbers are easiest to read.

    Args:
        unit: `bit/s`, `s`, `ratio`, or any other, which is left unchanged.
        values: Values in that unit.

    Returns:
        The unit to show, and the factor to it.
    """
    largest = max((abs(value) for value in values), default=0.0)
    for least, name, factor in _PREFIXES.get(unit, ()):
        if largest >= least:
            return name, factor
    return unit, 1.0
