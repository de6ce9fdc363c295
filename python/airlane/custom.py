"""User-defined error models, applications and weight policies for simulated worlds, in Python.

They are for experiments: every call goes through the interpreter, so a run takes many times as long
as with built-in pieces. docs/custom.md has an example of each.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from airlane import _native, _pieces
from airlane._check import natural
from airlane._identity import digest
from airlane._names import unknown
from airlane._native import Host, Random
from airlane._pieces import Application, ErrorModel, WeightPolicy
from airlane.events import KINDS, Event, Probe
from airlane.result import RunResult
from airlane.scenario import Scenario, ScenarioSource, Value, read

__all__ = ["Application", "ErrorModel", "Host", "Pieces", "Random", "WeightPolicy", "run"]


Told = tuple[str, list[str], list[float]]
"""JSON of the result, names of its metrics, their values."""


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """User-defined pieces that replace the scenario's: what one choice of a sweep's axis sets.

    Raises:
        TypeError: If one of them is no such piece, or nothing tells it from another.
        ValueError: If a place is no place, or has two pieces.
    """

    error_models: Mapping[str, Callable[[Random], ErrorModel]] = field(default_factory=dict)
    """By link, `links.radio` for both directions or `links.radio.down` for one: a callable that
    makes the model of a direction from its random stream, which is that of the built-in models."""
    applications: Mapping[str, Callable[[Host], Application]] = field(default_factory=dict)
    """By name of the flow: a callable that makes its application from its hosts. Ends, transport,
    packet size and start remain those of the scenario."""
    weights: Mapping[str, WeightPolicy] = field(default_factory=dict)
    """By link, `links.radio`: the policy that sets the weights of its services."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """Other values that the choice sets, by dotted path of the scenario."""

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            if not isinstance(given, Mapping):
                raise TypeError(
                    f"{each.name}={given!r}: a dictionary, such as {_EXAMPLES[each.name]}"
                )
        ways: set[tuple[str, bool]] = set()
        for place, make in self.error_models.items():
            _check_factory(f"error_models[{place!r}]", make, "loses")
            for way in _pieces.ways(place):
                if way in ways:
                    raise ValueError(f'error_models: "{place}" has two models in one direction')
                ways.add(way)
        for flow, application in self.applications.items():
            _check_factory(f"applications[{flow!r}]", application, "on_start")
        for place, policy in self.weights.items():
            _pieces.link_of("weights", place)
            _check_policy(f"weights[{place!r}]", policy)

    def __or__(self, other: Pieces) -> Pieces:
        """Combines both; `other` takes precedence."""
        both = {
            each.name: {**getattr(self, each.name), **getattr(other, each.name)}
            for each in fields(self)
        }
        return Pieces(**both)

    def call(self) -> str:
        """The pieces as arguments of `run`, for messages."""
        arguments = []
        for name in ("error_models", "applications", "weights"):
            pieces = getattr(self, name).items()
            shown = [f"{at!r}: {getattr(one, '__name__', repr(one))}" for at, one in pieces]
            if shown:
                arguments.append(f"{name}={{{', '.join(shown)}}}")
        return ", ".join(arguments)

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits, which change with the code and the values of the pieces."""
        return digest((dict(self.error_models), dict(self.applications), dict(self.weights)))


_EXAMPLES = {
    "error_models": '{"links.radio.down": Bursts}',
    "applications": '{"pages": Echo}',
    "weights": '{"links.radio": ByQueue()}',
    "values": '{"links.radio.delay": "50 ms"}',
}


def _check_factory(where: str, make: object, method: str) -> None:
    name = type(make).__name__
    if not callable(make):
        right = f"the class {name}" if hasattr(make, method) else "a class of yours"
        raise TypeError(f"{where}={make!r}: write what makes one for each run, such as {right}")
    if isinstance(make, type) and not callable(getattr(make, method, None)):
        raise TypeError(f"{where}={make.__name__}: this class has no method {method}")


def _check_policy(where: str, policy: object) -> None:
    if isinstance(policy, type):
        raise TypeError(f"{where}={policy.__name__}: an object; write {policy.__name__}()")
    if not callable(getattr(policy, "weights", None)) or not hasattr(policy, "interval_s"):
        raise TypeError(f"{where}={policy!r}: it has no method weights, or no interval_s")


