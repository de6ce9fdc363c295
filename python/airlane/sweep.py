"""Sweeps: many runs over varied values, repetitions, and where the results are kept."""

from __future__ import annotations

import fnmatch
import itertools
import json
import math
import os
import warnings
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airlane import _native
from airlane._again import failed
from airlane._axes import Axis, Label, points
from airlane._batch import Done, Point
from airlane._check import names, natural
from airlane._names import unknown
from airlane._progress import Progress
from airlane.custom import Pieces
from airlane.errors import AirlaneError, AirlaneWarning
from airlane.executors import AnyExecutor, opened, run_batches
from airlane.scenario import ScenarioSource, Value, read
from airlane.summary import Precision

if TYPE_CHECKING:
    import polars as pl

__all__ = ["merge", "sweep"]

_MANIFEST = "sweep.json"
_SCHEMA = 1


def sweep(
    base: ScenarioSource,
    *,
    vary: Mapping[str, Sequence[Value] | Mapping[str, Mapping[str, Value] | Pieces]] | None = None,
    runs: int = 30,
    metrics: str | Sequence[str] | None = None,
    seed: int | None = None,
    until: Precision | None = None,
    executor: AnyExecutor = None,
    progress: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    shard: str | None = None,
) -> pl.DataFrame:
    """Simulates every combination of values, `runs` times each.

    Run `k` has the same random streams at every point, so points differ only by the varied values
    and can be compared run by run. The frame does not depend on the executor, on threads, or on
    whether the sweep was interrupted.

    Args:
        base: The scenario that all points start from, or the path of its file.
        vary: For each dotted path its values (`{"links.radio.errors.rate": [0.01, 0.05]}`); or for
            each name of an axis its choices, each with the values that it sets
            (`{"scheme": {"none": {}, "sr": {"links.radio.services[0].scheme.kind": "sr-m2"}}}`), or
            an `airlane.custom.Pieces`. `[*]` in a path stands for all entries of a list. Two axes
            never set the same place; what tables leave out, an axis after them may set.
        runs: Runs of each point; with `until` it is not used.
        metrics: Names of the metrics to keep, such as `file.throughput_bps`; `*` stands for any
            text. All if None.
        seed: Seed of all random streams; the scenario's own if None.
        until: Run each point until a metric is known with this precision.
        executor: Where the runs are executed: see `airlane.AnyExecutor`.
        progress: Whether to show a bar on standard error; where that is a terminal if None.
        out: A folder for results. Runs whose results are there already are not repeated.
        shard: `"i/n"`: run only the i-th of n parts, counted from 1. All parts write into the same
            `out`, then `merge` gives the frame.

    Returns:
        A row for each point and run, the last axis fastest. Columns: one for each axis,
        `scenario_hash`, `seed`, `run`, then the metrics with their unit at the end of their name;
        null for what could not be measured. With `shard`, the rows that are known so far.

    Raises:
        ScenarioError: If a value does not fit.
        TypeError: If an argument is of the wrong type.
        ValueError: If another argument is out of range, an axis overwrites what another sets, has a
            value twice or the name of another column, or there is no such metric.
        RunError: If a run fails, a user-defined piece raises an exception, or a worker is lost; its
            message has the command that repeats the run.
        AirlaneError: If no scheduler answers, a worker runs another version, or results in `out`
            cannot be understood.
        OSError: If `out` cannot be read or written.
    """
    if natural("runs", runs) < 1:
        raise ValueError(f"runs={runs}: 1 or more")
    if until is not None and not isinstance(until, Precision):
        raise TypeError(f"until={until!r}: an airlane.Precision")
    if shard is not None and not isinstance(shard, str):
        raise TypeError(f'shard={shard!r}: text such as "1/4"')
    if shard is not None and out is None:
        raise ValueError("shard= needs out=, the folder that the parts are put together in")
    if shard is not None and until is not None:
        raise ValueError("until= decides by all runs of a point; leave shard= out")
    base = read(base)
    axes = [Axis.of(name, values) for name, values in (vary or {}).items()]
    worlds = list(points(base, axes))
    _warn_choices(base.name, worlds)
    plan = _Plan(
        seed=natural("seed", base.seed if seed is None else seed),
        runs=runs,
        until=until,
        metrics=None if metrics is None else names("metrics", metrics),
        axes={axis.name: axis.labels for axis in axes},
        scenarios=[point.hash for point in worlds],
    )
    store = _native.Store(out, shard)
    if out is not None:
        plan.write(Path(out))
    by_hash = {point.hash: point for point in worlds}
    bar = Progress(progress)
    asked: set[tuple[str, int]] = set()
    unchecked = plan.metrics is not None

    def deliver(done: Done) -> None:
        nonlocal unchecked
        if done.model != _native.MODEL:
            raise AirlaneError(
                f"a worker runs version {done.model}, not {_native.MODEL} as here; install the "
                "same version everywhere"
            )
        for part in done.results:
            store.add(part.scenario_hash, plan.seed, part.runs, part.names, part.rows)
            plan.check_axes(part.names)
        bar.advance(sum(len(part.runs) for part in done.results))
        if done.failure is not None:
            failure = done.failure
            point = by_hash[failure.scenario_hash]
            folder = None if out is None else Path(out)
            pieces = None if point.pieces is None else point.pieces.call()
            raise failed(failure.reason, point.scenario, plan.seed, failure.run, folder, pieces)
        # A misspelt metric is found once each point has run once, not at the end.
        if unchecked and all(store.has(scenario, plan.seed, 0) for scenario in by_hash):
            unchecked = False
            plan.chosen(store)

    try:
        with opened(executor) as pool:
            while True:
                # Run by run, so that the remaining runs take as long as the finished ones; a world
                # that several points share is simulated once.
                missing = [job for job in plan.missing(store) if job not in asked]
                jobs = [job for job in missing if store.is_mine(job[0], plan.seed, job[1])]
                if not jobs:
                    break
                asked.update(missing)
                bar.expect(len(jobs))
                queue = deque((by_hash[hash_], run) for hash_, run in jobs)
                run_batches(pool, plan.seed, queue, deliver)
    finally:
        # An error's traceback may keep the store alive, but must not keep the folder locked.
        store.close()
        bar.close()
    return plan.frame(store)


