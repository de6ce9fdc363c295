"""Worlds to simulate."""

from __future__ import annotations

import datetime
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from airlane import _native

__all__ = ["Scenario", "ScenarioSource", "Value"]

Value: TypeAlias = (
    bool | int | float | str | datetime.timedelta | Sequence["Value"] | Mapping[str, "Value"]
)
"""A value in a scenario: times, rates and sizes as text with a unit (`"20 Mbit/s"`), times also as
`timedelta`; probabilities and counts as numbers."""


class Scenario:
    """A world and what happens in it: nodes, links, flows. Immutable.

    It carries the tables and recordings that its file names, so it can be pickled and sent to
    machines that do not have them.

    Args:
        table: The scenario as nested dictionaries, as the TOML file would give them.
        folder: Where the files that it names are looked for.

    Raises:
        ScenarioError: If it describes no world.
        TypeError: If it is no dictionary, or holds a type that TOML does not have.
        OSError: If a file that it names cannot be read.
    """

    __slots__ = ("_core",)
    _core: _native.Scenario

    def __init__(self, table: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> None:
        if not isinstance(table, Mapping):
            raise TypeError(f"table={table!r}: a dictionary; Scenario.load(path) reads a file")
        self._core = _native.Scenario.from_dict(_plain(table), folder)

    @classmethod
    def from_toml(cls, text: str, *, folder: str | os.PathLike[str] = ".") -> Scenario:
        """A scenario from TOML text.

        Args:
            text: What would stand in the file.
            folder: Where the files that it names are looked for.

        Returns:
            The scenario.

        Raises:
            ScenarioError: If it describes no world.
            OSError: If a file that it names cannot be read.
        """
        return cls._of(_native.Scenario(text, "", folder, [], {}))

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Scenario:
        """A scenario from a file.

        Args:
            file: Its path; files that it names are looked up relative to it.

        Returns:
            The scenario.

        Raises:
            ScenarioError: If it describes no world, or is no UTF-8 text.
            OSError: If it, or a file that it names, cannot be read.
        """
        path = Path(file)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            from airlane.errors import ScenarioError

            raise ScenarioError(f"{path}: this is not UTF-8 text") from error
        return cls._of(_native.Scenario(text, str(path), path.parent, [], {}))

    @classmethod
    def shipped(cls, name: str) -> Scenario:
        """A scenario that ships with the package.

        Args:
            name: Its name, as `airlane scenario list` has it: `"three-applications"`.

        Returns:
            The scenario.

        Raises:
            ValueError: If there is none of this name.
        """
        texts = _native.shipped()
        if name not in texts:
            raise ValueError(f"name={name!r}: there is no such scenario; one of {sorted(texts)}")
        return cls._of(_native.Scenario(texts[name], name, ".", [], {}))

    @classmethod
    def _of(cls, native: _native.Scenario) -> Scenario:
        scenario = object.__new__(cls)
        scenario._core = native
        return scenario

    @property
    def name(self) -> str:
        """Its name for people."""
        return self._core.name

    @property
    def seed(self) -> int:
        """Seed of all random streams, unless another one is given."""
        return self._core.seed

    @property
    def hash(self) -> str:
        """16 hexadecimal digits, equal for equal worlds, whatever their seed."""
        return self._core.hash

    def set(self, path: str, value: Value) -> Scenario:
        """The same scenario with another value at a dotted path.

        Args:
            path: Keys joined by dots; elements of a list by index or by their `name`, as in
                `links.radio.services[voice].rate`.
            value: The value, as a TOML file would have it.

        Returns:
            Another scenario; this one stays as it is.

        Raises:
            ScenarioError: If the path leads nowhere or the value is wrong.
            TypeError: If the value is of a type that TOML does not have.
        """
        return self.with_({path: value})

    def with_(self, values: Mapping[str, Value] | None = None, /, **top: Value) -> Scenario:
        """The same scenario with other values, all of which are set before anything is checked.

        Args:
            values: Values by dotted path, as in `set`.
            top: Values of keys at the top: `with_(duration="10 s")`.

        Returns:
            Another scenario; this one stays as it is.

        Raises:
            ScenarioError: If a path leads nowhere or a value is wrong.
            TypeError: If a value is of a type that TOML does not have.
        """
        return self._of(self._core.with_values(_plain({**(values or {}), **top})))

    def resolved(self) -> Scenario:
        """The same world with every default written out."""
        _, _, folder, _, files = self._core.recipe
        text = self._core.to_toml(resolved=True)
        return self._of(_native.Scenario(text, "", folder, [], files))

    def to_toml(self) -> str:
        """Canonical TOML text, without comments."""
        return self._core.to_toml(resolved=False)

    def to_dict(self) -> dict[str, Any]:
        """Nested dictionaries, as the TOML file would give them: quantities as text with a unit."""
        return tomllib.loads(self.to_toml())

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the scenario, and the files that it names next to it.

        Args:
            file: Path of the scenario. What it names is written under the same folder; what it
                names by an absolute path stays where it is.

        Raises:
            ValueError: If it names a file by a path with `..`, which may lead out of the folder.
            OSError: If a file cannot be written.
        """
        path = Path(file)
        # It still carries files that it named before values were set.
        named = set(_texts(self.to_dict()))
        carried = {Path(name): data for name, data in self._core.recipe[4].items()}
        files = {
            name: data
            for name, data in carried.items()
            if not name.is_absolute() and not named.isdisjoint((name, *name.parents))
        }
        for name in files:
            if ".." in name.parts:
                raise ValueError(
                    f"{path}: the scenario names {str(name)!r}, which leads out of the folder; "
                    "name it by its absolute path, or by one without '..'"
                )
        path.write_text(self.to_toml(), encoding="utf-8")
        for name, data in files.items():
            beside = path.parent / name
            beside.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(data)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str]:
        return self.hash, self.to_toml()

    def __repr__(self) -> str:
        return f"<airlane.Scenario {self.name!r} {self.hash}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, self._core.recipe


ScenarioSource: TypeAlias = Scenario | str | os.PathLike[str]
"""A scenario, or the path of its file."""


def read(scenario: ScenarioSource) -> Scenario:
    """The scenario itself."""
    return scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)


def _restore(
    text: str, file: str, folder: str, assignments: list[str], files: dict[str, bytes]
) -> Scenario:
    return Scenario._of(_native.Scenario(text, file, folder, assignments, files))


def _texts(value: object) -> Iterator[Path]:
    """All text in a table as paths, including those of files."""
    if isinstance(value, str):
        yield Path(value)
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings as dictionaries and arrays as lists, recursively."""

    def plain(value: Any) -> Any:  # noqa: ANN401 (values of a scenario are of many types)
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return value.tolist() if hasattr(value, "tolist") else value

    return {key: plain(item) for key, item in value.items()}
