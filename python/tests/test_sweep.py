import datetime
import io
import json
import multiprocessing
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from conftest import RATE, SCENARIOS

import airlane
from airlane import AirlaneError, Precision, RunError, Scenario, ScenarioError, _native
from airlane._axes import Axis
from airlane._batch import simulate
from airlane._progress import Progress

VARY: dict[str, Any] = {RATE: [0.05, 0.0], "links.radio.delay": ["50 ms", "100 ms", "150 ms"]}


def as_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def whole(base: Scenario) -> pl.DataFrame:
    return airlane.sweep(base, vary=VARY, runs=4, executor=1)


def test_a_row_for_each_point_and_run(base: Scenario, whole: pl.DataFrame) -> None:
    assert whole.columns[:5] == [*VARY, "scenario_hash", "seed", "run"]
    rows = whole.select([*whole.columns[:2], "run"]).rows()
    delays = VARY["links.radio.delay"]
    assert rows == [(rate, d, run) for rate in (0.05, 0.0) for d in delays for run in range(4)]
    for row in whole.iter_rows(named=True):
        point = base.with_({path: row[path] for path in VARY})
        alone = airlane.run(point, run=row["run"]).frame().row(0, named=True)
        assert {name: row[name] for name in alone} == alone


def test_the_executor_does_not_matter(base: Scenario, whole: pl.DataFrame) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(1, mp_context=spawn) as process:
        for executor in (None, 2, threads, process):
            again = airlane.sweep(base, vary=VARY, runs=4, executor=executor)
            assert as_bytes(again) == as_bytes(whole)


