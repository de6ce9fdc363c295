"""Every command of the tutorials runs as it stands, one after the other, in one shell."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import results

SOURCES = Path(__file__).parents[2]


def blocks(name: str, language: str) -> list[str]:
    text = (SOURCES / "docs" / name).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"{name} has no {language} any more"
    return found


def shell(script: str, folder: Path, *before: str) -> str:
    """The output of a script in a folder where `airlane` and `python` are those of the sources."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "airlane").symlink_to(results.program())
    (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    (programs / "python").chmod(0o755)
    for name in ("scenarios", "demo"):
        (folder / name).symlink_to(SOURCES / name)
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        [*before, "bash", "-euc", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "MPLBACKEND": "agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def ratio(pattern: str, printed: str) -> float:
    found = re.search(pattern, printed)
    assert found, printed
    return float(found[1])


def test_a_first_link_is_protected_as_the_tutorial_says(tmp_path: Path) -> None:
    root = os.geteuid() == 0 and shutil.which("ip") and shutil.which("unshare")
    if not root or not Path("/dev/net/tun").exists():
        results.needed("the tutorial on links needs root, iproute2 and /dev/net/tun")
    # Namespaces and control sockets belong to this test alone, and a failure leaves nothing.
    private = "mount -t tmpfs tmpfs /run; mkdir /run/netns"
    ended = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT"
    script = "\n".join([private, ended, *blocks("tutorial-link.md", "sh")])
    printed = shell(script, tmp_path, "unshare", "--mount", "--propagation", "private")
    assert "session confirmed" in printed
    assert ratio(r"throughput, alone .* ([\d.]+) x as much", printed) > 2, printed
    # A machine that is late by 100 ms loses a packet, too.
    if not re.search(r"lost, alone .* none left", printed):
        assert ratio(r"lost, alone .* ([\d.]+) x less", printed) > 5, printed
    assert re.search(r"^  1 files +sr-m2", printed, re.MULTILINE), printed
    assert "page, on pages" in printed, printed


def test_a_question_is_answered_as_the_tutorial_says(tmp_path: Path) -> None:
    code, *more = blocks("tutorial-study.md", "python")
    assert not more
    assert "RUNS = 10\n" in code
    (tmp_path / "study.py").write_text(code.replace("RUNS = 10\n", "RUNS = 2\n"), encoding="utf-8")
    printed = shell("\n".join(blocks("tutorial-study.md", "sh")), tmp_path)
    assert "120 runs" in printed, printed
    assert (tmp_path / "repair.pdf").read_bytes().startswith(b"%PDF")
