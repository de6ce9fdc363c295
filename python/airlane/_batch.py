"""The one function that every executor maps: it takes a batch of runs and returns numbers."""

from __future__ import annotations

import sys
import time
import traceback
from array import array
from dataclasses import dataclass
from typing import NamedTuple

from airlane import _native, custom
from airlane.custom import Pieces
from airlane.errors import RunError
from airlane.scenario import Scenario


class Point(NamedTuple):
    """A world to simulate: a scenario, in which user-defined pieces may replace its own."""

    hash: str
    """The scenario's hash, combined with that of the pieces."""
    scenario: Scenario
    pieces: Pieces | None = None


class Batch(NamedTuple):
    """Runs of some points under one seed."""

    seed: int
    work: list[tuple[Point, list[int]]]


class Runs(NamedTuple):
    """Results of some runs of one point; `rows` as `_native.simulate` gives them."""

    scenario_hash: str
    runs: list[int]
    names: list[str]
    rows: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed."""

    scenario_hash: str
    run: int
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of a batch."""

    model: str
    """Version of the code that simulated."""
    took_s: float
    results: list[Runs]
    failure: Failure | None = None


def simulate(batch: Batch) -> Done:
    """Simulates a batch on any machine; stops at the first run that fails."""
    start_s = time.perf_counter()
    results: list[Runs] = []
    failure = None
    for point, runs in batch.work:
        part, failure = _runs(point, batch.seed, runs)
        results.extend(part)
        if failure is not None:
            break
    return Done(_native.MODEL, time.perf_counter() - start_s, results, failure)


def _runs(point: Point, seed: int, runs: list[int]) -> tuple[list[Runs], Failure | None]:
    if point.pieces is None:
        try:
            names, rows = _native.simulate(point.scenario._core, seed, runs)
        except RunError as error:
            return [], Failure(point.hash, error.run, str(error))
        return [Runs(point.hash, runs, names, rows)], None
    results: list[Runs] = []
    for run in runs:
        try:
            told = custom.simulate(point.scenario, point.pieces, seed, run, [], fresh=True)
        except Exception as error:
            # A piece may raise anything, also an exception of a class that another process does not
            # know.
            return results, Failure(point.hash, run, "".join(traceback.format_exception(error)))
        _, names, values = told
        results.append(Runs(point.hash, [run], names, _little_endian(values)))
    return results, None


def _little_endian(values: list[float]) -> bytes:
    doubles = array("d", values)
    if sys.byteorder == "big":
        doubles.byteswap()
    return doubles.tobytes()
