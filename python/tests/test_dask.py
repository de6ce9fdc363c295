import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask
import pytest
from conftest import RATE
from distributed import Client, LocalCluster

import airlane
from airlane import AirlaneError, Scenario
from airlane.custom import Pieces, Random


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster


def test_classes_of_a_notebook_reach_the_workers(base: Scenario, cluster: LocalCluster) -> None:
    class Bursts:
        """Not part of a module, like a class in a notebook."""

        def __init__(self, rng: Random, part: float) -> None:
            self.part = part

        def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
            return end_s % 1.0 < self.part

    pieces = {
        f"{part:.0%}": Pieces(error_models={"links.radio": partial(Bursts, part=part)})
        for part in (0.1, 0.2)
    }
    sweep: dict[str, Any] = {"vary": {"bursts": pieces}, "runs": 3}
    with Client(cluster) as client:  # type: ignore[no-untyped-call]
        frame = airlane.sweep(base, executor=client, **sweep)
    assert frame.equals(airlane.sweep(base, executor=1, **sweep))


def test_a_killed_worker_changes_nothing(
    base: Scenario, cluster: LocalCluster, tmp_path: Path
) -> None:
    sweep: dict[str, Any] = {"vary": {RATE: [0.02, 0.05, 0.1]}, "runs": 40}
    longer = base.with_(duration="300 s")
    expected = airlane.sweep(longer, **sweep)
    victim = cluster.workers[0].pid
    killed_s: list[float] = []

    def kill() -> None:
        results = tmp_path / "runs.jsonl"
        while not results.exists() or results.stat().st_size == 0:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)
        killed_s.append(time.monotonic())

    killer = threading.Thread(target=kill)
    with Client(cluster) as client:  # type: ignore[no-untyped-call]
        killer.start()
        frame = airlane.sweep(longer, executor=client, out=tmp_path, **sweep)
        done_s = time.monotonic()
        killer.join()
    assert killed_s
    assert killed_s[0] < done_s
    assert frame.equals(expected)
    # No run is in the results twice.
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert len({(line["scenario"], line["run"]) for line in lines}) == len(lines) == 120


def test_a_scheduler_by_its_address(base: Scenario, cluster: LocalCluster) -> None:
    address = cluster.scheduler_address.replace("tcp://", "dask://")
    expected = airlane.sweep(base, runs=5)
    assert airlane.sweep(base, runs=5, executor=address).equals(expected)


def test_an_address_without_a_scheduler(base: Scenario) -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}),
        pytest.raises(AirlaneError, match=r"127\.0\.0\.1:1': no scheduler answers"),
    ):
        airlane.sweep(base, runs=5, executor="dask://127.0.0.1:1")


def test_a_cluster_of_its_own(base: Scenario) -> None:
    assert airlane.sweep(base, runs=3, executor="dask").equals(airlane.sweep(base, runs=3))


def test_a_cluster_stops_at_the_same_run_as_one_process(
    base: Scenario, cluster: LocalCluster
) -> None:
    sweep: dict[str, Any] = {
        "vary": {RATE: [0.05, 0.1]},
        "until": airlane.Precision("voice.loss_ratio", relative=0.2, least=3, most=60),
    }
    expected = airlane.sweep(base, **sweep)
    assert 6 < len(expected) < 120
    with Client(cluster) as client:  # type: ignore[no-untyped-call]
        assert airlane.sweep(base, executor=client, **sweep).equals(expected)


def test_a_run_that_fails_on_a_worker_says_how_it_is_repeated(
    base: Scenario, cluster: LocalCluster, tmp_path: Path
) -> None:
    def break_down() -> None:
        from airlane import _native

        def simulate(_core: object, seed: int, runs: list[int]) -> None:
            raise airlane.RunError("a wheel came off", seed, runs[-1])

        _native.kept, _native.simulate = _native.simulate, simulate  # type: ignore[attr-defined]

    def mend() -> None:
        from airlane import _native

        _native.simulate = _native.kept  # type: ignore[attr-defined]

    with Client(cluster) as client:  # type: ignore[no-untyped-call]
        client.run(break_down)
        try:
            with pytest.raises(airlane.RunError, match="a wheel came off") as caught:
                airlane.sweep(base, runs=1, seed=8, executor=client, out=tmp_path)
        finally:
            client.run(mend)
    assert (caught.value.seed, caught.value.run) == (8, 0)
    assert "airlane.run(" in str(caught.value).splitlines()[-1]


def test_without_dask_the_error_says_what_to_install(
    base: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(AirlaneError, match=r'pip install "airlane\[dask\]"'):
        airlane.sweep(base, executor="dask")
