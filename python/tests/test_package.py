import tomllib
from pathlib import Path

import airlane


def test_version_is_the_one_of_the_workspace() -> None:
    cargo = tomllib.loads((Path(__file__).parents[2] / "Cargo.toml").read_text(encoding="utf-8"))
    assert airlane.__version__ == cargo["workspace"]["package"]["version"]
