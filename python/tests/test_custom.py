from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from lossy_world import world

import airlane
from airlane.custom import Host, Random


class Uniform:
    """Loses frames like `{ kind = "uniform", rate = 0.05 }`."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
        assert start_s < end_s
        assert len_bytes > 0
        return self.rng.random() < 0.05


@pytest.mark.parametrize("services", [True, False])
def test_a_model_with_the_draws_of_a_built_in_one_gives_its_run(
    tmp_path: Path, services: bool
) -> None:
    built_in = airlane.custom.run(world(tmp_path, services=services), seed=2, run=3)
    without = world(tmp_path, rate=0.0, services=services)
    ours = airlane.custom.run(without, error_models={"links.radio": Uniform}, seed=2, run=3)
    ours, built_in = ours.to_dict(), built_in.to_dict()
    assert ours.pop("scenario_hash").endswith("+custom")
    built_in.pop("scenario_hash")
    assert ours == built_in


def test_a_model_with_other_draws_loses_as_much(tmp_path: Path) -> None:
    class Bits(Uniform):
        def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
            return self.rng.bits() % 100 < 5

    scenario = world(tmp_path, rate=0.0)
    lost = offered = 0
    for run in range(8):
        result = airlane.custom.run(scenario, error_models={"links.radio.down": Bits}, run=run)
        radio = result.links["radio"]
        assert radio.up.channel["lost_air"].frames == 0
        lost += radio.down.channel["lost_air"].frames
        offered += radio.down.channel["offered"].frames
    # Four standard deviations of a binomial.
    assert abs(lost - 0.05 * offered) < 4 * (offered * 0.05 * 0.95) ** 0.5
    assert offered > 2000


class Echo:
    """Sends a request over TCP and a reply of the same length, five times, a second apart."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.asked_s = 0.0
        self.got = [0, 0]
        self.left = 5

    def on_start(self) -> None:
        self.on_timer()

    def on_timer(self) -> None:
        self.asked_s = self.host.now_s
        self.host.send(1, 600)

    def on_delivered(self, end: int, len_bytes: int, delay_s: float | None) -> None:
        assert delay_s is None
        self.got[end] += len_bytes
        if end == 0:
            self.host.send(0, len_bytes)
        elif self.got[1] % 600 == 0:
            self.host.record_response(self.host.now_s - self.asked_s)
            self.left -= 1
            if self.left:
                self.host.set_timer(1.0)
            else:
                self.host.finish()


def test_an_application(tmp_path: Path) -> None:
    result = airlane.custom.run(world(tmp_path), applications={"file": Echo})
    flow = result.flows["file"]
    assert (flow.app, flow.finished, flow.responses) == ("custom", True, 5)
    assert flow.delivered_bytes == 2 * 5 * 600
    # Two one-way delays of 51 ms, and 600 bytes at 64 kbit/s.
    assert flow.response_time_mean_s is not None
    assert flow.response_time_mean_s > 0.18
    again = airlane.custom.run(world(tmp_path), applications={"file": Echo})
    assert again.to_dict() == result.to_dict()


class Favour:
    interval_s = 1.0

    def __init__(self, weights: dict[str, float]) -> None:
        self.given = weights
        self.seen: list[dict[str, Any]] = []

    def weights(
        self, now_s: float, direction: str, services: list[dict[str, Any]]
    ) -> dict[str, float]:
        assert direction in ("down", "up")
        self.seen.extend(services)
        return self.given


def test_a_weight_policy(tmp_path: Path) -> None:
    policy = Favour({"tcp": 0.9, "voice": 0.1})
    airlane.custom.run(world(tmp_path), weights={"links.radio": policy})
    names = {service["name"] for service in policy.seen}
    assert {"tcp", "voice"} <= names
    assert any(s["name"] == "tcp" and s["rate"] == 0.9 for s in policy.seen)
    with pytest.raises(ValueError, match="does not have; its services are"):
        airlane.custom.run(world(tmp_path), weights={"links.radio": Favour({"fax": 1.0})})
    with pytest.raises(ValueError, match="-1 gives the service nothing"):
        airlane.custom.run(world(tmp_path), weights={"links.radio": Favour({"tcp": -1.0})})


