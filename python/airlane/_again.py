"""How a run that failed is repeated alone."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from airlane.errors import RunError
from airlane.scenario import Scenario


def failed(
    reason: str, scenario: Scenario, seed: int, run: int, folder: Path | None = None
) -> RunError:
    """The error that ends with the command; leaves the scenario for it in a folder."""
    folder = Path(tempfile.gettempdir()) if folder is None else folder.absolute()
    file = folder / f"failed-{scenario.hash}.toml"
    scenario.save(file)
    code = f"import airlane; print(airlane.run({str(file)!r}, seed={seed}, run={run}))"
    command = shlex.join([sys.executable, "-c", code])
    message = f"run {run} of {scenario!r}: {reason}\nalone again:\n{command}"
    return RunError(message, seed, run)
