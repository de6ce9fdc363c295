"""Your own error models, applications and weight policies in a simulated world, as Python classes.

For trying ideas out: every call goes through the interpreter, so a run takes many times as long as
with built-in pieces. docs/custom.md has an example of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
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
        """Whether a frame is lost.

        Args:
            start_s: When its first bit is on the air, simulated seconds. Frames come in this order
                and do not overlap.
            end_s: When its last bit has left.
            len_bytes: Its length, bytes.

        Returns:
            True if it is lost.
        """
        ...


class Application(Protocol):
    """What sends and receives at both ends of a flow, through the `Host` that it was made with."""

    def on_start(self) -> None:
        """The flow begins."""
        ...

    def on_delivered(self, end: int, len_bytes: int, delay_s: float | None, /) -> None:
        """Bytes have arrived: over TCP in order, over UDP a datagram.

        Args:
            end: Where: the flow's first end (0) or its second (1).
            len_bytes: How many, bytes.
            delay_s: The time that a datagram took, seconds; None over TCP.
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
        """New weights for the services of one port.

        Args:
            now_s: The simulated time, seconds.
            direction: Which port: the one that sends `down`, or `up`.
            services: What that port knows of each service (docs/custom.md).

        Returns:
            Weights above 0 by name of the service; services that are not named keep theirs.
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
        TypeError: If a probe has no method for an event, or a piece returns what it must not.
        ValueError: If the scenario has no place for a piece, or a number is out of range.
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
        [(*place, _strict_model(place, factory)) for place, factory in models.items()],
        list((applications or {}).items()),
        [
            (_link(place), _strict_policy(place, policy), policy.interval_s)
            for place, policy in (weights or {}).items()
        ],
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


def _strict_model(
    place: tuple[str, bool], factory: Callable[[Random], ErrorModel]
) -> Callable[[Random], object]:
    """Makes models whose answers are checked: a forgotten `return` would be a link without loss."""

    def make(rng: Random) -> object:
        model = factory(rng)

        def loses(start_s: float, end_s: float, len_bytes: int) -> bool:
            lost = model.loses(start_s, end_s, len_bytes)
            if type(lost).__name__ not in ("bool", "bool_"):  # NumPy's are called so, too.
                way = "down" if place[1] else "up"
                raise TypeError(
                    f"links.{place[0]}.{way}: loses returned {lost!r}, which is no bool"
                )
            return lost

        return SimpleNamespace(loses=loses)

    return make


def _strict_policy(place: str, policy: WeightPolicy) -> object:
    """The policy with its answers as dictionaries, which native code asks for."""

    def weights(now_s: float, direction: str, services: list[dict[str, Any]]) -> dict[str, float]:
        given = policy.weights(now_s, direction, services)
        if not isinstance(given, Mapping):
            raise TypeError(f"{place}: weights returned {given!r}, not weights by name of service")
        return dict(given)

    return SimpleNamespace(weights=weights)


def _methods(probe: Probe | None) -> list[tuple[str, Callable[[Event], None]]]:
    """Those methods of a probe that somebody has written, by kind of event."""
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
