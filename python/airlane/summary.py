"""Means over repetitions, and how precisely they are known."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airlane import _native
from airlane._check import columns, names, probability
from airlane._frames import Frame, either

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Precision", "difference", "summary"]


@dataclass(frozen=True)
class Precision:
    """When a point of a sweep has been repeated often enough.

    The criterion is evaluated after `least` runs and then each time that there are half as many
    again, so the number of runs does not depend on the executor. Equal values count as precise even
    if a rare event has not occurred yet: choose `least` so that it has had the chance. A point for
    which `most` runs did not suffice has a wider interval in `summary`. Because the criterion is
    evaluated repeatedly, intervals contain the true mean somewhat less often than `confidence`.

    Raises:
        ValueError: If a number is out of its range.
    """

    metric: str
    """Name of the metric that decides, such as `file.throughput_bps`."""
    relative: float = 0.05
    """Largest half width of the confidence interval, as a share of the mean."""
    absolute: float = 0.0
    """The same in the metric's own unit, for means near 0; the larger of both applies."""
    confidence: float = 0.95
    """Probability that the interval contains the true mean."""
    least: int = 5
    """Runs before the criterion is first evaluated."""
    most: int = 300
    """Maximum number of runs of a point."""

    def __post_init__(self) -> None:
        probability("confidence", self.confidence)
        if min(self.relative, self.absolute) < 0 or max(self.relative, self.absolute) == 0:
            raise ValueError(
                f"relative={self.relative}, absolute={self.absolute}: 0 or more, one above 0"
            )
        if not 2 <= self.least <= self.most:
            raise ValueError(f"least={self.least}, most={self.most}: 2 <= least <= most")

    def runs(self, values: Sequence[float]) -> int:
        """The number of runs that a point needs, given the values of its runs 0, 1, ...

        If it is more than there are values, those runs are needed before the answer is known. NaN
        marks a run that measured nothing.
        """
        count = self.least
        while count < self.most and count <= len(values) and not self._met(values[:count]):
            count = min(self.most, math.ceil(1.5 * count))
        return count

    def _met(self, values: Sequence[float]) -> bool:
        known = [value for value in values if math.isfinite(value)]
        if len(known) < 2:
            return False
        half = half_width(len(known), statistics.stdev(known), self.confidence)
        return half <= max(self.absolute, self.relative * abs(statistics.fmean(known)))


def half_width(n: int, sd: float, confidence: float) -> float:
    """Half the confidence interval of a mean of `n` values by Student's t, in the unit of `sd`."""
    return _native.student_t(confidence, n - 1) * sd / math.sqrt(n)


def summary(
    frame: Frame,
    by: str | Sequence[str] | None = None,
    *,
    metrics: str | Sequence[str] | None = None,
    confidence: float = 0.95,
) -> Frame:
    """Means over runs with their precision.

    Args:
        frame: The result of `sweep` or `difference`, in Polars or pandas.
        by: Columns that identify a point; all axes of the sweep if None.
        metrics: Columns to summarise; all metrics if None.
        confidence: Probability that an interval holds the true mean.

    Returns:
        A row for each point and metric, in the order and the kind of the frame: the columns of
        `by`, `metric`, `n` (runs that measured it), `mean`, `sd` and `half_width` of the confidence
        interval (Student's t), these three in the metric's unit, null if there are too few runs;
        and `runs`, the number of all runs, of which some may not have measured it.

    Raises:
        ValueError: If `confidence` is not a probability, the frame is not from `sweep`, or there is
            no such column.
    """
    probability("confidence", confidence)
    import polars as pl

    polars, back = either(frame)
    axes, numbers = _columns(polars)
    keys = axes if by is None else names("by", by)
    wanted = numbers if metrics is None else names("metrics", metrics)
    columns(polars, [*keys, *wanted])
    value = pl.col("value").drop_nans().drop_nulls()
    tidy = polars.select(*keys, *(pl.col(name).cast(pl.Float64) for name in wanted)).unpivot(
        index=keys, on=wanted, variable_name="metric", value_name="value"
    )
    means = tidy.group_by([*keys, "metric"], maintain_order=True).agg(
        value.len().cast(pl.Int64).alias("n"),
        pl.len().cast(pl.Int64).alias("runs"),
        value.mean().alias("mean"),
        value.std().alias("sd"),
    )
    widths = [
        half_width(n, sd, confidence) if n > 1 else None
        for n, sd in zip(means["n"], means["sd"], strict=True)
    ]
    runs = means.drop_in_place("runs")
    means = means.with_columns(pl.Series("half_width", widths, dtype=pl.Float64), runs)
    # The metrics of a point together, with points in the order of the frame.
    order = (
        polars.select(keys).unique(maintain_order=True).with_row_index("point") if keys else None
    )
    if order is None:
        return back(means)
    joined = means.join(order, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return back(joined.sort("point", maintain_order=True).drop("point"))


def difference(frame: Frame, axis: str, baseline: object) -> Frame:
    """Run by run, the difference of each value of an axis from one of them.

    The runs of a pair met the same errors and the same speech, so these differences are known more
    precisely than the means themselves.

    Args:
        frame: The result of `sweep`, in Polars or pandas.
        axis: Column of the axis.
        baseline: The value of the axis whose results are subtracted.

    Returns:
        A frame of the same kind: the rows of the other values, with differences in place of the
        metrics: `summary` of it gives mean differences with their confidence intervals. The column
        `difference_from`, after `scenario_hash`, has the baseline.

    Raises:
        ValueError: If the axis has no such value, or the frame is not from `sweep`.
    """
    import polars as pl

    polars, back = either(frame)
    axes, numbers = _columns(polars)
    if axis not in axes or baseline not in (known := polars[axis].unique(maintain_order=True)):
        have = ", ".join(map(repr, known)) if axis in axes else ", ".join(axes)
        raise ValueError(
            f"axis={axis!r}, baseline={baseline!r}: there is no such; there are: {have}"
        )
    pair = [*(name for name in axes if name != axis), "seed", "run"]
    base = polars.filter(pl.col(axis) == baseline).select(*pair, *numbers)
    others = polars.filter(pl.col(axis) != baseline)
    joined = others.join(base, on=pair, suffix=" of baseline", maintain_order="left")
    less = [(pl.col(name) - pl.col(f"{name} of baseline")).alias(name) for name in numbers]
    from_ = pl.lit(str(baseline)).alias("difference_from")
    wanted = [*axes, "scenario_hash", from_, "seed", "run", *numbers]
    return back(joined.with_columns(less).select(wanted))


def _columns(frame: pl.DataFrame) -> tuple[list[str], list[str]]:
    """The axes and the metrics of a sweep's frame."""
    known = frame.columns
    if "scenario_hash" not in known or "run" not in known:
        raise ValueError("frame: a frame that `sweep` gave, with scenario_hash, seed and run")
    return known[: known.index("scenario_hash")], known[known.index("run") + 1 :]
