"""Python excerpts in the documents compile as they stand."""

import ast
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def excerpts() -> list[tuple[str, str]]:
    found = []
    for file in [SOURCES / "README.md", *sorted((SOURCES / "docs").rglob("*.md"))]:
        text = file.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{file.name}:{line}", match[1]))
    return found


def test_there_are_excerpts() -> None:
    assert len(excerpts()) > 5


@pytest.mark.parametrize(("at", "code"), [pytest.param(*e, id=e[0]) for e in excerpts()])
def test_an_excerpt_compiles_and_uses_existing_names(at: str, code: str) -> None:
    import airlane.custom
    import airlane.figures
    import airlane.plots
    import airlane.report

    # The input, without the output.
    if code.startswith(">>> "):
        typed = [line[4:] for line in code.splitlines() if line.startswith((">>> ", "... "))]
        code = "\n".join(typed)
    for node in ast.walk(ast.parse(code, filename=at)):
        if isinstance(node, ast.Attribute) and dotted(node).startswith("airlane."):
            found: object = airlane
            for name in dotted(node).split(".")[1:]:
                assert hasattr(found, name), f"{at}: there is no {dotted(node)}"
                found = getattr(found, name)


def dotted(node: ast.expr) -> str:
    """A dotted name such as `airlane.plots.means`; empty for anything else."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            before = dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
    return ""


# The names in files, from the reference that is generated from their schemas.
REFERENCES = [
    (SOURCES / "docs" / "reference" / f"{kind}.md").read_text(encoding="utf-8")
    for kind in ("scenario", "live")
]
COMING_FROM = (SOURCES / "docs" / "coming-from.md").read_text(encoding="utf-8")


def choices(key: str) -> set[str]:
    """The values that a TCP key may have."""
    row = re.search(rf"^\| `{key}` \| ([^|]*) \|", REFERENCES[0], re.MULTILINE)
    assert row
    return set(re.findall(r"\"([^\"]+)\"", row[1]))


def media() -> set[str]:
    part = REFERENCES[0].partition("\n## media.NAME\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^- `kind = \"([^\"]+)\"`", part, re.MULTILINE))


def test_coming_from_names_only_existing_keys_and_kinds() -> None:
    known = "\n".join(REFERENCES)
    theirs = " ".join(re.findall(r"^\| (.*?) \| ", COMING_FROM, re.MULTILINE))
    unknown = []
    for line in COMING_FROM.splitlines():
        # The right column of such a table is ours.
        ours = line.split(" | ", 1)[1] if line.startswith("| ") and " | " in line else ""
        for code in re.findall(r"`([^`]+)`", ours):
            for key in re.findall(r"(?:^|[{,] ?)([a-z][a-z0-9-]*) = ", code):
                if key != "kind" and f"`{key}`" not in known:
                    unknown.append(key)
            for value in re.findall(r"(?:kind|profile) = \"([^\"]+)\"", code):
                if f'"{value}"' not in known:
                    unknown.append(value)
            if re.fullmatch(r"\"[a-z][a-z0-9-]*\"", code) and code not in known:
                unknown.append(code)
            if re.fullmatch(r"[a-z]+-[a-z-]+", code) and not (
                code in theirs or f"| `{code}` |" in known or f'"{code}"' in known
            ):
                unknown.append(code)
    assert unknown == []


def test_coming_from_names_every_tcp_and_medium() -> None:
    names = choices("congestion") | choices("recovery") | media()
    assert {"cubic", "bbr", "rack", "wifi"} <= names
    missing = [name for name in sorted(names) if f'"{name}"' not in COMING_FROM]
    assert missing == []
    denied = re.findall(r"^Not here: (.*?)(?=\n\n|\Z)", COMING_FROM, re.MULTILINE | re.DOTALL)
    assert denied
    words = re.findall(r"[a-z0-9]+", " ".join(denied).lower().replace("-", ""))
    assert not names & set(words)


def test_coming_from_counts_the_settings_compared_with_ns2() -> None:
    report = (SOURCES / "docs" / "lab" / "validation-ns2.md").read_text(encoding="utf-8")
    within, of_all = re.findall(r"^(\d+) of (\d+) settings are within 5 %", report, re.MULTILINE)[0]
    said = f"has {of_all} settings side by side, {within} within 5 %"
    assert said in " ".join(COMING_FROM.split())
