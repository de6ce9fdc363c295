"""The x axis of a plot: an axis of a sweep with its name and unit, with quantities to scale."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from airlane import _native
from airlane._style import shown_unit

if TYPE_CHECKING:
    import polars as pl

__all__ = ["label", "places"]

_QUANTITY: Final = re.compile(r"\s*([0-9._]+)\s*([A-Za-z/]+)\s*")
_BASES: Final = {
    **{
        "ns": ("s", 1e-9),
        "us": ("s", 1e-6),
        "ms": ("s", 1e-3),
        "s": ("s", 1.0),
        "min": ("s", 60.0),
    },
    **{
        prefix + "bit/s": ("bit/s", f)
        for prefix, f in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9))
    },
    **{prefix + "B": ("B", f) for prefix, f in (("", 1), ("k", 1e3), ("M", 1e6), ("G", 1e9))},
}
_STEP: Final = re.compile(r"\[([^]]*)\]|\"([^\"]*)\"|([^.\[\]\"]+)")


def places(axis: str, values: pl.Series) -> tuple[list[float] | list[str], str]:
    """The positions of an axis's values, and its label.

    Numbers and quantities of one kind are placed to scale, everything else is evenly spaced.
    """
    unit = _native.unit_at(axis) or ""
    if values.dtype.is_numeric():
        return values.to_list(), label(axis, unit)
    texts = [str(value) for value in values]
    matches = [_QUANTITY.fullmatch(text) for text in texts]
    found = [(float(m[1].replace("_", "")), *_BASES[m[2]]) for m in matches if m and m[2] in _BASES]
    kinds = {base for _, base, _ in found}
    if len(found) < len(texts) or len(kinds) != 1 or not unit:
        # Each has its own unit.
        return texts, label(axis, "")
    numbers = [number * scale for number, _, scale in found]
    shown, factor = shown_unit(kinds.pop(), numbers)
    return [number * factor for number in numbers], label(axis, shown)


def label(axis: str, unit: str) -> str:
    """`links.radio.services[voice].rate` as `radio, voice: rate`, with its unit."""
    whose: list[str] = []
    keys: list[str] = []
    for inside, quoted, plain in _STEP.findall(axis):
        step = inside or quoted or plain
        if inside or keys in (["links"], ["nodes"]):
            of_all = f"all {keys[-1]}" if keys else step
            whose.append(
                of_all if step == "*" else f"{keys[-1]} {step}" if step.isdigit() else step
            )
            keys.clear()
        else:
            keys.append(step.replace("_", " "))
    name = f"{', '.join(whose)}: {' '.join(keys)}" if whose and keys else axis
    return f"{name} ({unit})" if unit else name
