"""The one function that every executor maps: a batch of runs in, numbers out, nothing else."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

from airlane import _native
from airlane.errors import RunError
from airlane.scenario import Scenario


class Batch(NamedTuple):
    """Runs of some scenarios under one seed."""

    seed: int
    work: list[tuple[Scenario, list[int]]]


class Runs(NamedTuple):
    """Results of some runs of one scenario; `rows` as `_native.simulate` gives them."""

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
    """What became of a batch."""

    model: str
    """Version of the code that simulated."""
    took_s: float
    results: list[Runs]
    failure: Failure | None = None


def simulate(batch: Batch) -> Done:
    """Simulates a batch, on whatever machine; stops at the first run that fails."""
    start_s = time.perf_counter()
    results: list[Runs] = []
    failure = None
    for scenario, runs in batch.work:
        try:
            names, rows = _native.simulate(scenario._core, batch.seed, runs)
        except RunError as error:
            failure = Failure(scenario.hash, error.run, str(error))
            break
        results.append(Runs(scenario.hash, runs, names, rows))
    return Done(_native.MODEL, time.perf_counter() - start_s, results, failure)
