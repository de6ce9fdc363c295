"""`python -m airlane.plots window|sequence EVENTS.parquet --out FILE`."""

from __future__ import annotations

import argparse
import sys

from airlane import plots

_KINDS = {"window": plots.congestion_window, "sequence": plots.sequence}


def main(arguments: list[str] | None = None) -> int:
    """Draw TCP's behaviour from the recorded events of a run; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m airlane.plots",
        description="Draw TCP over time, from what `airlane sim run --events FILE.parquet` wrote.",
    )
    parser.add_argument("kind", choices=sorted(_KINDS), help="what is drawn over time")
    parser.add_argument("events", metavar="EVENTS", help="a Parquet file of events")
    parser.add_argument("--flow", help="whose [default: the only one]")
    parser.add_argument("--out", required=True, metavar="FILE", help="a .pdf, .svg or .png")
    chosen = parser.parse_args(arguments)
    import polars as pl

    try:
        figure = _KINDS[chosen.kind](pl.read_parquet(chosen.events), flow=chosen.flow)
        figure.savefig(chosen.out)
    except (ValueError, OSError, pl.exceptions.PolarsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
