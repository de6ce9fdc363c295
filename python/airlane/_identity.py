"""A fingerprint of user-defined code, so that results of an older version are not reused for it."""

from __future__ import annotations

import hashlib
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias

_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
# The code of these modules only changes with their installation, so they count by name.
_FOREIGN: Final = sys.stdlib_module_names | {"airlane", "numpy"}

# Objects visited so far, by id; they are kept alive so that no other object gets the id.
_Seen: TypeAlias = dict[int, object]


def digest(piece: object) -> str:
    """16 hexadecimal digits, equal for equal code that holds equal values.

    A class counts with its source, its attributes and its bases, a function with its source, its
    defaults and its closure, and both with everything of their own module that they name. An object
    counts with its class and its pickled state. Everything that other modules define counts by
    name.

    Raises:
        TypeError: If it holds something that cannot be compared.
    """
    hasher = hashlib.sha256()
    for part in _parts(piece, {}):
        # With its length, so that different sequences of parts have different bytes.
        hasher.update(len(part).to_bytes(8, "little") + part)
    return hasher.hexdigest()[:16]


def _parts(value: Any, seen: _Seen) -> Iterator[bytes]:  # noqa: ANN401 (a piece may hold anything)
    yield type(value).__qualname__.encode()
    if isinstance(value, _PLAIN):
        yield repr(value).encode()
        return
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        if str(value.__module__).partition(".")[0] in _FOREIGN:
            return
        if isinstance(value, type):
            yield from _class(value, seen)
        elif isinstance(value, FunctionType):
            yield from _function(value, seen)
    elif isinstance(value, MethodType):
        yield from _several((value.__func__, value.__self__), seen)
    elif isinstance(value, ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, dict):
        yield from _several(value.items(), seen)
    elif isinstance(value, list | tuple):
        yield from _several(value, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(digest(one).encode() for one in value)
    else:
        yield from _object(value, seen)


def _several(values: Iterable[Any], seen: _Seen) -> Iterator[bytes]:
    for value in values:
        yield from _parts(value, seen)


def _class(one: type, seen: _Seen) -> Iterator[bytes]:
    yield _source(one)
    yield from _several(one.__bases__, seen)
    for name, member in vars(one).items():
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if isinstance(function, FunctionType):
            yield from _function(function, seen)
        elif not name.startswith("__") and isinstance(member, _PLAIN):
            yield f"{name}={member!r}".encode()


def _function(function: FunctionType, seen: _Seen) -> Iterator[bytes]:
    yield _source(function) or _code(function.__code__)
    yield from _parts((function.__defaults__, function.__kwdefaults__), seen)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, seen)
        except ValueError:  # The cell is still empty.
            continue
    for name in sorted(set(_names(function.__code__)) & function.__globals__.keys()):
        value = function.__globals__[name]
        its_own = getattr(value, "__module__", None) == function.__module__
        if its_own or isinstance(value, (*_PLAIN, tuple, list, dict)):
            yield from _parts(value, seen)


def _object(value: object, seen: _Seen) -> Iterator[bytes]:
    try:
        made_of = value.__reduce_ex__(4)
    except Exception as error:
        raise TypeError(
            f"{value!r}: nothing tells whether it is the same another time, so results of it "
            "cannot be kept; make pieces of classes, functions and plain values"
        ) from error
    if isinstance(made_of, str):
        yield made_of.encode()
        return
    for part in made_of:
        yield from _parts(list(part) if isinstance(part, Iterator) else part, seen)


def _source(code: Any) -> bytes:  # noqa: ANN401
    """Empty if it was typed into an interpreter that does not keep its input."""
    try:
        return textwrap.dedent(inspect.getsource(code)).encode()
    except (OSError, TypeError):
        return b""


def _code(code: CodeType) -> bytes:
    plain = [one for one in code.co_consts if not isinstance(one, CodeType)]
    inner = b"".join(_code(one) for one in code.co_consts if isinstance(one, CodeType))
    return code.co_code + repr((plain, code.co_names)).encode() + inner


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)
