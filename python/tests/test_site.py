"""The page of `airlane lab` was built from the current sources."""

import hashlib
import json
import re
from pathlib import Path

WEB = Path(__file__).parents[2] / "web"


def test_the_page_is_current() -> None:
    own = (f"src/{path.name}" for path in (WEB / "src").iterdir())
    files = sorted(["index.html", "package-lock.json", "vite.config.ts", *own])
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file}\n".encode() + (WEB / file).read_bytes())
    made = re.match(
        r"// Made by `make page` of sources ([0-9a-f]{64})\n", (WEB / "site" / "lab.js").read_text()
    )
    assert made
    assert made[1] == digest.hexdigest(), "web/site is stale: `make page` makes it anew"
    assert (WEB / "site" / "index.html").read_bytes() == (WEB / "index.html").read_bytes()


def test_the_page_has_the_licences_of_its_libraries() -> None:
    site = WEB / "site"
    lock = json.loads((WEB / "package-lock.json").read_text())["packages"]
    shipped = [path for path, package in lock.items() if path and not package.get("dev")]
    text = (site / "licences.txt").read_text()
    assert len(shipped) >= len(lock[""]["dependencies"])
    for path in shipped:
        name = path.removeprefix("node_modules/")
        assert f"## {name} - {lock[path]['version']} (" in text, name
    assert 'href="licences.txt"' in (site / "index.html").read_text()
