import re
import tomllib
from pathlib import Path

import airlane


def test_version_is_the_one_of_the_workspace() -> None:
    cargo = tomllib.loads((Path(__file__).parents[2] / "Cargo.toml").read_text(encoding="utf-8"))
    assert airlane.__version__ == cargo["workspace"]["package"]["version"]


def test_the_build_names_its_commit() -> None:
    is_checkout = (Path(__file__).parents[2] / ".git").exists()
    assert isinstance(airlane.__commit__, str) or not is_checkout
    assert re.fullmatch(r"[0-9a-f]{10}", airlane.__commit__ or "0123456789")
