"""The native part of the package; users import `airlane`."""

import os
from collections.abc import Callable
from typing import Any, final

__all__ = [
    "MODEL",
    "Host",
    "Random",
    "Scenario",
    "Store",
    "Table",
    "__commit__",
    "__version__",
    "event_kinds",
    "events",
    "run",
    "run_custom",
    "shipped",
    "simulate",
    "student_t",
    "unit_at",
]

MODEL: str
__commit__: str | None
__version__: str

@final
class Scenario:
    def __new__(
        cls,
        text: str,
        file: str,
        folder: str | os.PathLike[str],
        set: list[str],  # noqa: A002
        files: dict[str, bytes],
    ) -> Scenario: ...
    @staticmethod
    def from_dict(table: dict[str, Any], folder: str | os.PathLike[str]) -> Scenario: ...
    def with_values(self, values: dict[str, Any]) -> Scenario: ...
    def places(self, path: str) -> list[list[str | int]] | None: ...
    def to_toml(self, resolved: bool) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def recipe(self) -> tuple[str, str, str, list[str], dict[str, bytes]]: ...

@final
class Store:
    def __new__(cls, folder: str | os.PathLike[str] | None, shard: str | None) -> Store: ...
    def has(self, scenario: str, seed: int, run: int) -> bool: ...
    def is_mine(self, scenario: str, seed: int, run: int) -> bool: ...
    def add(
        self, scenario: str, seed: int, runs: list[int], names: list[str], rows: bytes
    ) -> None: ...
    def values(self, scenario: str, seed: int, runs: list[int], metric: str) -> list[float]: ...
    def names(self, scenarios: list[str], seed: int) -> list[str]: ...
    def table(
        self, scenarios: list[str], seed: int, rows: list[tuple[int, int]], metrics: list[str]
    ) -> Table: ...
    def close(self) -> None: ...
    def merge(self) -> None: ...

@final
class Table:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

def run(
    scenario: Scenario, seed: int, run: int, over_time_s: float | None = None
) -> tuple[str, list[str], list[float]]: ...
def simulate(scenario: Scenario, seed: int, runs: list[int]) -> tuple[list[str], bytes]: ...
def student_t(confidence: float, degrees_of_freedom: int) -> float: ...

@final
class Random:
    """The random stream of one piece: it depends only on the seed, and is shared with nothing."""

    def random(self) -> float:
        """Uniform in [0, 1)."""

    def uniform(self, low: float, high: float) -> float:
        """Uniform in [low, high)."""

    def exponential(self, mean: float) -> float:
        """Exponential with this mean."""

    def bits(self) -> int:
        """64 uniform bits, for seeding another generator."""

@final
class Host:
    """The hosts at both ends of a flow, as an application sees them."""

    @property
    def now_s(self) -> float:
        """The simulated time, seconds."""

    @property
    def rng(self) -> Random:
        """Random numbers of this application, the same in all repetitions."""

    def send(self, end: int, len_bytes: int) -> None:
        """Sends `len_bytes` from the flow's first end (0) or its second (1)."""

    def set_timer(self, delay_s: float) -> None:
        """Calls `on_timer` after `delay_s`; replaces an earlier timer."""

    def cancel_timer(self) -> None:
        """Cancels the call of `on_timer`."""

    def finish(self) -> None:
        """Declares the application finished."""

    def record_response(self, duration_s: float) -> None:
        """Records a response that took `duration_s`."""

def events(
    scenario: Scenario,
    seed: int | None,
    run: int,
    kinds: list[str],
    flows: list[str],
    links: list[str],
    limit: int | None,
) -> Table:
    """Simulates one repetition and keeps its events."""

def shipped() -> dict[str, str]:
    """The scenarios that ship with the package: text by name."""

def unit_at(path: str) -> str | None:
    """The unit of the value at a dotted path of scenarios."""

def event_kinds() -> list[str]:
    """The names of all kinds of events."""

def run_custom(
    scenario: Scenario,
    seed: int | None,
    run: int,
    errors: list[tuple[str, bool, Any]],
    applications: list[tuple[str, Any]],
    weights: list[tuple[str, Any, float]],
    probe: list[tuple[str, Callable[[Any], None]]],
) -> tuple[str, list[str], list[float]]:
    """Simulates one repetition with custom pieces: as `run`."""
