"""Real results for tests of figures and pages: simulated once, or those of `make claims`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", SOURCES / "target"))
CLAIMS = TARGET / "claims"

# Line figures of both works, bars, and a study without a figure.
STUDIES = ("F4.2", "F8.2-WLAN", "background", "xylomenos-polyzos/F10", "xylomenos-polyzos/F8")


def needed(problem: str) -> None:
    """Skip a test, or fail if everything must be installed, as in continuous integration."""
    if os.environ.get("CI") or os.environ.get("AIRLANE_REQUIRE_LIVE"):
        pytest.fail(problem)
    pytest.skip(problem)


def program() -> Path:
    """The optimised `airlane`, which tests do not build."""
    path = TARGET / "quick" / "airlane"
    if not path.is_file():
        needed(f"{path} is missing: cargo build --profile quick -p airlane-cli")
    return path


def run(*arguments: str | Path, studies: Path = SOURCES / "studies") -> None:
    """Run `airlane study run`."""
    command = [program(), "study", "run", *arguments, "--studies", studies]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
