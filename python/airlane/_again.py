"""Makes the command that repeats a failed run alone."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path

from airlane.errors import RunError
from airlane.scenario import Scenario


def failed(
    reason: str,
    scenario: Scenario,
    seed: int,
    run: int,
    folder: Path | None = None,
    pieces: str | None = None,
) -> RunError:
    """An error that ends with the command; saves the scenario for it in a folder, or a new one.

    If the scenario cannot be saved, the message has the reason without a command. User-defined
    pieces, the arguments of `custom.run`, fit no command: with them it is a Python call.
    """
    message = f"run {run} of {scenario!r}: {reason}\n"
    try:
        place = Path(folder or tempfile.mkdtemp(prefix="airlane-failed-")).absolute()
        file = place / f"failed-{scenario.hash}.toml"
        scenario.save(file)
    except (OSError, ValueError) as error:
        return RunError(f"{message}the scenario could not be kept: {error}", seed, run)
    if pieces is not None:
        call = f"airlane.custom.run({str(file)!r}, {pieces}, seed={seed}, run={run})"
        return RunError(f"{message}alone again:\n{call}", seed, run)
    code = f"import airlane; print(airlane.run({str(file)!r}, seed={seed}, run={run}))"
    command = shlex.join([sys.executable, "-c", code])
    return RunError(f"{message}alone again:\n{command}", seed, run)
