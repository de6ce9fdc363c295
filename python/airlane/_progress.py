"""A line on the terminal that shows the progress of a sweep."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """Writes `[####----] 120/300 runs, 12 s left` to standard error, always without colour."""

    def __init__(self, shown: bool | None, stream: TextIO | None = None) -> None:
        """None means: if standard error is a terminal."""
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty() if shown is None else shown
        self._start_s = time.monotonic()
        self._drawn_s = float("-inf")
        self._done = 0
        self._total = 0

    def expect(self, runs: int) -> None:
        """Adds runs to the total."""
        self._total += runs

    def advance(self, runs: int) -> None:
        """Reports finished runs."""
        self._done += runs
        now_s = time.monotonic()
        due = now_s - self._drawn_s > 0.1 or self._done == self._total
        if self._shown and self._done and due:
            self._drawn_s = now_s
            left_s = (now_s - self._start_s) * (self._total - self._done) / self._done
            bar = "#" * (36 * self._done // self._total)
            text = f"[{bar:-<36}] {self._done}/{self._total} runs, {left_s:.0f} s left"
            self._stream.write(f"\r{text}\x1b[K")
            self._stream.flush()

    def close(self) -> None:
        """Clears the line."""
        if self._shown and self._done:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
