"""`python -m airlane.figures DIR [ID...]`."""

from __future__ import annotations

import argparse
import sys

from airlane import figures


def main(arguments: list[str] | None = None) -> int:
    """Write figures; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m airlane.figures",
        description="Draw published figures from a folder that `airlane study run --out` left.",
    )
    parser.add_argument("folder", metavar="DIR", help="folder with results")
    parser.add_argument("ids", metavar="ID", nargs="*", help="studies, such as F4.2 [default: all]")
    parser.add_argument("--out", default="figures", help="where files go [default: %(default)s]")
    parser.add_argument(
        "--format",
        default="pdf,svg",
        help=f"some of {','.join(figures.FORMATS)} [default: %(default)s]",
    )
    parser.add_argument(
        "--width",
        choices=sorted(figures.WIDTHS_IN),
        help="columns of a page [default: what the study wants]",
    )
    chosen = parser.parse_args(arguments)
    try:
        files = figures.save_all(
            chosen.folder,
            chosen.out,
            figures=chosen.ids,
            formats=chosen.format.split(","),
            width=chosen.width,
        )
    except (figures.ResultsError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, figures.ResultsError) else 1
    for path in files:
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
