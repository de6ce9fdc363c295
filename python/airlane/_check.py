"""Checks arguments, so that errors name them and do not come from native code or Polars."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING

from airlane._names import unknown

if TYPE_CHECKING:
    import polars as pl


def natural(name: str, value: int) -> int:
    """The value of an argument that is a count or a seed.

    Raises:
        TypeError: If it is not a whole number.
        ValueError: If it is below 0 or has more than 64 bits.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: a whole number") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"{name}={number}: 0 to 2^64 - 1")
    return number


def probability(name: str, value: float) -> float:
    """The value of an argument that is a probability strictly between 0 and 1.

    Raises:
        ValueError: If it is not between them.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name}={value}: between 0 and 1, such as 0.95")
    return value


def names(name: str, value: str | Iterable[str]) -> list[str]:
    """The value of an argument that is one name or several.

    Raises:
        TypeError: If it is something else.
    """
    if isinstance(value, str):
        return [value]
    several = list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(one, str) for one in several):
        raise TypeError(f"{name}={value!r}: a name, or a list of names")
    return several


def columns(frame: pl.DataFrame, wanted: Iterable[str]) -> None:
    """Checks that a frame has these columns.

    Raises:
        ValueError: If one is missing.
    """
    for name in wanted:
        if name not in frame.columns:
            raise ValueError(unknown("column", name, frame.columns))