def check(pieces: Pieces, scenario: Scenario) -> None:
    """Checks that a scenario has the links and flows that pieces are for.

    Raises:
        ValueError: If it lacks one of them.
    """
    table = scenario.to_dict()
    links, flows = table.get("links", {}), [flow["name"] for flow in table.get("flows", [])]
    for argument, places in (("error_models", pieces.error_models), ("weights", pieces.weights)):
        for place in places:
            is_model = argument == "error_models"
            link = _pieces.ways(place)[0][0] if is_model else _pieces.link_of(argument, place)
            if link not in links:
                raise ValueError(f"{argument}[{place!r}]: {unknown('link', link, list(links))}")
    for flow in pieces.applications:
        if flow not in flows:
            raise ValueError(f"applications[{flow!r}]: {unknown('flow', flow, flows)}")


def simulate(
    scenario: Scenario,
    pieces: Pieces,
    seed: int,
    run: int,
    probe: list[tuple[str, Callable[[Any], None]]],
    *,
    fresh: bool,
) -> Told:
    """Simulates one repetition; `fresh` uses copies of the policies that no run has changed."""
    return _native.run_custom(
        scenario._core,
        seed,
        run,
        [
            (link, down, _pieces.strict_model(link, down, make))
            for place, make in pieces.error_models.items()
            for link, down in _pieces.ways(place)
        ],
        [
            (flow, _pieces.strict_application(flow, make))
            for flow, make in pieces.applications.items()
        ],
        [
            (
                _pieces.link_of("weights", place),
                _pieces.strict_policy(place, policy),
                policy.interval_s,
            )
            for place, policy in (
                copy.deepcopy(pieces.weights) if fresh else pieces.weights
            ).items()
        ],
        probe,
    )


def run(
    scenario: ScenarioSource,
    *,
    error_models: Mapping[str, Callable[[Random], ErrorModel]] | None = None,
    applications: Mapping[str, Callable[[Host], Application]] | None = None,
    weights: Mapping[str, WeightPolicy] | None = None,
    probe: Probe | None = None,
    seed: int | None = None,
    run: int = 0,
) -> RunResult:
    """Simulates one repetition with user-defined pieces in place of the scenario's. Slow.

    The same pieces, scenario, seed and run give the same result, provided that the pieces take
    their random numbers from the generator that they are given. An exception in a piece ends the
    run and is raised here unchanged. `airlane.sweep` repeats and varies pieces: see `Pieces`.

    Args:
        scenario: What to simulate.
        error_models: As in `Pieces`.
        applications: As in `Pieces`.
        weights: As in `Pieces`. The given objects are used themselves, not copies.
        probe: The probe that receives events.
        seed: Seed of all random streams; the scenario's own if None.
        run: Repetition, from 0.

    Returns:
        As `airlane.run`. With pieces, `scenario_hash` ends with `+custom`.

    Raises:
        ScenarioError: If the file is not a valid scenario.
        OSError: If it cannot be read.
        TypeError: If something is no such piece, a probe has no method for an event, or a piece
            returns what it must not.
        ValueError: If the scenario has no place for a piece, or a number is out of range.
        RunError: If the simulator fails.

    """
    pieces = Pieces(
        error_models={} if error_models is None else error_models,
        applications={} if applications is None else applications,
        weights={} if weights is None else weights,
    )
    source = read(scenario)
    check(pieces, source)
    seed = natural("seed", source.seed if seed is None else seed)
    told = simulate(source, pieces, seed, natural("run", run), _methods(probe), fresh=False)
    text, names, values = told
    return RunResult(text, dict(zip(names, values, strict=True)))


def _methods(probe: Probe | None) -> list[tuple[str, Callable[[Event], None]]]:
    """The methods of a probe that a user has written, by kind of event."""
    if probe is None:
        return []
    if isinstance(probe, type):
        raise TypeError(f"probe={probe.__name__}: an object; write {probe.__name__}()")
    known = {"on_" + kind.replace("-", "_"): kind for kind in KINDS}
    methods = []
    for name in dir(probe):
        method = getattr(probe, name) if name.startswith("on_") else None
        inherited = getattr(method, "__func__", method) is getattr(Probe, name, None)
        if callable(method) and not inherited:
            if name not in known:
                raise TypeError(
                    f"probe: there is no event for {name}; there are {', '.join(known)}"
                )
            methods.append((known[name], method))
    if not methods:
        raise TypeError(f"probe={probe!r} has no method for an event, such as {', '.join(known)}")
    return methods