def test_weights_in_any_mapping(tmp_path: Path) -> None:
    given = MappingProxyType({"tcp": 0.9, "voice": 0.1})
    policy = Favour(given)  # type: ignore[arg-type]
    airlane.custom.run(world(tmp_path), weights={"links.radio": policy})
    assert any(s["name"] == "tcp" and s["rate"] == 0.9 for s in policy.seen)
    with pytest.raises(TypeError, match=r"links\.radio: weights returned None"):
        airlane.custom.run(world(tmp_path), weights={"links.radio": Favour(None)})  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, "yes", 1])
def test_an_error_model_answers_with_a_bool(tmp_path: Path, answer: Any) -> None:  # noqa: ANN401
    class Odd(Uniform):
        def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
            return answer

    with pytest.raises(TypeError, match=r"links\.radio\.up: loses returned"):
        airlane.custom.run(world(tmp_path), error_models={"links.radio.up": Odd})


def test_an_error_model_may_answer_with_numpy(tmp_path: Path) -> None:
    class Drawn(Uniform):
        def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
            return np.float64(self.rng.random()) < 0.05  # type: ignore[return-value]

    lossless = world(tmp_path, rate=0.0)
    ours, numpys = (
        airlane.custom.run(lossless, error_models={"links.radio": model})
        for model in (Uniform, Drawn)
    )
    assert numpys == ours


class Misspelt(airlane.Probe):
    def on_frame_lots(self, event: airlane.Event) -> None: ...


class Good(airlane.Probe):
    def on_frame_lost(self, event: airlane.Event) -> None: ...


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        (object(), "no method for an event, such as .*on_frame_lost"),
        (airlane.Probe(), "no method for an event"),
        (Misspelt(), "no event for on_frame_lots; there are .*on_frame_lost"),
        (Good, r"write Good\(\)"),
    ],
)
def test_a_probe_that_would_see_nothing_is_refused(
    tmp_path: Path,
    probe: Any,  # noqa: ANN401
    message: str,
) -> None:
    with pytest.raises(TypeError, match=message):
        airlane.custom.run(world(tmp_path), probe=probe)


def test_a_method_may_be_given_to_a_probe(tmp_path: Path) -> None:
    seen: list[airlane.Event] = []
    probe = Good()
    probe.on_frame_lost = seen.append  # type: ignore[method-assign]
    airlane.custom.run(world(tmp_path), probe=probe)
    assert seen


class MyError(Exception):
    pass


def test_exceptions_reach_the_caller_unchanged(tmp_path: Path) -> None:
    error = MyError("from within")

    class Fails(Uniform):
        calls = 0

        def loses(self, start_s: float, end_s: float, len_bytes: int) -> bool:
            Fails.calls += 1
            if Fails.calls == 10:
                raise error
            return False

    class Probe(airlane.Probe):
        def on_frame_lost(self, event: dict[str, Any]) -> None:
            raise error

    def broken(_: Host) -> Echo:
        raise error

    scenario = world(tmp_path)
    for pieces in (
        {"error_models": {"links.radio": Fails}},
        {"applications": {"file": broken}},
        {"probe": Probe()},
    ):
        with pytest.raises(MyError) as caught:
            airlane.custom.run(scenario, **pieces)
        assert caught.value is error
    assert Fails.calls == 10, "the run ended there"


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ({"error_models": {"radio": Uniform}}, 'write "links.NAME"'),
        ({"error_models": {"links.cable": Uniform}}, "no link 'cable'"),
        ({"error_models": {"links.radio": Uniform, "links.radio.up": Uniform}}, "two models"),
        ({"applications": {"fax": Echo}}, "no flow 'fax'"),
        ({"weights": {"links.wired": Favour({})}}, "has no services"),
    ],
)
def test_pieces_without_a_place_are_refused(
    tmp_path: Path, pieces: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        airlane.custom.run(world(tmp_path), **pieces)
