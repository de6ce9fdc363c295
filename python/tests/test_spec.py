"""Every reference to the specification resolves: ids, files and sections of docs/spec."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
SPEC = {
    file.name: file.read_text(encoding="utf-8") for file in (SOURCES / "docs/spec").glob("*.md")
}
ID = re.compile(r"\b(?:XYL|CLAP|LUD|BAL97|XP|GEN|AMB)-[A-Za-z0-9][A-Za-z0-9.]*(?:-[A-Za-z0-9.]+)*")
NUMBER = r"\d+(?:\.\d+)*"
NUMBERS = rf"(?:[Ss]ections? )?({NUMBER}(?:(?:, item | ?, | and | to ){NUMBER})*)"
FILE = r"docs/spec/([a-z0-9-]+\.md)"
BEFORE = re.compile(rf"{NUMBERS} of {FILE}")
AFTER = re.compile(rf"{FILE},? (?:\(?{NUMBERS})")
# Other uses of the word.
OTHERS = re.compile(r"(?:Noise|virtio|[Tt]est|type|[Cc]ommand) specification|the specification \d")


def sources() -> Iterator[tuple[str, str]]:
    """Name and text of each file that may refer to the specification, with comments joined to one
    line."""
    for folder in ("crates", "studies", "docs", "python", "scenarios", "demo", "fuzz"):
        for file in sorted((SOURCES / folder).rglob("*")):
            name = str(file.relative_to(SOURCES))
            if file.suffix in {".rs", ".toml", ".md", ".py"} and "docs/spec/" not in name:
                text = file.read_text(encoding="utf-8")
                yield name, re.sub(r"\s*\n\s*(?://[/!]?|#)? *", " ", text)


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    return list(sources())


def known_ids() -> set[str]:
    known = {found.rstrip(".-") for text in SPEC.values() for found in ID.findall(text)}
    assert len(known) > 800
    return known


def test_every_id_is_in_the_specification(texts: list[tuple[str, str]]) -> None:
    known, unknown, found = known_ids(), set(), 0
    for name, text in texts:
        for mentioned in ID.findall(text):
            plain = mentioned.rstrip(".-")
            # A study may judge several parts of one claim: `BAL97-T2-r1-goodput`.
            whole = re.sub(r"-[a-z]{3,}$", "", plain)
            found += 1
            family = any(one.startswith(f"{plain}-") for one in known)
            if plain not in known and whole not in known and not family:
                unknown.add((plain, name))
    assert found > 1000
    assert sorted(unknown) == []


def has_section(file: str, number: str) -> bool:
    text = SPEC[file]
    heading = rf"^(?:#+ |\*\*){re.escape(number)}\b"
    item = number.split(".")
    # Section 18 of the multi-service link layer is a list.
    listed = len(item) == 2 and f"\n## {item[0]}. " in text and f"\n{item[1]}. " in text
    return bool(re.search(heading, text, re.MULTILINE)) or listed


def test_every_file_and_section_is_there(texts: list[tuple[str, str]]) -> None:
    missing, found = set(), 0
    for name, text in texts:
        for file in re.findall(FILE, text):
            if file not in SPEC:
                missing.add((file, name))
        named = [(file, numbers) for numbers, file in BEFORE.findall(text)]
        for file, numbers in [*named, *AFTER.findall(text)]:
            for number in re.findall(NUMBER, numbers.split(", item")[0]):
                found += 1
                if not has_section(file, number):
                    missing.add((f"{file}, {number}", name))
    assert found > 60
    assert sorted(missing) == []


def test_comments_name_the_file_of_the_specification(texts: list[tuple[str, str]]) -> None:
    """Only in comments of sources; reports and tables quote studies."""
    vague = []
    for name, _ in texts:
        if name.endswith(".rs"):
            original = (SOURCES / name).read_text(encoding="utf-8")
            for line in re.findall(r"//.*", original):
                if "specification" in line and not OTHERS.search(line):
                    vague.append((name, line))
    assert vague == []


@pytest.mark.parametrize("file", sorted(SPEC))
def test_links_within_the_specification_resolve(file: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", SPEC[file]):
        assert (SOURCES / "docs/spec" / target).exists(), target
