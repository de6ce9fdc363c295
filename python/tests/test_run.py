import json
import math
import pickle
import shlex
import subprocess
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from conftest import SCENARIOS

import airlane
from airlane import Scenario, _native
from airlane._again import failed

# `airlane sim run scenarios/conferencing-cellular-lan1.toml --set 'duration=20 s' --seed 7 --json`
GOLDEN = Path(__file__).parent / "data/conferencing.json"


def test_a_file_is_as_good_as_its_scenario() -> None:
    file = SCENARIOS / "conferencing-cellular-lan1.toml"
    assert airlane.run(file, seed=7) == airlane.run(Scenario.load(file), seed=7)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 2**64}, {"run": -1}])
def test_a_number_out_of_range_is_named(wrong: dict[str, int]) -> None:
    scenario = Scenario.load(SCENARIOS / "conferencing-cellular-lan1.toml")
    ((name, value),) = wrong.items()
    for simulate in (airlane.run, airlane.events, airlane.custom.run):
        with pytest.raises(ValueError, match=f"{name}={value}: 0 to"):
            simulate(scenario, **wrong)


def test_a_run_that_fails_says_how_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scenario = Scenario.load(SCENARIOS / "conferencing-cellular-lan1.toml").set("duration", "20 s")
    expected = airlane.run(scenario, seed=3, run=2)

    def fails(scenario: object, seed: int, run: int, over_time_s: None) -> None:
        raise airlane.RunError("a wheel came off", seed, run)

    monkeypatch.setattr(_native, "run", fails)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(airlane.RunError, match="a wheel came off") as caught:
        airlane.run(scenario, seed=3, run=2)
    command = shlex.split(str(caught.value).splitlines()[-1])
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.strip() == repr(expected)
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("airlane-failed-")


def test_an_unsavable_scenario_does_not_hide_why_the_run_failed(
    base: Scenario, tmp_path: Path
) -> None:
    error = failed("a wheel came off", base, 3, 2, tmp_path / "none")
    assert (error.seed, error.run) == (3, 2)
    assert "a wheel came off\nthe scenario could not be kept: " in str(error)
    assert str(tmp_path / "none") in str(error)
    assert "airlane.run(" not in str(error)


def test_the_result_is_that_of_the_command_line() -> None:
    scenario = Scenario.load(SCENARIOS / "conferencing-cellular-lan1.toml")
    result = airlane.run(scenario.with_(duration="20 s"), seed=7)
    assert result.to_dict() == json.loads(GOLDEN.read_text())["runs"][0]


def test_throughput_over_time_sums_to_the_delivered_bytes(base: Scenario) -> None:
    plain, kept = airlane.run(base), airlane.run(base, over_time_s=3)
    for name, flow in kept.flows.items():
        over_time = flow.over_time
        assert over_time is not None
        assert over_time["interval_s"] == 3
        bps = over_time["throughput_bps"]
        assert len(bps) == 7
        bits = 3 * sum(bps[:-1]) + 2 * bps[-1]
        assert bits == pytest.approx(8 * flow.delivered_bytes)
        assert flow.delivered_bytes == plain.flows[name].delivered_bytes > 0
        assert plain.flows[name].over_time is None
    for wrong in (0, -1, 1e-9, math.nan, math.inf):
        with pytest.raises(ValueError, match="over_time_s"):
            airlane.run(base, over_time_s=wrong)


def as_said(value: object) -> object:
    """A typed result without what the JSON tree leaves out: None values and empty lists."""
    if isinstance(value, dict):
        return {
            name: as_said(v) for name, v in value.items() if v is not None and v not in ((), [])
        }
    if isinstance(value, (list, tuple)):
        return [as_said(v) for v in value]
    return value


@pytest.mark.parametrize("file", sorted(SCENARIOS.glob("*.toml")), ids=lambda file: file.stem)
def test_the_typed_result_has_every_field_of_the_tree(file: Path) -> None:
    result = airlane.run(Scenario.load(file).with_(duration="2 s"), run=1)
    tree = result.to_dict()
    assert (result.scenario_hash, result.seed, result.run) == (tree["scenario_hash"], 1, 1)
    for flow in tree["flows"]:
        typed = asdict(result.flows[flow["name"]])
        assert as_said(typed) == as_said(flow)
    for link in tree["links"]:
        for way in ("down", "up"):
            direction = getattr(result.links[link["name"]], way)
            counts = {name: asdict(count) for name, count in direction.channel.items()}
            assert counts == link[way]["channel"]
            for service in link[way].get("services", []):
                typed = asdict(direction.services[service["name"]])
                typed["snoop"] = list(typed["snoop"])
                assert {k: v for k, v in typed.items() if v not in (None, [])} == service
    for radio in tree.get("radios", []):
        typed = result.radios[radio["name"]]
        assert (typed.busy_periods, typed.collisions) == (
            radio["busy_periods"],
            radio["collisions"],
        )
        assert [asdict(station) for station in typed.stations.values()] == radio["stations"]
    assert result.metrics["events"] == tree["events"] == result.events
    assert pickle.loads(pickle.dumps(result)) == result


def test_seed_and_run_decide(base: Scenario) -> None:
    assert airlane.run(base, run=3) == airlane.run(base, seed=base.seed, run=3)
    results = [airlane.run(base, seed=seed, run=run) for seed in (1, 2) for run in (0, 1)]
    assert len({result.to_json() for result in results}) == 4


def test_metrics_have_a_frame(base: Scenario) -> None:
    result = airlane.run(base)
    row = result.frame().row(0, named=True)
    assert row["file.throughput_bps"] == result.flows["file"].throughput_bps
    lost = result.links["radio"].down.channel["lost_air"].frames
    assert row["radio.down.lost_frames"] == result.metrics["radio.down.lost_frames"] == lost > 0
    assert "file: throughput_bps=" in repr(result)


def test_a_run_does_not_block_other_threads(base: Scenario) -> None:
    long = base.with_(duration="3000 s")
    ticks, stop = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            time.sleep(0.001)
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    meanwhile: list[int] = []
    try:
        # A busy machine may make the thread wait for the whole of one call, but not of all calls.
        while max(meanwhile, default=0) <= 3 and len(meanwhile) < 100:
            before = ticks
            airlane.run(long)
            meanwhile.append(ticks - before)
    finally:
        stop.set()
        thread.join()
    # One tick may happen outside of a call; while the interpreter is held, there are no others.
    assert max(meanwhile) > 3
