"""Documents stay short, their lines fit a window, and their links resolve."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
DOCS = SOURCES / "docs"
# Maximum number of words. The guides are docs/*.md, without the index.
LIMITS = {"README.md": 600, "CHANGELOG.md": 1_500, "docs/concepts.md": 1_500}
GUIDES = 20_000
WRITTEN = 45_000
LONGEST_LINE = 120


def is_written(file: Path) -> bool:
    """Hand-written documents: references and validation tables are generated; docs/spec has no
    limit."""
    name = str(file.relative_to(SOURCES))
    return not name.startswith(("docs/reference/", "docs/lab/validation", "docs/spec/"))


def documents() -> list[Path]:
    folders = [SOURCES, *(SOURCES / name for name in ("fuzz", "demo", "deploy", "notebooks"))]
    found = [file for folder in folders for file in folder.glob("*.md")]
    return sorted([*found, *DOCS.rglob("*.md")])


def words(files: list[Path]) -> int:
    return sum(len(file.read_text(encoding="utf-8").split()) for file in files)


@pytest.mark.parametrize("name", LIMITS)
def test_a_document_has_at_most_so_many_words(name: str) -> None:
    assert words([SOURCES / name]) <= LIMITS[name]


def test_guides_have_at_most_so_many_words_together() -> None:
    guides = [file for file in sorted(DOCS.glob("*.md")) if file.name != "index.md"]
    assert words(guides) <= GUIDES


def test_all_that_is_written_by_hand_has_at_most_so_many_words() -> None:
    assert words([file for file in documents() if is_written(file)]) <= WRITTEN


def lines() -> Iterator[tuple[str, int, str]]:
    for file in documents():
        name = str(file.relative_to(SOURCES))
        if is_written(file) or name.startswith("docs/spec/"):
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


def test_links_lead_to_files_that_there_are() -> None:
    broken = []
    for file in documents():
        text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = target.split("#")[0]
            if "://" not in target and path and not (file.parent / path).exists():
                broken.append(f"{file.relative_to(SOURCES)}: {target}")
    assert broken == []