def merge(folder: str | os.PathLike[str]) -> pl.DataFrame:
    """Merges the results of all shards of a sweep into one sorted file, and returns the frame.

    Args:
        folder: The folder given to `sweep` as `out`.

    Returns:
        As `sweep`.

    Raises:
        AirlaneError: If results are missing, or come from another version.
        OSError: If the folder cannot be read or written.
    """
    plan = _Plan.read(Path(folder))
    store = _native.Store(folder, None)
    missing = plan.missing(store)
    if missing:
        scenario, run = missing[0]
        raise AirlaneError(
            f"{os.fspath(folder)}: {len(missing)} runs are missing, such as run {run} of scenario "
            f"{scenario}; are all shards in this folder?"
        )
    store.merge()
    return plan.frame(store)


@dataclass(frozen=True)
class _Plan:
    """The request of a sweep, stored with its results."""

    seed: int
    runs: int
    until: Precision | None
    metrics: list[str] | None
    axes: dict[str, list[Label]]
    scenarios: list[str]
    """Hash of each point's scenario, the last axis fastest."""

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": _SCHEMA, "version": _native.MODEL, **asdict(self)}, indent=2)
        # Atomically, because the shards of an array job write the same file at the same time.
        part = folder / f"{_MANIFEST}.{os.getpid()}.{os.urandom(4).hex()}"
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(folder / _MANIFEST)

    @classmethod
    def read(cls, folder: Path) -> _Plan:
        path = folder / _MANIFEST
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            schema, version, until = tree.pop("schema"), tree.pop("version"), tree.pop("until")
            plan = cls(until=until and Precision(**until), **tree)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise AirlaneError(f"{path}: this is no sweep; `sweep(..., out=)` writes it") from error
        if (schema, version) != (_SCHEMA, _native.MODEL):
            raise AirlaneError(f"{path}: results of version {version}, but this is {_native.MODEL}")
        return plan

    def counts(self, store: _native.Store) -> list[int]:
        """How many runs each point needs, as far as the results show."""
        if self.until is None:
            return [self.runs] * len(self.scenarios)
        return [self.until.runs(self._values(store, scenario)) for scenario in self.scenarios]

    def _values(self, store: _native.Store, scenario: str) -> list[float]:
        """The values of the deciding metric for all known runs from 0 on."""
        assert self.until is not None
        known = itertools.takewhile(
            lambda run: store.has(scenario, self.seed, run), range(self.until.most)
        )
        runs = list(known)
        if runs and self.until.metric not in (names := store.names([scenario], self.seed)):
            raise ValueError(unknown("metric", self.until.metric, names))
        return store.values(scenario, self.seed, runs, self.until.metric)

    def missing(self, store: _native.Store) -> list[tuple[str, int]]:
        """Runs (hash, run) that are not in the store, run by run, without duplicates."""
        counts = self.counts(store)
        jobs = {
            (scenario, run): None
            for run in range(max(counts))
            for scenario, count in zip(self.scenarios, counts, strict=True)
            if run < count and not store.has(scenario, self.seed, run)
        }
        return list(jobs)

    def rows(self, store: _native.Store) -> list[tuple[int, int]]:
        """The point and run of each row."""
        counts = enumerate(self.counts(store))
        return [(point, run) for point, count in counts for run in range(count)]

    def check_axes(self, names: list[str]) -> None:
        """Refuses an axis with the name of one of these metrics, if that metric is shown."""
        patterns = ["*"] if self.metrics is None else self.metrics
        for name in self.axes:
            if name in names and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                raise ValueError(
                    f"vary: an axis cannot be called {name!r}; there is a metric of this name"
                )

    def chosen(self, store: _native.Store) -> list[str]:
        """The metrics to show, with patterns in the order of the request."""
        names = store.names(self.scenarios, self.seed)
        self.check_axes(names)
        if self.metrics is None:
            return names
        chosen: dict[str, None] = {}
        for pattern in self.metrics:
            found = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
            if names and not found:
                raise ValueError(unknown("metric", pattern, names))
            chosen.update(dict.fromkeys(found))
        return list(chosen)

    def frame(self, store: _native.Store) -> pl.DataFrame:
        """The known results of all points."""
        import polars as pl

        table = store.table(self.scenarios, self.seed, self.rows(store), self.chosen(store))
        frame = pl.DataFrame(table)
        point = frame.drop_in_place("point")
        columns: list[pl.Series] = []
        for index, (name, labels) in enumerate(self.axes.items()):
            after = math.prod(len(values) for values in list(self.axes.values())[index + 1 :])
            at = (point // after) % len(labels)
            columns.append(pl.Series(name, labels, strict=False).gather(at).alias(name))
        return frame.select(*columns, pl.all())


def _warn_choices(name: str, worlds: list[Point]) -> None:
    """Warns once, and not for every point, about harmful choices."""
    found = Counter(text for point in worlds for text in set(point.scenario._core.warnings))
    for text, count in found.items():
        where = "" if count == len(worlds) else f", at {count} of {len(worlds)} points"
        warnings.warn(f"{name}: {text}{where}", AirlaneWarning, stacklevel=3)
