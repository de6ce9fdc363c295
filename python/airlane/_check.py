"""Arguments that are wrong say so themselves, before native code finds them odd."""

from __future__ import annotations


def natural(name: str, value: int) -> int:
    """The value of an argument that counts or seeds.

    Raises:
        ValueError: If it is below 0 or has more than 64 bits.
    """
    if not 0 <= value < 2**64:
        raise ValueError(f"{name}={value}: 0 to 2^64 - 1")
    return value


def probability(name: str, value: float) -> float:
    """The value of an argument that is a probability of neither 0 nor 1.

    Raises:
        ValueError: If it is not between them.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name}={value}: between 0 and 1, such as 0.95")
    return value
