"""Sweeps that vary user-defined pieces."""

import functools
import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lossy_world import world

import airlane
from airlane import AirlaneWarning, RunError, custom
from airlane._identity import digest
from airlane.custom import Host, Pieces, Random

LOSS = "links.radio.errors.rate"


class Bursts:
    """Loses frames that end in the first part of each second."""

    def __init__(self, rng: Random, part: float = 0.1) -> None:
        self.part = part

    def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
        return end_s % 1.0 < self.part


class Beacon:
    """Sends a datagram four times a second."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def on_start(self) -> None:
        self.on_timer()

    def on_delivered(self, end: int, len_bytes: int, delay_s: float | None) -> None: ...

    def on_timer(self) -> None:
        self.host.send(0, 100)
        self.host.set_timer(0.25)


class Alternates:
    """Gives each service most of the link in turn; it remembers whose turn it is."""

    interval_s = 1.0

    def __init__(self) -> None:
        self.turn = 0

    def weights(
        self, now_s: float, direction: str, services: list[dict[str, Any]]
    ) -> dict[str, float]:
        self.turn += 1
        return {s["name"]: 9.0 if s["number"] == self.turn % 3 else 1.0 for s in services}


PIECES = {
    "as it is": {},
    "bursts": Pieces(error_models={"links.radio.down": Bursts}),
    "longer bursts": Pieces(error_models={"links.radio.down": functools.partial(Bursts, part=0.3)}),
    "all": Pieces(
        error_models={"links.radio": Bursts},
        applications={"voice": Beacon},
        weights={"links.radio": Alternates()},
        values={"links.radio.delay": "20 ms"},
    ),
}
VARY: dict[str, Any] = {"pieces": PIECES, "duration": ["5 s", "10 s"]}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def whole(file: Path) -> pl.DataFrame:
    return airlane.sweep(file, vary=VARY, runs=3, executor=1)


def test_a_row_is_what_the_run_alone_gives(file: Path, whole: pl.DataFrame) -> None:
    assert whole.height == len(PIECES) * 2 * 3
    base = airlane.Scenario.load(file)
    for row in whole.iter_rows(named=True):
        pieces = PIECES[row["pieces"]]
        point = base.with_(duration=row["duration"])
        if isinstance(pieces, Pieces):
            alone = airlane.custom.run(
                point.with_(pieces.values),
                error_models=pieces.error_models,
                applications=pieces.applications,
                # Every run of a sweep has a policy that no other run has changed.
                weights={"links.radio": Alternates()} if pieces.weights else {},
                run=row["run"],
            )
            assert row["scenario_hash"].startswith(
                alone.scenario_hash.removesuffix("+custom") + "+"
            )
        else:
            alone = airlane.run(point, run=row["run"])
            assert row["scenario_hash"] == alone.scenario_hash
        expected = dict(alone.frame().row(0, named=True))
        del expected["scenario_hash"]
        assert {name: row[name] for name in expected} == expected
    assert whole["scenario_hash"].n_unique() == len(PIECES) * 2


def test_the_executor_does_not_matter(file: Path, whole: pl.DataFrame) -> None:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as processes:
        for executor in (3, processes):
            again = airlane.sweep(file, vary=VARY, runs=3, executor=executor)
            assert again.equals(whole)


def test_a_sweep_resumes_unless_the_code_changed(
    file: Path, whole: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    airlane.sweep(file, vary=VARY, runs=2, out=tmp_path)
    ran = []
    real = custom.simulate

    def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        ran.append(args[3])
        return real(*args, **kwargs)

    monkeypatch.setattr(custom, "simulate", counted)
    assert airlane.sweep(file, vary=VARY, runs=3, executor=1, out=tmp_path).equals(whole)
    assert ran == [2] * 6, "the third runs of three pieces at two durations"
    ran.clear()
    monkeypatch.setattr(Bursts, "loses", lambda self, start_s, end_s, len_bytes: False)
    changed = airlane.sweep(file, vary=VARY, runs=3, executor=1, out=tmp_path)
    assert len(ran) == 3 * 6
    lost = changed.filter(pieces="bursts")["radio.down.lost_frames"]
    assert lost.to_list() == [0] * 6


def test_pieces_that_differ_in_values_alone_are_told_apart() -> None:
    def made(part: float) -> Callable[[Random], Bursts]:
        return lambda rng: Bursts(rng, part)

    assert digest(made(0.1)) == digest(made(0.1)) != digest(made(0.2))
    assert digest(functools.partial(Bursts, part=0.1)) != digest(
        functools.partial(Bursts, part=0.2)
    )
    assert digest(Alternates()) == digest(Alternates())
    later = Alternates()
    later.turn = 5
    assert digest(later) != digest(Alternates())
    assert digest({"a": {1, 2, 3}}) == digest({"a": {3, 2, 1}})


FACTOR = 1.0


def scaled() -> float:
    return FACTOR


class UsesGlobals(Bursts):
    def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
        return end_s % scaled() < 0.1


def test_globals_used_by_the_code_are_part_of_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(UsesGlobals)
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert digest(UsesGlobals) != before


def test_indistinguishable_pieces_are_refused(file: Path) -> None:
    class Holds(Alternates):
        def __init__(self) -> None:
            super().__init__()
            self.numbers = (n for n in range(10))

    with pytest.raises(TypeError, match="nothing tells whether it is the same another time"):
        digest(Holds())


def test_an_exception_in_a_piece_names_the_run_and_how_to_repeat_it(
    file: Path, tmp_path: Path
) -> None:
    class Fails(Bursts):
        def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
            raise ArithmeticError("no such loss")

    vary: dict[str, Any] = {"pieces": {"mine": Pieces(error_models={"links.radio": Fails})}}
    with pytest.raises(RunError) as caught:
        airlane.sweep(file, vary=vary, runs=2, executor=1, out=tmp_path)
    told = str(caught.value)
    assert "ArithmeticError: no such loss" in told
    assert "in loses" in told, "where it was raised"
    assert "airlane.custom.run(" in told
    run = caught.value.run
    assert told.endswith(f"error_models={{'links.radio': Fails}}, seed=1, run={run})")


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ({"error_models": Bursts}, r"error_models=.*Bursts.*: a dictionary, such as"),
        ({"error_models": {"links.radio": 0.05}}, r"error_models\['links.radio'\]=0.05"),
        ({"error_models": {"links.radio": Beacon}}, "this class has no method loses"),
        (
            {"error_models": {"links.radio": Alternates()}},
            "write what makes one for each run, such as a class",
        ),
        ({"error_models": {"links.radio": Bursts(None)}}, "such as the class Bursts"),  # type: ignore[arg-type]
        ({"applications": {"voice": Bursts}}, r"applications\['voice'\]=Bursts: .* on_start"),
        ({"weights": {"links.radio": Alternates}}, r"write Alternates\(\)"),
        ({"weights": {"links.radio": Bursts}}, r"weights\['links.radio'\]=Bursts"),
    ],
)
def test_invalid_pieces_are_refused_by_name(
    file: Path, pieces: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Pieces(**pieces)
    with pytest.raises(TypeError, match=message):
        airlane.custom.run(file, **pieces)


def test_invalid_models_are_refused_by_name(file: Path) -> None:
    with pytest.raises(TypeError, match=r"links\.radio\.down: 7 has no method loses"):
        airlane.custom.run(file, error_models={"links.radio.down": lambda _: 7})  # type: ignore[dict-item,return-value]
    with pytest.raises(TypeError, match=r"voice: 7 has no method on_start"):
        airlane.custom.run(file, applications={"voice": lambda _: 7})  # type: ignore[dict-item,return-value]


def test_a_piece_without_a_place_is_refused_before_anything_runs(file: Path) -> None:
    for pieces, message in (
        (Pieces(error_models={"links.raido": Bursts}), "no link 'raido'; did you mean 'radio'?"),
        (Pieces(applications={"fax": Beacon}), "no flow 'fax'; there are: file, voice"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            airlane.sweep(file, vary={"pieces": {"mine": pieces}}, runs=1)


@pytest.mark.parametrize(
    ("pieces", "other", "words"),
    [
        (Pieces(error_models={"links.radio": Bursts}), LOSS, "error_models"),
        (Pieces(applications={"voice": Beacon}), "flows[voice].app.rate", "applications"),
        (Pieces(values={"duration": "5 s"}), "duration", "duration"),
    ],
)
def test_an_axis_that_a_piece_overwrites_is_refused(
    file: Path, pieces: Pieces, other: str, words: str
) -> None:
    value = {"duration": "9 s", "flows[voice].app.rate": "9 kbit/s", LOSS: 0.01}[other]
    axes: dict[str, Any] = {"pieces": {"mine": pieces}, other: [value]}
    for vary in (axes, dict(reversed(axes.items()))):
        with pytest.raises(ValueError, match=f"sets .*{words}.*one overwrites the other"):
            airlane.sweep(file, vary=vary, runs=1)


def test_keys_that_no_piece_replaces_may_vary(file: Path) -> None:
    down = Pieces(error_models={"links.radio.down": Bursts}, applications={"voice": Beacon})
    vary: dict[str, Any] = {
        "pieces": {"mine": down},
        LOSS: [0.0, 0.5],
        "flows[voice].app.packet": ["50 B", "100 B"],
        "duration": ["5 s"],
    }
    frame = airlane.sweep(file, vary=vary, runs=1)
    up = frame.select(LOSS, "radio.up.lost_frames").rows()
    assert [lost > 0 for _, lost in up] == [False, False, True, True]
    assert frame["radio.down.lost_frames"].min() > 0  # type: ignore[operator]


def test_services_that_nothing_reaches_are_named_once(file: Path, tmp_path: Path) -> None:
    base = airlane.Scenario.load(file).with_({"links.radio.classes": []}, duration="2 s")
    vary: dict[str, Any] = {LOSS: [0.0, 0.1], "links.radio.delay": ["1 ms", "9 ms"]}
    with pytest.warns(AirlaneWarning, match="match no traffic") as caught:
        airlane.sweep(base, vary=vary, runs=2)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    voice = {"match": {"dscp": "EF"}, "service": "voice"}
    classes = {"none": {"links.radio.classes": []}, "one": {"links.radio.classes": [voice]}}
    with pytest.warns(AirlaneWarning, match="at 1 of 2 points") as caught:
        airlane.sweep(base, vary={"classes": classes}, runs=1)
    assert len(caught) == 2


def test_an_asterisk_in_a_path_stands_for_every_entry(file: Path) -> None:
    base = airlane.Scenario.load(file)
    scheme = {"kind": "default"}
    every = base.set("links.*.services[*].scheme", scheme)
    each = base.with_({f"links.radio.services[{n}].scheme": scheme for n in (0, 1)})
    assert every.hash == each.hash
    with pytest.raises(airlane.ScenarioError, match="nothing here fits"):
        base.set("links.*.services[x*].rate", 0.5)
    axes: dict[str, Any] = {"links.*.delay": ["1 ms"], "links.radio.delay": ["2 ms"]}
    with pytest.raises(ValueError, match="one overwrites the other"):
        airlane.sweep(base, vary=axes, runs=1)


def test_a_misspelt_name_is_corrected(file: Path) -> None:
    result = airlane.run(airlane.Scenario.load(file).with_(duration="2 s"))
    with pytest.raises(KeyError) as caught:
        result.flows["vioce"]
    assert str(caught.value) == "there is no flow 'vioce'; did you mean 'voice'?"
    with pytest.raises(KeyError, match=r"did you mean 'voice\.loss_ratio'"):
        result.metrics["voice.los_ratio"]
    assert "radio" in result.links
    assert result.links.get("cable") is None
    for metric, meant in (
        ("vioce.loss_ratio", "'voice.loss_ratio'?"),
        ("vioce.*", "'voice.*'?"),
        ("voice.throughput", "'voice.throughput_bps'"),
    ):
        with pytest.raises(ValueError, match="did you mean") as told:
            airlane.sweep(file, runs=1, metrics=metric)
        assert meant in str(told.value)
    with pytest.raises(ValueError, match=r"which begin with: .*file") as told:
        airlane.sweep(file, runs=1, metrics="zzz")
    assert len(str(told.value)) < 200
