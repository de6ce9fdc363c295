"""Figures that are saved as they were drawn, and legends that fit above them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from airlane import _style

METADATA: Final[dict[str, dict[str, str | None]]] = {
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": "airlane", "Producer": None},
    "svg": {"Date": None, "Creator": "airlane"},
    "png": {"Software": None},
}
"""Metadata of picture files: without a date, so that equal pictures are equal files."""

# In inches: a row of a legend; the approximate width of a character, and of a handle with its
# space.
_ROW_IN = 0.15
_CHARACTER_IN = 0.055
_HANDLE_IN = 0.52


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's defaults with ours on top, whatever the user's configuration says."""
    with matplotlib.style.context(["default", _style.RC]):
        yield


class HouseFigure(Figure):
    """A figure that is always saved in our style, which decides how fonts are embedded."""

    def savefig(
        self,
        fname: str | os.PathLike[str] | IO[Any],
        *,
        transparent: bool | None = None,
        **kwargs: Any,  # noqa: ANN401 (Matplotlib's own)
    ) -> None:
        """Saves it as Matplotlib does, without a date in formats that would have one."""
        named = Path(fname).suffix if isinstance(fname, str | os.PathLike) else ""
        metadata = METADATA.get((kwargs.get("format") or named.removeprefix(".")).lower())
        if metadata is not None:
            kwargs.setdefault("metadata", metadata)
        with house_style():
            super().savefig(fname, transparent=transparent, **kwargs)


def legend_above(
    figure: Figure, handles: Sequence[object], entries: list[str], title: str | None = None
) -> None:
    """Puts a legend above the panels in as many rows as it needs; the figure grows accordingly."""
    columns = _columns(entries, figure.get_figwidth())
    rows = math.ceil(len(entries) / columns) + (title is not None)
    figure.set_figheight(figure.get_figheight() + rows * _ROW_IN)
    # Matplotlib fills a legend column by column; people read it row by row.
    count = len(entries)
    order = [index for column in range(columns) for index in range(column, count, columns)]
    figure.legend(
        # Containers are legend handles, although the type checker does not take them for artists.
        cast("list[Artist]", [handles[i] for i in order]),
        [entries[i] for i in order],
        loc="outside upper center",
        ncols=columns,
        title=title,
    )


def _columns(entries: list[str], inches: float) -> int:
    widest = max((len(entry) for entry in entries), default=1)
    room = int((inches - 0.2) / (_HANDLE_IN + widest * _CHARACTER_IN))
    columns = max(1, min(room, len(entries)))
    # As even as the number of rows allows: 4 and 3 rather than 5 and 2.
    rows = math.ceil(len(entries) / columns) or 1
    return math.ceil(len(entries) / rows) or 1
