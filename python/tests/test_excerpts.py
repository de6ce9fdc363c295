"""What the documents show in Python compiles as it stands."""

import ast
import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def excerpts() -> list[tuple[str, str]]:
    found = []
    for file in [SOURCES / "README.md", *sorted((SOURCES / "docs").glob("*.md"))]:
        text = file.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{file.name}:{line}", match[1]))
    return found


def test_there_are_excerpts() -> None:
    assert len(excerpts()) > 5


@pytest.mark.parametrize(("at", "code"), [pytest.param(*e, id=e[0]) for e in excerpts()])
def test_an_excerpt_compiles_and_names_what_there_is(at: str, code: str) -> None:
    import airlane.custom
    import airlane.figures
    import airlane.plots
    import airlane.report

    # What was typed, without what was answered.
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
    """`airlane.plots.means`; empty for anything but names behind dots."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            before = dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
    return ""
