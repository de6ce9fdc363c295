"""The errors of this package. Files that cannot be read or written raise `OSError`, as usual."""

from __future__ import annotations

import contextlib
import tomllib
from typing import Any

__all__ = ["AirlaneError", "AirlaneWarning", "RunError", "ScenarioError"]


class AirlaneError(Exception):
    """Any error of this package that is not one of Python's own."""


class AirlaneWarning(UserWarning):
    """Something that runs as written, but was probably not meant that way."""


class ScenarioError(AirlaneError, ValueError):
    """A scenario is invalid; the message says what would be right.

    Attributes:
        path: Dotted path of the first problem, such as `links.radio.errors.rate`; empty if no
            single place is at fault.
        value: The value there; its TOML text if it is not a value on its own; None if nothing is
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

    The message ends with the command that repeats the run alone, or says why the scenario could not
    be saved for it. Runs of `custom.run` have no such command, because a command cannot contain
    their pieces.

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
