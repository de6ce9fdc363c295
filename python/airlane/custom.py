"""Your own error models, applications and weight policies in a simulated world, as Python classes.

For trying ideas out: every call goes through the interpreter, so a run takes many times as long as
with built-in pieces. docs/custom.md has an example of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from airlane import _native
from airlane._check import natural
from airlane._native import Host, Random
from airlane.events import KINDS, Event, Probe
from airlane.result import RunResult
from airlane.scenario import ScenarioSource, read

__all__ = ["Application", "ErrorModel", "Host", "Random", "WeightPolicy", "run"]


class ErrorModel(Protocol):
    """Which frames are lost in one direction of a link."""

    def loses(self, start_s: float, end_s: float, len_bytes: int, /) -> bool:
        """Whether a frame of `len_bytes` that is on the air from `start_s` to `end_s` is lost.

        Frames come in the order of their start and do not overlap.
        """
        ...


class Application(Protocol):
    """What sends and receives at both ends of a flow, through the `Host` that it was made with."""

    def on_start(self) -> None:
        """The flow begins."""
        ...

    def on_delivered(self, end: int, len_bytes: int, delay_s: float | None, /) -> None:
        """Bytes have arrived at end 0 or 1: over TCP in order, over UDP a datagram.

        `delay_s` is the time that a datagram took, None over TCP.
        """
        ...

    def on_timer(self) -> None:
        """The timer has run out that `Host.set_timer` set."""
        ...


class WeightPolicy(Protocol):
    """Sets the weights of a link's services from time to time."""

    @property
    def interval_s(self) -> float:
        """How often it is asked, seconds, above 0."""
        ...

    def weights(
        self, now_s: float, direction: str, services: list[dict[str, Any]], /
    ) -> Mapping[str, float]:
        """New weights by name of the service, for the port that sends `down` or `up`.

        `services` is what that port knows of each (docs/custom.md). Weights are above 0; services
        that are not named keep theirs.
        """
        ...


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
    """Simulates one repetition with pieces of yours in the place of the scenario's. Slow.

    Same pieces, scenario, seed and run give the same result, if the pieces draw from the random
    numbers that they are given. An exception in a piece ends the run and is raised here unchanged.

    Args:
        scenario: What to simulate.
        error_models: By link, `links.radio` for both directions or `links.radio.down` for one: what
            makes the model of a direction from its random numbers. Those are the draws of the
            built-in models.
        applications: By name of the flow: what makes its application from its hosts. Ends,
            transport, packet size and start remain those of the scenario.
        weights: By link, `links.radio`: the policy that sets the weights of its services.
        probe: Whom to show events.
        seed: Seed of all random streams; the scenario's own if None.
        run: Repetition, from 0.

    Returns:
        As `airlane.run`. With pieces, `scenario_hash` ends with `+custom`.

    Raises:
        ScenarioError: If the file describes no world.
        OSError: If it cannot be read.
        ValueError: If the scenario has no place for a piece.
        RunError: If the simulator fails.

    """
    models: dict[tuple[str, bool], Callable[[Random], ErrorModel]] = {}
    for place, factory in (error_models or {}).items():
        for way in _ways(place):
            if way in models:
                raise ValueError(f'error_models: "{place}" has two models in one direction')
            models[way] = factory
    source = read(scenario)
    text, names, values = _native.run_custom(
        source._core,
        natural("seed", source.seed if seed is None else seed),
        natural("run", run),
        [(link, down, factory) for (link, down), factory in models.items()],
        list((applications or {}).items()),
        [(_link(place), policy, policy.interval_s) for place, policy in (weights or {}).items()],
        _methods(probe),
    )
    return RunResult(text, dict(zip(names, values, strict=True)))


def _link(place: str) -> str:
    kind, _, name = place.partition(".")
    if kind != "links" or not name:
        raise ValueError(f'"{place}" is no link; write "links.NAME"')
    return name


def _ways(place: str) -> list[tuple[str, bool]]:
    """Links with whether downwards."""
    name = _link(place)
    link, _, direction = name.rpartition(".")
    if link and direction in ("down", "up"):
        return [(link, direction == "down")]
    return [(name, True), (name, False)]


def _methods(probe: Probe | None) -> list[tuple[str, Callable[[Event], None]]]:
    """Those methods of a probe that somebody has written."""
    methods = []
    for kind in KINDS:
        name = "on_" + kind.replace("-", "_")
        if getattr(type(probe), name, None) is not getattr(Probe, name):
            method = getattr(probe, name, None)
            if method is not None:
                methods.append((kind, method))
    return methods
