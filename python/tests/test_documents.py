"""Documents stay short, their lines fit a window, and their links resolve."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
DOCS = SOURCES / "docs"
# Maximum number of words, as `wc -w` counts them. The guides are docs/*.md, without the index.
LIMITS = {"README.md": 600, "CHANGELOG.md": 1_500, "docs/concepts.md": 1_500}
GUIDES = 20_000
ALL = 45_000
LONGEST_LINE = 120


def is_built(folder: str) -> bool:
    """What builds and tools leave in a checkout."""
    return folder in ("target", "node_modules") or (folder[0] == "." and folder != ".github")


def documents() -> list[Path]:
    """Every Markdown file of the sources."""
    found = []
    for folder, folders, files in os.walk(SOURCES):
        folders[:] = [name for name in folders if not is_built(name)]
        found += [Path(folder, name) for name in files if name.endswith(".md")]
    return sorted(found)


def name_of(file: Path) -> str:
    return file.relative_to(SOURCES).as_posix()


def words(files: list[Path]) -> int:
    return sum(len(file.read_text(encoding="utf-8").split()) for file in files)


@pytest.mark.parametrize("name", LIMITS)
def test_a_document_has_at_most_so_many_words(name: str) -> None:
    assert words([SOURCES / name]) <= LIMITS[name]


def test_guides_have_at_most_so_many_words_together() -> None:
    guides = [file for file in sorted(DOCS.glob("*.md")) if file.name != "index.md"]
    assert words(guides) <= GUIDES


def test_all_documents_together_have_at_most_so_many_words() -> None:
    """Pages that programs write count, too; only references and the specification do not."""
    without = ("docs/reference/", "docs/spec/")
    counted = [file for file in documents() if not name_of(file).startswith(without)]
    assert len(counted) > 40
    assert words(counted) <= ALL


def lines() -> Iterator[tuple[str, int, str]]:
    """Of what is written by hand."""
    for file in documents():
        name = name_of(file)
        if not name.startswith(("docs/reference/", "docs/lab/validation")):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                yield name, number, line


def test_lines_are_no_longer_than_a_window() -> None:
    """Except for tables, whose rows cannot be broken."""
    long = [
        f"{name}:{number}"
        for name, number, line in lines()
        if len(line) > LONGEST_LINE and not line.startswith("|")
    ]
    assert long == []


def test_links_lead_to_existing_files() -> None:
    broken = []
    for file in documents():
        text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = target.split("#")[0]
            if "://" not in target and path and not (file.parent / path).exists():
                broken.append(f"{name_of(file)}: {target}")
    assert broken == []
