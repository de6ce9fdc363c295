"""What a sweep varies: axes, the labels of their values in the frame, and the points."""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from airlane import _pieces
from airlane._batch import Point
from airlane.custom import Pieces, check
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
    """The labels in the frame, each only once."""
    choices: list[Pieces]
    """What each label sets: values by dotted path, and pieces."""

    @classmethod
    def of(
        cls, name: str, values: Sequence[Value] | Mapping[str, Mapping[str, Value] | Pieces]
    ) -> Axis:
        """Parses one entry of `vary`.

        Raises:
            ValueError: If it is not an axis, or its points would look the same in the frame.
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
            choices = []
            for label, chosen in values.items():
                if not isinstance(chosen, Mapping | Pieces):
                    raise ValueError(
                        f"vary[{name!r}]: {label!r} sets values by path, or is an "
                        f"airlane.custom.Pieces, not {chosen!r}"
                    )
                choices.append(chosen if isinstance(chosen, Pieces) else Pieces(values=chosen))
            axis = cls(name, list(values), choices)
        else:
            labels = [_label(value) for value in values]
            axis = cls(name, labels, [Pieces(values={name: value}) for value in values])
        # Compared as the column stores them: in a text column, 1 is "1".
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
        # As a decimal number, so that different times have different labels.
        return f"{Decimal(value // datetime.timedelta(microseconds=1)) / 1_000_000:f} s"
    # This converts NumPy's numbers and arrays to Python's; tables and lists are shown as text.
    if hasattr(value, "tolist"):
        return _label(value.tolist())
    return json.dumps(value, default=_inside)


def _inside(value: Any) -> Any:  # noqa: ANN401 (whatever JSON cannot represent)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime.timedelta):
        return _label(value)
    # A value that a scenario cannot hold is refused there, with its path.
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def points(base: Scenario, axes: list[Axis]) -> Iterator[Point]:
    """The world of each combination, the last axis fastest.

    Raises:
        ScenarioError: If a value does not fit.
        TypeError: If two pieces cannot be told apart.
        ValueError: If one axis overwrites what another sets, or a piece has no place.
    """
    _apart(base, axes)
    nothing = Pieces()
    for choice in itertools.product(*(axis.choices for axis in axes)):
        chosen = functools.reduce(operator.or_, choice, nothing)
        scenario = base.with_(chosen.values)
        if chosen.error_models or chosen.applications or chosen.weights:
            check(chosen, scenario)
            yield Point(f"{scenario.hash}+{chosen.digest}", scenario, chosen)
        else:
            yield Point(scenario.hash, scenario)


@dataclass(frozen=True)
class _Place:
    """A place that an axis sets."""

    axis: Axis
    words: str
    steps: Sequence[str | int]
    given: list[Value]
    """The value that it sets there; nothing if it puts a piece there."""

    def overwrites(self, other: _Place) -> bool:
        if any(a != b for a, b in zip(self.steps, other.steps, strict=False)):
            return False
        inside = other.steps[len(self.steps) :]
        # A user-defined application keeps the packet settings of the scenario's.
        if not self.given or not inside:
            return list(inside) != ["packet"]
        return any(_holds(value, inside) for value in self.given)


def _apart(base: Scenario, axes: list[Axis]) -> None:
    """Refuses two axes that set the same place: the frame would show values that did not run.

    A table may leave out a key that a later axis sets.
    """
    if len(axes) < 2:
        return
    places = [place for axis in axes for place in _places(base, axis)]
    for one, other in itertools.combinations(places, 2):
        if one.axis is not other.axis and one.overwrites(other):
            raise ValueError(
                f"vary: axis {one.axis.name!r} sets {one.words} and axis {other.axis.name!r} sets "
                f"{other.words}: one overwrites the other; let one axis set both"
            )


def _places(base: Scenario, axis: Axis) -> Iterator[_Place]:
    paths = dict.fromkeys(path for choice in axis.choices for path in choice.values)
    for path in paths:
        given = [choice.values[path] for choice in axis.choices if path in choice.values]
        # Something that is not a path is refused when it is set.
        for steps in base._core.places(path) or [[path]]:
            yield _Place(axis, path, steps, given)
    for choice in axis.choices:
        for place in choice.error_models:
            ways = _pieces.ways(place)
            one_way = ["down" if ways[0][1] else "up"] if len(ways) == 1 else []
            at = ["links", ways[0][0], "errors", *one_way]
            yield _Place(axis, f"error_models[{place!r}]", at, [])
        for flow in choice.applications:
            for steps in base._core.places(f"flows[{flow}].app") or []:
                yield _Place(axis, f"applications[{flow!r}]", steps, [])
        for place in choice.weights:
            yield _Place(axis, f"weights[{place!r}]", [place, "weights"], [])


def _holds(value: Value, steps: Sequence[str | int]) -> bool:
    """Whether there is a value at these steps; a value that is not a table blocks the way."""
    at: Any = value
    for step in steps:
        if isinstance(at, Mapping):
            at = at.get(step)
    return at is not None
