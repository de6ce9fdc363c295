"""Accepts frames of Polars and of pandas, and returns frames of the same kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import polars as pl

__all__ = ["either", "polars_of"]

Frame = TypeVar("Frame")


def polars_of(frame: object) -> pl.DataFrame:
    """The frame as a Polars frame; NaN in pandas, which has no other null, becomes null.

    Raises:
        TypeError: If it is neither.
    """
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns"):
        return pl.from_pandas(cast("Any", frame))
    raise TypeError(f"frame={type(frame).__name__}: a data frame of Polars or of pandas")


def either(frame: Frame) -> tuple[pl.DataFrame, Callable[[pl.DataFrame], Frame]]:
    """The frame as a Polars frame, and a function that converts one back to the original kind."""
    import polars as pl

    of_polars = isinstance(frame, pl.DataFrame)

    def back(result: pl.DataFrame) -> Frame:
        return cast("Frame", result if of_polars else result.to_pandas())

    return polars_of(frame), back
