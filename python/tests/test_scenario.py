import datetime
import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import RATE, SCENARIOS
from hypothesis import given
from hypothesis import strategies as st

import airlane
from airlane import AirlaneError, Scenario, ScenarioError, Value

ALL = sorted(SCENARIOS.glob("*.toml"))
BASE = Scenario.load(SCENARIOS / "three-applications.toml")
VOICE = "links.radoi.services[voice].rate"


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.stem)
def test_every_form_gives_the_same_scenario(file: Path) -> None:
    scenario = Scenario.load(file)
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    assert Scenario(scenario.to_dict()) == scenario
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert scenario.resolved().hash == scenario.hash
    assert scenario.resolved().resolved() == scenario.resolved()


def test_scenarios_come_with_the_package() -> None:
    assert Scenario.shipped("three-applications").to_toml() == BASE.to_toml()
    with pytest.raises(ValueError, match=r"no such scenario; one of .*'three-applications'"):
        Scenario.shipped("four-applications")


def test_values_are_set_by_dotted_path() -> None:
    changed = BASE.with_(
        {
            RATE: np.float64(0.25),
            "links.radio.delay": datetime.timedelta(milliseconds=12.5),
            "links.radio.services[voice].scheme": {"kind": "rlp-oos", "retries": np.int64(2)},
            "nodes.base.address": "10.0.0.77",
        },
        duration="5 s",
    )
    table = changed.to_dict()
    radio = table["links"]["radio"]
    assert radio["errors"] == {"kind": "uniform", "rate": 0.25}
    assert radio["delay"] == "12.5 ms"
    voice = next(service for service in radio["services"] if service["name"] == "voice")
    assert voice["scheme"]["retries"] == 2
    assert (table["duration"], table["nodes"]["base"]["address"]) == ("5 s", "10.0.0.77")
    assert changed.hash != BASE.hash
    assert changed.set("seed", 9).hash == changed.hash
    assert BASE.to_dict()["duration"] == "2000 s"


def test_values_that_only_fit_together_are_set_together() -> None:
    errors = {"links.radio.errors.kind": "two-state", RATE: 0.1}
    with pytest.raises(ScenarioError, match="two-state"):
        BASE.with_(errors)
    both = BASE.with_({"links.radio.rate": "28.8 kbit/s", "links.radio.frame": "100 B"})
    assert both.to_dict()["links"]["radio"]["frame"] == "100 B"


def test_a_number_too_large_is_named_wherever_it_stands() -> None:
    with pytest.raises(ScenarioError, match=r"^seed: \d+ does not fit") as caught:
        Scenario({"seed": 2**70})
    assert (caught.value.path, caught.value.value) == ("seed", 2**70)
    with pytest.raises(TypeError, match=r"links\.radio\.ends\[1\]: set has no form"):
        Scenario({"links": {"radio": {"ends": ["a", {1}]}}})


@pytest.mark.parametrize(
    ("path", "value", "culprit", "found", "help_"),
    [
        (RATE, 1.5, RATE, 1.5, "between 0 and 1"),
        (RATE, 2**70, RATE, 2**70, "64 bits"),
        (RATE, "often", RATE, "often", "write a number"),
        ("links.radio.rate", 20, "links.radio.rate", 20, "unit"),
        ("links.radio.rate", "2 Mbps", "links.radio.rate", "2 Mbps", "Mbit/s"),
        ("links.radio.nonsense", 1, "links.radio.nonsense", 1, "unknown key"),
        ("duration", [1], "duration", [1], "100 ms"),
        ("links.radio.services[9].rate", 1, "links.radio.services[9].rate", 1, "9"),
        ("links.radoi.rate", "1 bit/s", "links.radoi.rate", "1 bit/s", "there are: radio, wired"),
        (VOICE, 1, VOICE, 1, "there are: radio, wired"),
        ("until", "nobody", "until", "nobody", "flow"),
        ("", 1, "", 1, "path of keys"),
    ],
)
def test_an_error_names_path_and_value(
    path: str, value: object, culprit: str, found: object, help_: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        BASE.set(path, value)  # type: ignore[arg-type]
    error = caught.value
    assert (error.path, error.value) == (culprit, found)
    assert help_ in str(error)
    assert isinstance(error, AirlaneError)
    assert isinstance(error, ValueError)
    again = pickle.loads(pickle.dumps(error))
    assert (again.path, again.value, str(again)) == (culprit, found, str(error))


def test_a_link_can_be_made_by_its_values() -> None:
    spare = {"rate": "1 Mbit/s", "delay": "1 ms", "ends": ["base", "mobile"]}
    made = BASE.with_({f"links.spare.{key}": value for key, value in spare.items()})
    assert made.to_dict()["links"]["spare"]["rate"] == "1 Mbit/s"


def test_an_error_in_a_file_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    text = (SCENARIOS / "three-applications.toml").read_text()
    file.write_text(text.replace("rate = 0.05", "rate = 5"))
    with pytest.raises(ScenarioError, match=r"wrong\.toml:\d+:\d+: 5 is out of range") as caught:
        Scenario.load(file)
    assert (caught.value.path, caught.value.value) == (RATE, 5)


@given(st.one_of(st.floats(), st.integers(), st.text(), st.booleans(), st.lists(st.integers(0, 9))))
def test_any_value_is_set_or_refused(value: float | str | list[int]) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        changed = BASE.set(RATE, value)
        assert changed.to_dict()["links"]["radio"]["errors"]["rate"] == value
    else:
        with pytest.raises(ScenarioError) as caught:
            BASE.set(RATE, value)
        assert caught.value.path.startswith("links.radio.errors")


@given(st.text())
def test_any_path_is_followed_or_refused(path: str) -> None:
    with pytest.raises(ScenarioError):
        BASE.set(path, {"no": "scenario", "has": "this"})


@given(st.timedeltas(min_value=datetime.timedelta(0), max_value=datetime.timedelta(days=30)))
def test_times_are_exact(time: datetime.timedelta) -> None:
    drain = BASE.with_(drain=time).to_dict()["drain"]
    amount, unit = drain.split()
    scale = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0.001}[unit]
    assert round(float(amount) * scale) == time // datetime.timedelta(microseconds=1)


