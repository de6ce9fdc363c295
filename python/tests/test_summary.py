import json
import math
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import results
from conftest import RATE
from hypothesis import given
from hypothesis import strategies as st
from lossy_world import world

import airlane
from airlane import Precision, Scenario
from airlane._native import student_t


def frame(values: dict[str, list[float | None]], metric: str = "f.delay_s") -> pl.DataFrame:
    """A sweep's frame with one axis, run by run."""
    rows = [
        {"way": way, "scenario_hash": way * 16, "seed": 1, "run": run, metric: value}
        for way, column in values.items()
        for run, value in enumerate(column)
    ]
    return pl.DataFrame(rows)


def test_means_and_their_intervals() -> None:
    rows = airlane.summary(frame({"b": [1.0, 2.0, 3.0], "a": [5.0, None, math.nan]})).rows()
    # t(2) = 4.302653, sd / sqrt(3) = 0.577350.
    assert rows[0][:5] == ("b", "f.delay_s", 3, 2.0, 1.0)
    assert rows[0][5] == pytest.approx(2.484138, abs=1e-5)
    assert rows[1] == ("a", "f.delay_s", 1, 5.0, None, None, 3)


def test_paired_differences_have_narrower_intervals() -> None:
    both = frame({"raw": [10.0, 20.0, 60.0], "sr": [12.0, 22.5, 63.0]})
    rows = airlane.summary(airlane.difference(both, "way", "raw"), confidence=0.9).rows()
    assert rows[0][:4] == ("sr", "f.delay_s", 3, 2.5)
    assert rows[0][5] == pytest.approx(2.919986 * 0.5 / math.sqrt(3), abs=1e-5)
    with pytest.raises(ValueError, match="'raw', 'sr'"):
        airlane.difference(both, "way", "rlp")


def test_a_sweep_is_summed_up_by_point(base: Scenario) -> None:
    swept = airlane.sweep(base, vary={RATE: [0.1, 0.0]}, runs=3)
    assert airlane.summary(swept, metrics="events")[RATE].to_list() == [0.1, 0.0]
    assert airlane.summary(swept, by=[], metrics="events")["n"].to_list() == [6]


def told(*arguments: str | Path) -> dict[str, Any]:
    """The program's JSON."""
    command = [results.program(), "sim", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_number_of_measured_runs_matches_the_program(tmp_path: Path) -> None:
    # On a link that loses nearly everything, few runs measure a delay; if it loses everything, none
    # does.
    files = [world(tmp_path, rate=rate, services=False) for rate in (0.9, 0.985, 1.0)]
    runs, seen = 12, set()
    first = told("run", files[1], "--runs", str(runs))["summary"]
    swept = airlane.sweep(Scenario.load(files[0]), vary={RATE: [0.9, 0.985, 1.0]}, runs=runs)
    means = airlane.summary(swept)
    known = {(row[RATE], row["metric"]): row for row in means.iter_rows(named=True)}
    owners = [(flow["name"], flow["metrics"]) for flow in first["flows"]]
    owners += [(f"{link['link']}.{link['direction']}", link["metrics"]) for link in first["links"]]
    for owner, metrics in owners:
        for metric in metrics:
            row = known[0.985, f"{owner}.{metric['metric']}"]
            assert (row["n"], row["runs"]) == (metric["n"], metric["runs"]), metric
            assert row["mean"] == (pytest.approx(metric["mean"]) if metric["n"] else None)
            seen.add(metric["n"])
    assert {0, runs} < seen

    # The same for pairs of runs.
    compared = told("compare", *files, "--runs", str(runs))["comparisons"][0]["comparison"]
    differences = airlane.summary(airlane.difference(swept, RATE, 0.9))
    pairs = {(row[RATE], row["metric"]): row for row in differences.iter_rows(named=True)}
    for metric in compared["metrics"]:
        for rate, of_scenario in zip((0.985, 1.0), metric["rows"][1:], strict=True):
            row = pairs[rate, f"{metric['flow']}.{metric['metric']}"]
            said = of_scenario["difference"] or {"n": 0, "runs": runs, "mean": None}
            assert (row["n"], row["runs"]) == (said["n"], said["runs"]), metric
            assert row["mean"] == pytest.approx(said["mean"])


def test_missing_columns_are_named() -> None:
    for wrong in ({"metrics": ["zz"]}, {"by": "zz"}):
        with pytest.raises(ValueError, match=r"no column 'zz'; there are: way, .*f\.delay_s"):
            airlane.summary(frame({"a": [1.0]}), **wrong)  # type: ignore[arg-type]


values = st.lists(st.floats(-1e6, 1e6) | st.just(math.nan), max_size=60)


@given(values, st.integers(2, 10), st.integers(0, 40), st.floats(0.001, 1))
def test_later_runs_do_not_change_the_number_of_runs(
    seen: list[float], least: int, more: int, relative: float
) -> None:
    precision = Precision("m", relative=relative, least=least, most=least + more)
    needed = precision.runs(seen)
    assert least <= needed <= least + more
    if needed <= len(seen):
        assert precision.runs([*seen, 1e9]) == needed
        assert precision.runs(seen[:needed]) == needed
    else:
        assert precision.runs(seen + [0.0] * 9) >= min(needed, least + more)


def test_a_precision_that_cannot_be_is_refused() -> None:
    for wrong in ({"relative": -1.0}, {"relative": 0.0}, {"confidence": 1.0}, {"least": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Precision("m", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="confidence"):
        student_t(1.0, 3)


def test_pandas_is_taken_and_given_back() -> None:
    rows = [(scheme, "", 1, run, float(run)) for scheme in ("a", "b") for run in range(4)]
    columns = ["scheme", "scenario_hash", "seed", "run", "voice.loss_ratio"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    frame = frame.with_columns(pl.col("voice.loss_ratio").replace(3.0, None))
    theirs = frame.to_pandas()
    means = airlane.summary(frame)
    assert means["n"].to_list() == [3, 3]
    assert means["runs"].to_list() == [4, 4]
    of_theirs = airlane.summary(theirs)
    assert type(of_theirs).__module__.startswith("pandas")
    assert of_theirs.to_dict("list") == means.to_dict(as_series=False)
    less = airlane.difference(theirs, "scheme", "a")
    assert pl.from_pandas(less).equals(airlane.difference(frame, "scheme", "a"))
    with pytest.raises(TypeError, match="a data frame of Polars or of pandas"):
        airlane.summary([1])
