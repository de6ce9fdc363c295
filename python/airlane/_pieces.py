"""The user-defined pieces of a world, their places, and checks of what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Protocol

from airlane import _native


class ErrorModel(Protocol):
    """Decides which frames are lost in one direction of a link."""

    def loses(self, start_s: float, end_s: float, len_bytes: int, /) -> bool:
        """Whether a frame is lost.

        Args:
            start_s: When its first bit is sent, simulated seconds. Frames come in this order
                and do not overlap.
            end_s: When its last bit has been sent.
            len_bytes: Its length, bytes.

        Returns:
            True if it is lost.
        """
        ...


class Application(Protocol):
    """Sends and receives at both ends of a flow, through the `Host` that it was made with."""

    def on_start(self) -> None:
        """Called when the flow starts."""
        ...

    def on_delivered(self, end: int, len_bytes: int, delay_s: float | None, /) -> None:
        """Called when bytes have arrived: over TCP in order, over UDP one datagram.

        Args:
            end: The receiving end: the flow's first (0) or second (1).
            len_bytes: Number of bytes.
            delay_s: The datagram's one-way delay, seconds; None over TCP.
        """
        ...

    def on_timer(self) -> None:
        """Called when the timer set by `Host.set_timer` expires."""
        ...


class WeightPolicy(Protocol):
    """Sets the weights of a link's services periodically."""

    @property
    def interval_s(self) -> float:
        """The period in seconds, above 0."""
        ...

    def weights(
        self, now_s: float, direction: str, services: list[dict[str, Any]], /
    ) -> Mapping[str, float]:
        """Returns new weights for the services of one port.

        Args:
            now_s: The simulated time, seconds.
            direction: The port: the one that sends `down`, or `up`.
            services: The port's state of each service (docs/custom.md).

        Returns:
            Weights above 0 by name of the service; unnamed services keep theirs.
        """
        ...


def ways(place: str) -> list[tuple[str, bool]]:
    """The directions that `links.NAME` or `links.NAME.down` names: the link, and whether downlink.

    Raises:
        ValueError: If it does not name a direction.
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


def _has(where: str, piece: object, *methods: str) -> None:
    for method in methods:
        if not callable(getattr(piece, method, None)):
            raise TypeError(f"{where}: {piece!r} has no method {method}")


def strict_model(
    link: str, down: bool, make: Callable[[_native.Random], ErrorModel]
) -> Callable[[_native.Random], object]:
    """Makes models with checked answers: a forgotten `return` would mean a link without loss."""
    where = f"links.{link}.{'down' if down else 'up'}"

    def made(rng: _native.Random) -> object:
        model = make(rng)
        _has(where, model, "loses")

        def loses(start_s: float, end_s: float, len_bytes: int) -> bool:
            lost = model.loses(start_s, end_s, len_bytes)
            if type(lost).__name__ not in ("bool", "bool_"):  # NumPy's types have these names, too.
                raise TypeError(f"{where}: loses returned {lost!r}, which is no bool")
            return lost

        return SimpleNamespace(loses=loses)

    return made


def strict_application(
    flow: str, make: Callable[[_native.Host], object]
) -> Callable[[_native.Host], object]:
    def made(host: _native.Host) -> object:
        application = make(host)
        _has(flow, application, "on_start", "on_delivered", "on_timer")
        return application

    return made


def strict_policy(place: str, policy: WeightPolicy) -> object:
    """The policy, with its answers as the dictionaries that native code expects."""

    def weights(now_s: float, direction: str, services: list[dict[str, Any]]) -> dict[str, float]:
        given = policy.weights(now_s, direction, services)
        if not isinstance(given, Mapping):
            raise TypeError(f"{place}: weights returned {given!r}, not weights by name of service")
        return dict(given)

    return SimpleNamespace(weights=weights)
