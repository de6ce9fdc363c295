import tempfile
import threading
from pathlib import Path

import polars as pl
import pytest
from lossy_world import world

import airlane
from airlane import RunError, _native
from airlane.events import KINDS


def test_events_add_up_to_the_result(tmp_path: Path) -> None:
    scenario = world(tmp_path)
    events = airlane.events(scenario, seed=3)
    result = airlane.custom.run(scenario, seed=3).to_dict()
    assert events["time_ns"].is_sorted()
    assert set(events["event"].cast(pl.String).unique()) <= set(KINDS)
    # Events during the drain do not count in the results.
    until = events.filter(pl.col("time_ns") <= result["stopped_s"] * 1e9)
    by_kind = dict(until.group_by(pl.col("event").cast(pl.String)).len().iter_rows())
    channels = [link[way]["channel"] for link in result["links"] for way in ("down", "up")]
    assert by_kind["frame-lost"] == sum(c["lost_air"]["frames"] for c in channels) > 10
    assert by_kind["frame-received"] == sum(c["delivered"]["frames"] for c in channels)
    timeouts = sum(flow.get("timeouts", 0) for flow in result["flows"])
    assert by_kind.get("timeout", 0) == timeouts


def test_filters(tmp_path: Path) -> None:
    scenario = world(tmp_path)
    some = airlane.events(scenario, kinds=["frame-lost"], links=["radio"], flows=["voice"])
    assert some.height > 0
    for column, value in [("event", "frame-lost"), ("link", "radio"), ("flow", "voice")]:
        assert some[column].cast(pl.String).unique().to_list() == [value]
    everything = airlane.events(scenario)
    same = everything.filter(
        (pl.col("event") == "frame-lost")
        & (pl.col("link") == "radio")
        & (pl.col("flow") == "voice")
    )
    assert some["time_ns"].to_list() == same["time_ns"].to_list()
    assert airlane.events(scenario, kinds="frame-lost", links="radio", flows="voice").equals(some)
    with pytest.raises(TypeError, match=r"^flows=5: a name"):
        airlane.events(scenario, flows=5)  # type: ignore[arg-type]
    first = airlane.events(scenario, limit=50)
    assert first["time_ns"].to_list() == everything["time_ns"].head(50).to_list()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"kinds": ["frame-gone"]}, 'no event "frame-gone".*frame-lost'),
        ({"flows": ["fax"]}, 'no flow "fax".*file, voice'),
        ({"links": ["cable"]}, 'no link "cable".*radio, wired'),
    ],
)
def test_unknown_names_say_what_there_is(
    tmp_path: Path, wanted: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        airlane.events(world(tmp_path), **wanted)


def test_runs_and_seeds_differ_and_threads_do_not_matter(tmp_path: Path) -> None:
    scenario = world(tmp_path)
    alone = airlane.events(scenario, seed=5, run=1)
    assert not alone.equals(airlane.events(scenario, seed=5, run=2))
    found: list[pl.DataFrame] = []
    threads = [
        threading.Thread(target=lambda: found.append(airlane.events(scenario, seed=5, run=1)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(alone.equals(other) for other in found)


def test_a_probe_sees_the_events_of_its_methods(tmp_path: Path) -> None:
    class Losses(airlane.Probe):
        def __init__(self) -> None:
            self.seen: list[int] = []

        def on_frame_lost(self, event: airlane.Event) -> None:
            assert event["event"] == "frame-lost"
            self.seen.append(event["time_ns"])

    scenario = world(tmp_path)
    probe = Losses()
    watched = airlane.custom.run(scenario, probe=probe)
    assert watched == airlane.custom.run(scenario)
    assert probe.seen == airlane.events(scenario, kinds=["frame-lost"])["time_ns"].to_list()


def test_an_event_has_a_type_with_all_columns(tmp_path: Path) -> None:
    columns = airlane.events(world(tmp_path), limit=1).columns
    assert list(airlane.Event.__annotations__) == columns
    shown: set[str] = set()

    class All(airlane.Probe):
        def on_frame_sent(self, event: airlane.Event) -> None:
            shown.update(event)

        def on_tcp_state(self, event: airlane.Event) -> None:
            shown.update(event)

    airlane.custom.run(world(tmp_path), probe=All())
    assert {"departs_ns", "cwnd_segments"} < shown <= set(columns)


def test_a_probe_has_a_method_for_each_kind() -> None:
    methods = {name for name in dir(airlane.Probe) if name.startswith("on_")}
    assert methods == {"on_" + kind.replace("-", "_") for kind in KINDS}


def test_a_watched_run_that_fails_says_how_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_core: object, seed: int, run: int, *_filter: object) -> None:
        raise RunError("a wheel came off", seed, run)

    monkeypatch.setattr(_native, "events", fails)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RunError, match="a wheel came off") as caught:
        airlane.events(world(tmp_path), seed=3, run=2)
    assert "seed=3, run=2" in str(caught.value).splitlines()[-1]
