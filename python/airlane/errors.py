"""What can go wrong. Files that cannot be read or written raise `OSError`, as everywhere."""

from __future__ import annotations

import contextlib
import tomllib
from typing import Any

__all__ = ["AirlaneError", "AirlaneWarning", "RunError", "ScenarioError"]


class AirlaneError(Exception):
    """Any error of this package that is not one of Python's own."""


class AirlaneWarning(UserWarning):
    """Something runs as it is written, and was hardly meant so."""


class ScenarioError(AirlaneError, ValueError):
    """A scenario describes no world; the message says what would be right.

    Attributes:
        path: Dotted path of the first culprit, such as `links.radio.errors.rate`; empty if no
            single place is at fault.
        value: The value there; its TOML text if it is no value on its own; None if nothing stands
            there.
    """

    path: str
    value: Any

    def __init__(self, message: str, path: str = "", value: str | None = None) -> None:
        """Takes the value as TOML text."""
        super().__init__(message, path, value)
        self.path = path
        self.value = value
        if value is not None:
            with contextlib.suppress(tomllib.TOMLDecodeError):
                self.value = tomllib.loads(f"value = {value}")["value"]

    def __str__(self) -> str:
        return str(self.args[0])


class RunError(AirlaneError):
    """A single run failed.

    The message ends with the command that repeats it alone, or says why the scenario could not be
    kept for that; except of `custom.run`, whose pieces no command has.

    Attributes:
        seed: Seed of the run.
        run: Its repetition.
    """

    seed: int
    run: int

    def __init__(self, message: str, seed: int, run: int) -> None:
        super().__init__(message, seed, run)
        self.seed = seed
        self.run = run

    def __str__(self) -> str:
        return str(self.args[0])
