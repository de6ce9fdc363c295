"""The page of `airlane lab` was built from the current sources."""

import hashlib
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
