"""Pieces of a world as they are checked, told apart, and run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airlane import _native
from airlane._names import unknown
from airlane.scenario import Scenario

if TYPE_CHECKING:
    from airlane.custom import ErrorModel, Pieces, WeightPolicy

Told = tuple[str, list[str], list[float]]
"""JSON of the result, names of its metrics, their values."""


def ways(place: str) -> list[tuple[str, bool]]:
    """The directions that `links.NAME` names, or `links.NAME.down`: link, and whether downwards.

    Raises:
        ValueError: If it names none.
    """
    name = link_of("error_models", place)
    link, _, direction = name.rpartition(".")
    if link and direction in ("down", "up"):
        return [(link, direction == "down")]
    return [(name, True), (name, False)]


def link_of(argument: str, place: str) -> str:
    """The NAME of `links.NAME`.

    Raises:
        ValueError: If it is something else.
    """
    kind, _, name = place.partition(".")
    if kind != "links" or not name:
        raise ValueError(f'{argument}: "{place}" is no link; write "links.NAME"')
    return name


def check(pieces: Pieces, scenario: Scenario) -> None:
    """Sees to it that a scenario has the links and flows that pieces are for.

    Raises:
        ValueError: If it has not.
    """
    table = scenario.to_dict()
    links, flows = table.get("links", {}), [flow["name"] for flow in table.get("flows", [])]
    for argument, places in (("error_models", pieces.error_models), ("weights", pieces.weights)):
        for place in places:
            is_model = argument == "error_models"
            link = ways(place)[0][0] if is_model else link_of(argument, place)
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
    """Simulates one repetition; `fresh` with policies that nobody else has changed."""
    return _native.run_custom(
        scenario._core,
        seed,
        run,
        [
            (link, down, _strict_model(link, down, make))
            for place, make in pieces.error_models.items()
            for link, down in ways(place)
        ],
        [(flow, _strict_application(flow, make)) for flow, make in pieces.applications.items()],
        [
            (link_of("weights", place), _strict_policy(place, policy), policy.interval_s)
            for place, policy in (
                copy.deepcopy(pieces.weights) if fresh else pieces.weights
            ).items()
        ],
        probe,
    )


def _has(where: str, piece: object, *methods: str) -> None:
    for method in methods:
        if not callable(getattr(piece, method, None)):
            raise TypeError(f"{where}: {piece!r} has no method {method}")


def _strict_model(
    link: str, down: bool, make: Callable[[_native.Random], ErrorModel]
) -> Callable[[_native.Random], object]:
    """Makes models whose answers are checked: a forgotten `return` would be a link without loss."""
    where = f"links.{link}.{'down' if down else 'up'}"

    def made(rng: _native.Random) -> object:
        model = make(rng)
        _has(where, model, "loses")

        def loses(start_s: float, end_s: float, len_bytes: int) -> bool:
            lost = model.loses(start_s, end_s, len_bytes)
            if type(lost).__name__ not in ("bool", "bool_"):  # NumPy's are called so, too.
                raise TypeError(f"{where}: loses returned {lost!r}, which is no bool")
            return lost

        return SimpleNamespace(loses=loses)

    return made


def _strict_application(
    flow: str, make: Callable[[_native.Host], object]
) -> Callable[[_native.Host], object]:
    def made(host: _native.Host) -> object:
        application = make(host)
        _has(flow, application, "on_start", "on_delivered", "on_timer")
        return application

    return made


def _strict_policy(place: str, policy: WeightPolicy) -> object:
    """The policy with its answers as dictionaries, which native code asks for."""

    def weights(now_s: float, direction: str, services: list[dict[str, Any]]) -> dict[str, float]:
        given = policy.weights(now_s, direction, services)
        if not isinstance(given, Mapping):
            raise TypeError(f"{place}: weights returned {given!r}, not weights by name of service")
        return dict(given)

    return SimpleNamespace(weights=weights)
