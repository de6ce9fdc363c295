from pathlib import Path

import pytest
import results

from airlane import Scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
RATE = "links.radio.errors.rate"


@pytest.fixture(scope="session")
def base() -> Scenario:
    """A file, pages and voice over a slow link; a run takes a few milliseconds."""
    return Scenario.load(SCENARIOS / "three-applications.toml").with_(duration="20 s")


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two repetitions of a few figures of both works."""
    out = tmp_path_factory.mktemp("few")
    results.run(*results.STUDIES, "--runs", "2", "--out", out)
    return out
