"""Names that are not there: what was probably meant, and not all that there is."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import NoReturn, TypeVar

V = TypeVar("V")

# As many names as one still reads.
_READ_AT_ONCE = 12


def unknown(what: str, name: str, known: Collection[str]) -> str:
    """What to say of a name that nothing has."""
    told = f"there is no {what} {name!r}"
    if near := _near(name, known):
        return f"{told}; did you mean {' or '.join(map(repr, near))}?"
    if len(known) <= _READ_AT_ONCE:
        return f"{told}; there are: {', '.join(known)}" if known else f"{told}, nor any other"
    # Names of metrics begin with that of a flow or of a link.
    owner = name.partition(".")[0] + "."
    its_own = [one for one in known if one.startswith(owner)]
    if its_own:
        more = ", ..." if len(its_own) > _READ_AT_ONCE else ""
        return f"{told}; there are: {', '.join(its_own[:_READ_AT_ONCE])}{more}"
    owners = ", ".join(dict.fromkeys(one.partition(".")[0] for one in known))
    return f"{told}; there are {len(known)}, which begin with: {owners}"


def _near(name: str, known: Collection[str]) -> list[str]:
    """What was probably meant, the likeliest first, at most three."""
    owner, dot, rest = name.partition(".")
    owners = {one.partition(".")[0] for one in known}
    if dot and owner not in owners:
        # Of `vioce.*` the owner alone is corrected, of `vioce.los_ratio` both.
        meant = difflib.get_close_matches(owner, sorted(owners), n=1)
        name = f"{meant[0]}.{rest}" if meant else name
        if meant and ("*" in rest or name in known):
            return [name]
    return difflib.get_close_matches(name, known, n=3, cutoff=0.75)


class Named(dict[str, V]):
    """A dictionary by name. One that is not there raises a `KeyError` that says what is."""

    def __init__(self, what: str, entries: Iterable[tuple[str, V]]) -> None:
        super().__init__(entries)
        self._what = what

    def __missing__(self, name: object) -> NoReturn:
        raise UnknownNameError(unknown(self._what, str(name), self))


class UnknownNameError(KeyError):
    """A `KeyError` whose message is shown as it is, without quotes around it."""

    def __str__(self) -> str:
        return str(self.args[0])
