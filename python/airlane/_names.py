"""Errors for unknown names, which suggest the likeliest ones instead of listing all."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import NoReturn, TypeVar

V = TypeVar("V")

# At most this many names are listed.
_READ_AT_ONCE = 12


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """The message for a name that does not exist."""
    told = f"there is no {what} {name!r}"
    if near := _near(name, known):
        return f"{told}; did you mean {' or '.join(map(repr, near))}?"
    if len(known) <= _READ_AT_ONCE:
        return f"{told}; there are: {', '.join(known)}" if known else f"{told}, nor any other"
    # Names of metrics begin with the name of a flow or of a link.
    owner = name.partition(".")[0] + "."
    its_own = [one for one in known if one.startswith(owner)]
    if its_own:
        more = ", ..." if len(its_own) > _READ_AT_ONCE else ""
        return f"{told}; there are: {', '.join(its_own[:_READ_AT_ONCE])}{more}"
    owners = ", ".join(dict.fromkeys(one.partition(".")[0] for one in known))
    return f"{told}; there are {len(known)}, which begin with: {owners}"


def _near(name: str, known: Collection[str]) -> list[str]:
    """The likeliest names, the best first, at most three."""
    owner, dot, rest = name.partition(".")
    owners = {one.partition(".")[0] for one in known}
    if dot and owner not in owners:
        # For `vioce.*` only the owner is corrected, for `vioce.los_ratio` both parts.
        meant = difflib.get_close_matches(owner, sorted(owners), n=1)
        name = f"{meant[0]}.{rest}" if meant else name
        if meant and ("*" in rest or name in known):
            return [name]
    return difflib.get_close_matches(name, known, n=3, cutoff=0.75)


class Named(dict[str, V]):
    """A dictionary by name; an unknown name raises a `KeyError` that suggests known ones."""

    def __init__(self, what: str, entries: Iterable[tuple[str, V]]) -> None:
        super().__init__(entries)
        self._what = what

    def __missing__(self, name: object) -> NoReturn:
        raise UnknownNameError(unknown(self._what, str(name), self))


class UnknownNameError(KeyError):
    """A `KeyError` whose message is shown without quotes around it."""

    def __str__(self) -> str:
        return str(self.args[0])
