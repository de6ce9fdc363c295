"""What a sweep varies: axes, what the frame calls their values, and the points that they make."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from airlane.scenario import Scenario, Value

Label: TypeAlias = bool | int | float | str

# Columns of a sweep, of a difference and of a summary.
_RESERVED = (
    *("scenario_hash", "seed", "run", "difference_from"),
    *("metric", "value", "n", "mean", "sd", "half_width", "point"),
)


@dataclass(frozen=True)
class Axis:
    """Something that differs between points."""

    name: str
    labels: list[Label]
    """What the frame shows, each once."""
    values: list[dict[str, Value]]
    """What each label sets, by dotted path."""

    @classmethod
    def of(cls, name: str, values: Sequence[Value] | Mapping[str, Mapping[str, Value]]) -> Axis:
        """One entry of `vary`.

        Raises:
            ValueError: If it is no axis, or the frame could not tell its points apart.
        """
        import polars as pl

        if name in _RESERVED:
            raise ValueError(
                f"vary: an axis cannot be called {name!r}; frames have a column of this name"
            )
        try:
            several = not isinstance(values, str) and len(values) > 0
        except TypeError:
            several = False
        if not several:
            raise ValueError(f"vary[{name!r}]: a list of one value or more, not {values!r}")
        if isinstance(values, Mapping):
            for label, chosen in values.items():
                if not isinstance(chosen, Mapping):
                    raise ValueError(
                        f"vary[{name!r}]: {label!r} sets values by path, not {chosen!r}"
                    )
            axis = cls(name, list(values), [dict(chosen) for chosen in values.values()])
        else:
            labels = [_label(value) for value in values]
            axis = cls(name, labels, [{name: value} for value in values])
        # Compared as the column has them: beside text, 1 is "1".
        twice = pl.Series(axis.labels, strict=False).is_duplicated().arg_true()
        if len(twice):
            raise ValueError(
                f"vary[{name!r}]: {axis.labels[twice[0]]!r} stands there twice; "
                "its runs would count double"
            )
        return axis


def _label(value: Value) -> Label:
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime.timedelta):
        # As a decimal number, because times that differ must not look alike.
        return f"{Decimal(value // datetime.timedelta(microseconds=1)) / 1_000_000:f} s"
    # NumPy's numbers and arrays are Python's after this; tables and lists are shown as text.
    if hasattr(value, "tolist"):
        return _label(value.tolist())
    return json.dumps(value, default=_inside)


def _inside(value: Any) -> Any:  # noqa: ANN401 (whatever JSON does not know)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime.timedelta):
        return _label(value)
    # What has no form in a scenario is refused there, with its path.
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def points(base: Scenario, axes: list[Axis]) -> Iterator[Scenario]:
    """The scenario of each combination, the last axis fastest.

    Raises:
        ScenarioError: If a value does not fit.
        ValueError: If one axis overwrites what another sets.
    """
    _apart(base, axes)
    for choice in itertools.product(*(axis.values for axis in axes)):
        values: dict[str, Value] = {}
        for chosen in choice:
            values |= chosen
        yield base.with_(values)


def _apart(base: Scenario, axes: list[Axis]) -> None:
    """Refuses two axes that set the same place: the frame would show values that nobody ran.

    A table may leave a key out that a later axis sets.
    """
    if len(axes) < 2:
        return
    # What is no path is refused when it is set.
    places = [
        (axis, path, base._core.steps(path) or [path])
        for axis in axes
        for path in dict.fromkeys(itertools.chain.from_iterable(axis.values))
    ]
    for (one, path, place), (other, its, there) in itertools.combinations(places, 2):
        if one is other or any(a != b for a, b in zip(place, there, strict=False)):
            continue
        inside = there[len(place) :]
        given = [chosen[path] for chosen in one.values if path in chosen]
        if not inside or any(_holds(value, inside) for value in given):
            raise ValueError(
                f"vary: axis {one.name!r} sets {path} and axis {other.name!r} sets {its}: one "
                "overwrites the other; let one axis set both"
            )


def _holds(value: Value, steps: list[str | int]) -> bool:
    """Whether something stands at these steps; what is no table is taken to be in the way."""
    at: Any = value
    for step in steps:
        if isinstance(at, Mapping):
            at = at.get(step)
    return at is not None