class Dies(Executor):
    """Fails after some batches, like a machine that is switched off."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        self.left -= 1
        future: Future[Any] = Future()
        if self.left < 0:
            future.set_exception(KeyboardInterrupt())
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_sweep_resumes_where_it_was_interrupted(
    base: Scenario, whole: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        airlane.sweep(base, vary=VARY, runs=4, executor=Dies(2), out=tmp_path)
    # The first batches are single runs, and the results of the successful ones are there.
    assert (tmp_path / "runs.jsonl").read_text().count("\n") == 2
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"version":"0.')  # a line that was being written
    resumed = airlane.sweep(base, vary=VARY, runs=4, out=tmp_path)
    assert as_bytes(resumed) == as_bytes(whole)
    assert (tmp_path / "runs.jsonl").read_text().count("\n") == 24
    # Known results are not simulated again.
    monkeypatch.setattr(_native, "simulate", None)
    assert as_bytes(airlane.sweep(base, vary=VARY, runs=4, out=tmp_path)) == as_bytes(whole)


def test_ctrl_c_stops_a_sweep(tmp_path: Path) -> None:
    code = (
        "import airlane, sys; scenario = airlane.Scenario.load(sys.argv[1]); "
        "airlane.sweep(scenario, runs=10**5, out=sys.argv[2], progress=True)"
    )
    command = [sys.executable, "-c", code, str(SCENARIOS / "three-applications.toml")]
    with subprocess.Popen([*command, str(tmp_path)], stderr=subprocess.PIPE, text=True) as sweep:
        results = tmp_path / "runs.jsonl"
        while not results.exists() and sweep.poll() is None:
            time.sleep(0.01)
        sweep.send_signal(signal.SIGINT)
        _, shown = sweep.communicate(timeout=120)
    assert sweep.returncode == -signal.SIGINT
    assert "/100000 runs" in shown
    assert "KeyboardInterrupt" in shown


def test_shards_together_make_the_sweep(
    base: Scenario, whole: pl.DataFrame, tmp_path: Path
) -> None:
    parts, alone = tmp_path / "parts", tmp_path / "alone"
    for shard in ("3/3", "1/3"):
        part = airlane.sweep(base, vary=VARY, runs=4, out=parts, shard=shard)
        assert len(part) < 24
    with pytest.raises(AirlaneError, match="are all shards in this folder"):
        airlane.merge(parts)
    airlane.sweep(base, vary=VARY, runs=4, out=parts, shard="2/3")
    assert len(list(parts.glob("runs-*-of-3.jsonl"))) == 3
    assert as_bytes(airlane.merge(parts)) == as_bytes(whole)
    airlane.sweep(base, vary=VARY, runs=4, out=alone)
    assert as_bytes(airlane.merge(alone)) == as_bytes(whole)
    for file in ("runs.jsonl", "sweep.json"):
        assert (parts / file).read_bytes() == (alone / file).read_bytes()
    assert sorted(file.name for file in parts.iterdir()) == ["runs.jsonl", "sweep.json"]


def test_a_folder_of_another_version_is_refused(base: Scenario, tmp_path: Path) -> None:
    airlane.sweep(base, runs=1, out=tmp_path)
    manifest = tmp_path / "sweep.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": "0.0.0+other"}))
    with pytest.raises(AirlaneError, match=r"version 0\.0\.0"):
        airlane.merge(tmp_path)
    manifest.write_text("[]")
    with pytest.raises(AirlaneError, match="no sweep"):
        airlane.merge(tmp_path)
    with pytest.raises(FileNotFoundError):
        airlane.merge(tmp_path / "none")


def test_axes_by_name_and_metrics_by_pattern(base: Scenario) -> None:
    schemes = {
        "raw": {"links.radio.services[voice].scheme": {"kind": "default"}},
        "twice": {"links.radio.services[voice].scheme": {"kind": "rlp-oos", "retries": 2}},
    }
    delays = [datetime.timedelta(milliseconds=100)]
    frame = airlane.sweep(
        base,
        vary={"scheme": schemes, "links.radio.delay": delays},
        runs=2,
        metrics=["voice.loss_ratio", "*.throughput_bps"],
    )
    assert frame["scheme"].to_list() == ["raw", "raw", "twice", "twice"]
    assert frame["links.radio.delay"].unique().to_list() == ["0.1 s"]
    names = ["voice.loss_ratio", "file.throughput_bps", "pages.throughput_bps"]
    assert frame.columns[5:] == [*names, "voice.throughput_bps"]
    assert frame["scheme"].n_unique() == frame["scenario_hash"].n_unique()
    with pytest.raises(ValueError, match=r"no metric 'file.speed'; there are: file\.\w+, "):
        airlane.sweep(base, runs=10**5, metrics=["file.speed"])


def test_points_that_are_one_world_are_run_once(base: Scenario, tmp_path: Path) -> None:
    twice = {"once": {"name": "a"}, "again": {"name": "a"}}
    frame = airlane.sweep(base, vary={"which": twice}, runs=3, out=tmp_path)
    assert len(frame) == 6
    assert (tmp_path / "runs.jsonl").read_text().count("\n") == 3


@pytest.mark.parametrize("executor", [1, 2])
def test_each_point_runs_until_its_precision_is_reached(
    base: Scenario, executor: int, tmp_path: Path
) -> None:
    until = Precision("file.throughput_bps", relative=0.12, least=3, most=40)
    frame = airlane.sweep(base, vary=VARY, until=until, executor=executor, out=tmp_path)
    counts = frame.group_by(list(VARY), maintain_order=True).len()["len"].to_list()
    assert len(set(counts)) > 1
    for (_, point), count in zip(
        frame.group_by(list(VARY), maintain_order=True), counts, strict=True
    ):
        more = airlane.sweep(
            base.with_({path: point[path][0] for path in VARY}), runs=40, metrics=until.metric
        )
        assert until.runs(more[until.metric].to_list()) == count
        half = airlane.summary(point, metrics=until.metric).row(0, named=True)
        assert count == 40 or half["half_width"] <= 0.12 * half["mean"]
    assert airlane.merge(tmp_path).equals(frame)
    with pytest.raises(ValueError, match="no metric 'nothing'"):
        airlane.sweep(base, until=Precision("nothing"))


def test_a_run_that_fails_says_how_to_repeat_it(
    base: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _native.simulate

    def fails(scenario: _native.Scenario, seed: int, runs: list[int]) -> tuple[list[str], bytes]:
        if 2 in runs:
            raise RunError("a wheel came off", seed, 2)
        return real(scenario, seed, runs)

    monkeypatch.setattr(_native, "simulate", fails)
    with pytest.raises(RunError, match="a wheel came off") as caught:
        airlane.sweep(base, vary={RATE: [0.03]}, runs=5, seed=8, out=tmp_path)
    assert (caught.value.seed, caught.value.run) == (8, 2)
    command = shlex.split(str(caught.value).splitlines()[-1])
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    expected = airlane.run(base.set(RATE, 0.03), seed=8, run=2)
    assert shown.strip() == repr(expected)


def test_a_lost_worker_is_reported_with_how_to_resume(base: Scenario, tmp_path: Path) -> None:
    class Loses(Dies):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("it ran out of memory"))
            return future

    with pytest.raises(RunError, match="it ran out of memory") as caught:
        airlane.sweep(base, runs=3, seed=8, executor=Loses(0), out=tmp_path)
    command = shlex.split(str(caught.value).splitlines()[-1])
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.strip() == repr(airlane.run(base, seed=8, run=caught.value.run))


def test_a_broken_pool_is_reported_with_how_to_resume(base: Scenario, tmp_path: Path) -> None:
    class Broken(Dies):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
            if self.left == 0:
                raise BrokenExecutor("it is gone")
            return super().submit(fn, *args, **kwargs)

    with pytest.raises(RunError, match="it is gone") as caught:
        airlane.sweep(base, runs=9, executor=Broken(3), out=tmp_path)
    assert "airlane.run(" in str(caught.value).splitlines()[-1]


def test_a_sweep_has_the_page_and_call_metrics_of_a_run() -> None:
    scenario = Scenario.load(SCENARIOS / "three-applications.toml").set("duration", "20 s")
    metrics = ["pages.page_time_mean_s", "voice.delay_median_s", "file.window_cuts"]
    row = airlane.sweep(scenario, runs=1, metrics=metrics).row(0, named=True)
    flows = airlane.run(scenario).flows
    known = [getattr(flows[name], metric) for name, metric in (m.split(".") for m in metrics)]
    assert [row[metric] for metric in metrics] == known
    assert None not in known


def test_a_sweep_has_the_metrics_of_each_service(base: Scenario) -> None:
    name = "radio.down.voice."
    row = airlane.sweep(base, runs=1, metrics=[name + "*"]).row(0, named=True)
    link = airlane.run(base).links["radio"].down
    voice = link.services["voice"]
    assert row[name + "delay_s"] == voice.delay_s
    assert row[name + "given_up_packets"] == voice.receiver["given_up"]
    assert row[name + "repair_frames"] == voice.sender["repair_frames_sent"] > 0
    assert row[name + "packets"] == voice.sender["packets_offered"]


def test_a_worker_of_another_version_is_refused(
    base: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(Dies):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
            with monkeypatch.context() as there:
                there.setattr(_native, "MODEL", "0.0.1+other")
                return super().submit(simulate, *args)

    with pytest.raises(AirlaneError, match=r"runs version 0\.0\.1"):
        airlane.sweep(base, runs=1, executor=Elsewhere(1))


def test_invalid_sweeps_are_refused(base: Scenario, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        airlane.sweep(base, vary={RATE: [0.1, 1.1]})
    assert (caught.value.path, caught.value.value) == (RATE, 1.1)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"runs": 0}, "runs=0"),
        ({"vary": {RATE: []}}, "one value or more"),
        ({"vary": {RATE: "0.1"}}, "a list"),
        ({"vary": {RATE: 0.1}}, "a list"),
        ({"seed": -1}, "seed=-1"),
        ({"vary": {"run": [1]}}, "'run'"),
        ({"vary": {"half_width": {"a": {}}}}, "cannot be called 'half_width'"),
        ({"vary": {"events": {"a": {}}}, "runs": 10**5}, "'events'; there is a metric"),
        ({"vary": {RATE: np.array(0.1)}}, "a list of one value or more, not array"),
        ({"shard": "1/2"}, "needs out="),
        ({"shard": "3/2", "out": tmp_path}, 'such as "1/4"'),
        ({"shard": "1/2", "out": tmp_path, "until": Precision("events")}, "until="),
        ({"executor": -1}, "1 thread or more"),
        ({"executor": 0}, "1 thread or more"),
        ({"executor": "mpi"}, 'write "dask"'),
        ({"executor": "dask://"}, 'write "dask"'),
        ({"vary": {"links.radio.errors": {"kind": "uniform"}}}, "'kind' sets values by path"),
        ({"vary": {RATE: [0.1, 0.1]}}, "0.1 stands there twice"),
        ({"vary": {"name": ["1", 1]}}, "'1' stands there twice"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            airlane.sweep(base, **arguments)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OSError, match="file"):
        airlane.sweep(base, runs=1, out=file)


@pytest.mark.parametrize(
    "wrong",
    [
        {"executor": 1.5},
        {"executor": True},
        {"runs": 2.5},
        {"runs": "3"},
        {"seed": "x"},
        {"until": "voice.loss_ratio"},
        {"metrics": 5},
        {"shard": (1, 2), "out": "x"},
    ],
    ids=str,
)
def test_an_argument_of_the_wrong_type_is_named(base: Scenario, wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"^{next(iter(wrong))}="):
        airlane.sweep(base, **wrong)


VOICE = "links.radio.services[voice]"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("links.radio.errors", RATE),
        (RATE, 'links."radio".errors.rate'),
        (f"{VOICE}.rate", "links.radio.services[VOICE].rate"),
        (f"{VOICE}.scheme", "links.radio.services[VOICE].scheme.retries"),
        ("links.radio.services", f"{VOICE}.rate"),
    ],
)
def test_axes_that_overwrite_each_other_are_refused(base: Scenario, one: str, other: str) -> None:
    services = [service["name"] for service in base.to_dict()["links"]["radio"]["services"]]
    other = other.replace("VOICE", str(services.index("voice")))
    for vary in ({one: [0.1], "mine": {"a": {other: 0.2}}}, {other: [0.1], one: [0.2]}):
        with pytest.raises(ValueError, match=r"^vary: axis .* sets .* overwrites") as caught:
            airlane.sweep(base, vary=vary)
        assert all(text in str(caught.value) for text in (one, other, *vary))


def test_axes_beside_each_other_are_not_refused(base: Scenario) -> None:
    vary: dict[str, Any] = {f"{VOICE}.rate": [0.2], "links.radio.services[0].rate": [0.3]}
    assert len(airlane.sweep(base, vary=vary, runs=1)) == 1


def test_an_axis_may_set_keys_that_an_earlier_axis_leaves_out(base: Scenario) -> None:
    tables = {"u": {"links.radio.errors": {"kind": "uniform"}}, "as it is": {}}
    vary: dict[str, Any] = {"model": tables, RATE: [0.1, 0.2]}
    frame = airlane.sweep(base, vary=vary, runs=1)
    assert (
        frame["scenario_hash"].to_list() == [base.set(RATE, rate).hash for rate in vary[RATE]] * 2
    )
    held = {"u": {"links.radio.errors": {"kind": "uniform", "rate": 0.1}}}
    for wrong in ({RATE: [0.1], "model": tables}, {"model": held, RATE: [0.1]}):
        with pytest.raises(ValueError, match="one overwrites the other"):
            airlane.sweep(base, vary=wrong)


def test_an_axis_may_have_the_name_of_an_omitted_metric(base: Scenario) -> None:
    frame = airlane.sweep(base, vary={"events": {"a": {}}}, runs=1, metrics="file.*")
    assert frame["events"].to_list() == ["a"]


def test_labels_of_arrays() -> None:
    assert Axis.of("x", np.array([0.1, 0.2])).labels == [0.1, 0.2]
    assert Axis.of("x", [np.array([1, 2]), np.array([3])]).labels == ["[1, 2]", "[3]"]
    assert Axis.of("x", [{"y": np.array([1, 2])}]).labels == ['{"y": [1, 2]}']


@pytest.mark.filterwarnings("ignore::airlane.AirlaneWarning")
def test_labels_are_exact_and_can_be_of_times_in_tables(base: Scenario) -> None:
    second, tick = datetime.timedelta(seconds=1), datetime.timedelta(microseconds=1)
    delays = airlane.sweep(base, vary={"links.radio.delay": [second, second + tick]}, runs=1)
    assert delays["links.radio.delay"].to_list() == ["1 s", "1.000001 s"]
    errors = {"kind": "outage", "good": 10 * second, "bad": tick}
    assert Axis.of("links.radio.errors", [errors]).labels == [
        '{"kind": "outage", "good": "10 s", "bad": "0.000001 s"}'
    ]


def test_a_sweep_of_a_file(base: Scenario, tmp_path: Path) -> None:
    base.save(tmp_path / "base.toml")
    assert airlane.sweep(tmp_path / "base.toml", runs=2).equals(airlane.sweep(base, runs=2))


def test_a_first_run_that_fails_is_not_hidden_by_the_bar(
    base: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_scenario: object, seed: int, runs: list[int]) -> None:
        raise RunError("a wheel came off", seed, runs[0])

    monkeypatch.setattr(_native, "simulate", fails)
    with pytest.raises(RunError, match="a wheel came off"):
        airlane.sweep(base, runs=1, progress=True, out=tmp_path)


def test_frames_are_pandas_too(whole: pl.DataFrame) -> None:
    pandas = whole.to_pandas()
    assert pandas["run"].tolist() == whole["run"].to_list()
    assert pandas["file.throughput_bps"].tolist() == whole["file.throughput_bps"].to_list()


def test_progress_is_shown_where_it_is_asked_for() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown, lines in (
        (Terminal(), None, True),
        (io.StringIO(), None, False),
        (io.StringIO(), True, True),
        (Terminal(), False, False),
    ):
        bar = Progress(shown, stream)
        bar.expect(4)
        bar.advance(1)
        bar.advance(3)
        bar.close()
        assert ("4/4 runs" in stream.getvalue()) == lines
        assert "\x1b[3" not in stream.getvalue()


def test_importing_is_cheap() -> None:
    heavy = ("polars", "pandas", "pyarrow", "distributed", "dask", "matplotlib", "numpy")
    code = f"import airlane, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
