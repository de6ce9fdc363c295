"""`python -m airlane.report DIR`."""

from __future__ import annotations

import argparse
import sys

from airlane import report


def main(arguments: list[str] | None = None) -> int:
    """Write pages; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m airlane.report",
        description="Write one HTML page for each work in a folder of `airlane study run --out`.",
    )
    parser.add_argument("folder", metavar="DIR", help="folder with results")
    parser.add_argument("--out", metavar="DIR", help="where pages go [default: report in DIR]")
    chosen = parser.parse_args(arguments)
    try:
        pages = report.write(chosen.folder, chosen.out)
    except (report.ResultsError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, report.ResultsError) else 1
    for page in pages:
        print(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