def test_what_has_no_form_in_toml_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form in a scenario"):
        BASE.set(RATE, object())  # type: ignore[arg-type]


@pytest.mark.parametrize("table", [[1], "wlan.toml", None])
def test_a_scenario_is_made_of_a_dictionary(table: object) -> None:
    with pytest.raises(TypeError, match=r"^table=.*a dictionary; Scenario\.load"):
        Scenario(table)  # type: ignore[arg-type]


def test_files_that_are_not_there_are_os_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Scenario.load(tmp_path / "none.toml")
    missing = {"kind": "trace", "file": "none.trace"}
    with pytest.raises(FileNotFoundError) as caught:
        Scenario.load(SCENARIOS / "three-applications.toml").set("links.radio.errors", missing)
    assert str(caught.value.filename).endswith("none.trace")


def test_a_scenario_carries_the_files_that_it_names(tmp_path: Path) -> None:
    built_in = Path(__file__).parents[2] / "crates/world/sim/data/http-mah"
    tables = tmp_path / "tables"
    tables.mkdir()
    for table in built_in.glob("*.cdf"):
        (tables / table.name).write_bytes(table.read_bytes())
    web = Scenario.load(SCENARIOS / "web-cellular-lan1.toml").to_dict()
    flow = next(flow for flow in web["flows"] if flow["app"]["kind"] == "web")
    flow["app"] |= {"distributions": "tables", "count": 1}
    scenario = Scenario(web, folder=tmp_path)
    for table in tables.iterdir():
        table.unlink()
    there = pickle.loads(pickle.dumps(scenario))
    assert airlane.run(there) == airlane.run(scenario)
    there.save(tmp_path / "again.toml")
    assert Scenario.load(tmp_path / "again.toml").hash == scenario.hash


@pytest.fixture
def sends(tmp_path: Path) -> Path:
    """Times at which a link may send."""
    file = tmp_path / "a" / "link.trace"
    file.parent.mkdir()
    file.write_text("1\n2\n")
    return file


def sent_by(name: str) -> dict[str, Value]:
    return {"links.radio.rate": {"kind": "opportunities", "file": name}}


def test_a_file_with_an_absolute_name_is_not_written(sends: Path, tmp_path: Path) -> None:
    scenario = BASE.with_(sent_by(str(sends)))
    sends.write_text("1\n9\n")
    scenario.save(tmp_path / "mine.toml")
    assert sends.read_text() == "1\n9\n"
    assert f'"{sends}"' in (tmp_path / "mine.toml").read_text()


def test_no_file_is_written_outside_of_the_folder(sends: Path, tmp_path: Path) -> None:
    mine = tmp_path / "a" / "b" / "mine.toml"
    mine.parent.mkdir()
    scenario = Scenario(BASE.to_dict(), folder=mine.parent).with_(sent_by("../link.trace"))
    sends.unlink()
    with pytest.raises(ValueError, match=r"mine\.toml: .* '\.\./link\.trace', .*absolute path"):
        scenario.save(mine)
    assert [file.name for file in sends.parent.iterdir()] == ["b"]
    assert not any(mine.parent.iterdir())
    # A file that it no longer names does not matter.
    scenario.set("links.radio.rate", "1 Mbit/s").save(mine)
    assert [file.name for file in mine.parent.iterdir()] == ["mine.toml"]


def test_arrays_are_lists() -> None:
    scenario = BASE.set("links.radio.ends", np.array(["base", "mobile"]))  # type: ignore[arg-type]
    assert scenario == BASE.set("links.radio.ends", ["base", "mobile"])


def test_a_value_that_no_file_could_have_is_named_by_its_path(base: Scenario) -> None:
    with pytest.raises(TypeError, match=r"^links\.radio\.rate: "):
        base.set("links.radio.rate", object())  # type: ignore[arg-type]
