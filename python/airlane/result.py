"""One run and its results."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from airlane import _native
from airlane._again import failed
from airlane._check import natural
from airlane._names import Named
from airlane.errors import AirlaneWarning, RunError
from airlane.scenario import ScenarioSource, read

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Count",
    "DirectionResult",
    "FlowResult",
    "FlowService",
    "LinkResult",
    "RadioResult",
    "RunResult",
    "ServiceResult",
    "ServiceShare",
    "StationResult",
    "run",
]


@dataclass(frozen=True, slots=True)
class ServiceShare:
    """One service's share of a flow's packets, in one direction of a link."""

    service: str
    """The service's name."""
    packets: int
    """Packets that the port gave to it."""
    ratio: float
    """Their share of the flow's packets in this direction."""


@dataclass(frozen=True, slots=True)
class FlowService:
    """The services of one link that a flow's packets used until the stop, most packets first."""

    link: str
    """The link's name."""
    there: tuple[ServiceShare, ...]
    """For packets in the flow's main direction."""
    back: tuple[ServiceShare, ...]
    """For packets in the opposite direction."""


@dataclass(frozen=True, slots=True)
class FlowResult:
    """What one flow achieved; docs/metrics.md defines each number.

    A metric that its application does not have, or that could not be measured, is None.
    """

    name: str
    """The flow's name."""
    app: str
    """Kind of its application."""
    delivered_bytes: int
    """User bytes that the receiving application received."""
    packets_sent: int
    """Packets or segments sent into the network, including retransmissions."""
    packets_received: int
    """Packets, or segments, that arrived by the stop."""
    packets_under_way: int
    """Packets in flight at the stop that arrive later; for TCP and CLAP, those that had not
    arrived."""
    services: tuple[FlowService, ...] = ()
    """The services that its packets used, link by link; links without services are left out."""
    finished: bool | None = None
    """Whether it finished."""
    throughput_bps: float | None = None
    """User bits per second."""
    goodput_ratio: float | None = None
    """Bulk: user bytes over all bytes that entered the wireless links."""
    loss_ratio: float | None = None
    """Conferencing: share of packets that never arrived."""
    delay_mean_s: float | None = None
    """Conferencing and bulk: mean one-way delay of the packets that arrived."""
    delay_sd_s: float | None = None
    """Its standard deviation."""
    delay_mean_plus_2sd_s: float | None = None
    """Mean + 2 standard deviations: a playback point early enough for most packets."""
    delay_median_s: float | None = None
    """Median, at most 1/32 too large."""
    delay_p95_s: float | None = None
    """The delay that 95 % do not exceed, at most 1/32 too large."""
    delay_p99_s: float | None = None
    """The delay that 99 % do not exceed, at most 1/32 too large."""
    jitter_mean_s: float | None = None
    """Conferencing: mean of RFC 3550's jitter after each packet, from the second on."""
    pages: int | None = None
    """Pages and web: complete ones."""
    page_time_mean_s: float | None = None
    """Mean time from sending a request to having the whole reply."""
    page_time_sd_s: float | None = None
    """Its standard deviation."""
    page_time_median_s: float | None = None
    """Median, at most 1/32 too large."""
    page_time_p95_s: float | None = None
    """The time that 95 % do not exceed, at most 1/32 too large."""
    page_time_max_s: float | None = None
    """The longest."""
    responses: int | None = None
    """Telnet: keystrokes that were echoed. Mail: complete checks."""
    response_time_mean_s: float | None = None
    """Mean time from a keystroke to its echo, or of a check."""
    response_time_sd_s: float | None = None
    """Its standard deviation."""
    response_time_median_s: float | None = None
    """Median, at most 1/32 too large."""
    response_time_p95_s: float | None = None
    """The time that 95 % do not exceed, at most 1/32 too large."""
    response_time_max_s: float | None = None
    """The longest."""
    retransmissions: int | None = None
    """TCP: retransmitted segments."""
    timeouts: int | None = None
    """TCP: expirations of the retransmission timer."""
    window_cuts: int | None = None
    """Bulk: number of reductions of the congestion window."""
    duplicates: int | None = None
    """Bulk: segments that arrived more than once."""
    duplicates_before_sweep: int | None = None
    """CLAP: duplicates that arrived before the receiver's sweep over the file was complete."""
    nacks: int | None = None
    """CLAP: reports of missing packets that the receiver sent."""
    pause_max_s: float | None = None
    """Bulk: the longest time in which the receiving application got nothing new."""
    progress: Mapping[str, Any] | None = None
    """With `progress`: measurements over time; docs/metrics.md has the names."""
    cwnd_mean_bytes: float | None = None
    """Bulk with `windows`: mean congestion window of the sender while it sent."""
    window_mean_bytes: float | None = None
    """Bulk with `windows`: the same, limited by the receiver's window."""
    timeout_wait_s: float | None = None
    """Bulk with `windows`: time that the sender spent waiting for timeouts with nothing else to
    do."""
    duplicate_acks: int | None = None
    """Bulk with `windows`: duplicate acknowledgments that the sender received."""
    window_falls: int | None = None
    """Bulk with `window-level`: how often the sender's congestion window fell below it."""
    relay_retransmissions: int | None = None
    """With a relay: segments that the relay retransmitted."""
    relay_timeouts: int | None = None
    """With a relay: expirations of its retransmission timer."""
    relay_early_bytes: int | None = None
    """With a relay: the most bytes that were acknowledged to the source before they had arrived."""
    relay_held_bytes: int | None = None
    """With a relay: the most bytes that it held."""
    over_time: Mapping[str, Any] | None = None
    """From `run` with `over_time_s`: `interval_s`, and `throughput_bps` of each interval."""


@dataclass(frozen=True, slots=True)
class Count:
    """Frames and their bytes."""

    frames: int = 0
    """Frames."""
    bytes: int = 0
    """Bytes of these frames."""


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """The counters and metrics of one service for one direction of a link.

    The ratios and times are those of Xylomenos 1999, table 8.1; None if nothing could be measured.
    """

    number: int
    """Service number."""
    name: str
    """Its name in the file."""
    scheme: str
    """The scheme's name, as in the file: `sr-m2`."""
    sender: Mapping[str, int]
    """Counters of the near end, by name with unit."""
    receiver: Mapping[str, int]
    """Counters of the far end."""
    waiting_packets: int
    """Packets offered, but neither sent nor dropped when the applications stopped."""
    goodput_ratio: float | None = None
    """g: higher layer bytes sent for the first time / link bytes sent."""
    loss_ratio: float | None = None
    """l: packets lost for good / packets lost or received."""
    delay_s: float | None = None
    """d: one-way delivery delay."""
    queueing_s: float | None = None
    """q: the wait in the near end's port, not part of d."""
    effective_goodput_ratio: float | None = None
    """e = g (1 - l)."""
    snoop: tuple[Mapping[str, Any], ...] = ()
    """What a Snoop agent at the near end did, by application."""


@dataclass(frozen=True, slots=True)
class DirectionResult:
    """The results of one direction of a link."""

    utilisation_ratio: float
    """Bits sent until the applications stopped, over those that the link could have sent: at its
    rate, or with the opportunities that had passed."""
    channel: Mapping[str, Count]
    """`offered`, `dropped_queue`, `lost_air`, `delivered`; if there were any, `lost_outage`, and
    `lost_handoff`; with `jitter`, `overtaken`."""
    under_way: Count
    """Frames offered, but neither dropped, lost nor delivered when the applications stopped."""
    services: Mapping[str, ServiceResult]
    """The services of this direction by name; empty on a link without services."""


@dataclass(frozen=True, slots=True)
class LinkResult:
    """The results of a link."""

    name: str
    """The link's name."""
    down: DirectionResult
    """From its first end to its second."""
    up: DirectionResult
    """From its second end to its first."""


@dataclass(frozen=True, slots=True)
class StationResult:
    """The results of a station of a radio channel."""

    node: str
    """Its node."""
    airtime_ratio: float
    """Share of the time until the applications stopped in which it transmitted."""
    accepted: int
    """Packets handed to it."""
    taken: int
    """Packets that it started to transmit, each counted once whatever the number of attempts."""
    underflows: int
    """How often it finished with a packet, successfully or not, while no other waited."""
    queue_drops: int
    """Packets dropped at its full queue."""
    retries: int
    """Number of retries."""
    retry_drops: int
    """Packets given up."""
    data_frames: int
    """Data frames sent, counting each attempt."""
    data_collided: int
    """Data frames among them that collided at their receiver."""
    data_noise: int
    """Data frames among them that noise destroyed at their receiver, or that were too weak to be
    received there."""
    ack_frames: int
    """Acknowledgments sent."""
    ack_collided: int
    """Acknowledgments among them that collided at their receiver."""
    rts_frames: int
    """RTS sent."""
    rts_collided: int
    """RTS among them that collided at their receiver."""
    cts_frames: int
    """CTS sent."""
    cts_collided: int
    """CTS among them that collided at their receiver."""
    airtime_ns: int
    """Total duration of the frames of all kinds that it sent completely."""
    delivered: int
    """Packets that it received, without duplicates."""
    repeated: int
    """Frames received again because their acknowledgment was lost."""
    draws_at_cw_max: int
    """Backoffs drawn from the largest window."""


@dataclass(frozen=True, slots=True)
class RadioResult:
    """The results of a radio channel with contention, the drain included."""

    name: str
    """The medium's name."""
    busy_periods: int
    """Periods from the first frame on a silent channel to the last response that belongs to it."""
    collisions: int
    """Periods among them in which a frame collided at its receiver."""
    stations: Mapping[str, StationResult]
    """By node, sorted."""


class RunResult:
    """One repetition of a scenario, as `airlane sim run --json` prints it under `runs`."""

    __slots__ = ("_json", "flows", "links", "metrics", "radios")
    _json: str

    flows: Mapping[str, FlowResult]
    """By name, in the order of the file."""
    links: Mapping[str, LinkResult]
    """By name, sorted."""
    radios: Mapping[str, RadioResult]
    """Radio channels with contention, by the name of their medium, sorted."""
    metrics: Mapping[str, float]
    """All numbers that a sweep keeps, by the same names: `file.throughput_bps`,
    `radio.down.lost_frames`. NaN if it could not be measured."""

    def __init__(self, text: str, metrics: Mapping[str, float]) -> None:
        self._json = text
        tree = json.loads(text)
        self.flows = Named("flow", ((flow["name"], _flow(flow)) for flow in tree["flows"]))
        self.links = Named("link", ((link["name"], _link(link)) for link in tree["links"]))
        radios = ((radio["name"], _radio(radio)) for radio in tree.get("radios", ()))
        self.radios = Named("radio", radios)
        self.metrics = Named("metric", metrics.items())

    def to_dict(self) -> dict[str, Any]:
        """The whole result as nested dictionaries and lists; every name carries its unit."""
        tree: dict[str, Any] = json.loads(self._json)
        return tree

    def to_json(self) -> str:
        """The same as JSON text; numbers are exact."""
        return self._json

    def frame(self) -> pl.DataFrame:
        """One row with the same columns as `sweep`: hash, seed, run, metrics."""
        import polars as pl

        tree = self.to_dict()
        row = {
            "scenario_hash": tree["scenario_hash"],
            "seed": tree["seed"],
            "run": tree["run"],
            **{
                name: value if math.isfinite(value) else None
                for name, value in self.metrics.items()
            },
        }
        numbers = dict.fromkeys(self.metrics, pl.Float64)
        return pl.DataFrame([row], schema_overrides={"seed": pl.UInt64, **numbers})

    @property
    def scenario(self) -> str:
        """The scenario's name."""
        return str(self.to_dict()["scenario"])

    @property
    def scenario_hash(self) -> str:
        """`Scenario.hash`."""
        return str(self.to_dict()["scenario_hash"])

    @property
    def seed(self) -> int:
        """Seed of all random streams."""
        return int(self.to_dict()["seed"])

    @property
    def run(self) -> int:
        """Repetition."""
        return int(self.to_dict()["run"])

    @property
    def stopped_s(self) -> float:
        """When the applications stopped, simulated seconds."""
        return float(self.metrics["stopped_s"])

    @property
    def finished(self) -> bool:
        """Whether the flow named by `until` had finished by then; True without `until`."""
        return bool(self.metrics["finished"])

    @property
    def events(self) -> int:
        """Simulated events."""
        return int(self.metrics["events"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunResult):
            return NotImplemented
        return self._json == other._json

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        lines = [f"{self.scenario}: run {self.run}, seed {self.seed}"]
        for flow in self.flows.values():
            shown = [
                f"{field.name}={value:.6g}"
                for field in fields(flow)
                if isinstance(value := getattr(flow, field.name), float)
            ]
            lines.append(f"  {flow.name}: " + ", ".join(shown))
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return RunResult, (self._json, dict(self.metrics))


def _flow(flow: dict[str, Any]) -> FlowResult:
    def shares(got: list[dict[str, Any]]) -> tuple[ServiceShare, ...]:
        return tuple(ServiceShare(**share) for share in got)

    services = tuple(
        FlowService(used["link"], shares(used["there"]), shares(used["back"]))
        for used in flow.get("services", ())
    )
    return FlowResult(**{**flow, "services": services})


def _link(link: dict[str, Any]) -> LinkResult:
    return LinkResult(link["name"], _direction(link["down"]), _direction(link["up"]))


def _radio(radio: dict[str, Any]) -> RadioResult:
    stations = ((station["node"], StationResult(**station)) for station in radio["stations"])
    return RadioResult(**{**radio, "stations": Named("station", stations)})


def _direction(direction: dict[str, Any]) -> DirectionResult:
    services = (
        ServiceResult(**{**service, "snoop": tuple(service.get("snoop", ()))})
        for service in direction.get("services", ())
    )
    counts = ((name, Count(**count)) for name, count in direction["channel"].items())
    return DirectionResult(
        utilisation_ratio=direction["utilisation_ratio"],
        channel=Named("counter", counts),
        under_way=Count(**direction["under_way"]),
        services=Named("service", ((service.name, service) for service in services)),
    )


def run(
    scenario: ScenarioSource,
    *,
    seed: int | None = None,
    run: int = 0,
    over_time_s: float | None = None,
) -> RunResult:
    """Simulates one repetition. Other Python threads continue meanwhile.

    Harmful choices, such as services that no flow reaches, cause an `AirlaneWarning`.

    The same scenario, seed and run give the same result, to the last bit, on every machine.

    Args:
        scenario: What to simulate, or the path of its file.
        seed: Seed of all random streams; the scenario's own if None.
        run: Repetition, from 0. Errors change with it; the traffic's random numbers do if
            `traffic-seed` is `each-run`.
        over_time_s: Length of the intervals in which each flow's throughput is kept, as its
            `over_time`; nothing is kept if None.

    Returns:
        The results of every flow and link.

    Raises:
        ScenarioError: If the file is not a valid scenario.
        OSError: If it cannot be read.
        TypeError: If `seed` or `run` is not a whole number.
        ValueError: If one of them is out of range, or `over_time_s` above 0 asks for too much.
        RunError: If the simulator fails; its message has the command that repeats the run.
    """
    source = read(scenario)
    seed = natural("seed", source.seed if seed is None else seed)
    run = natural("run", run)
    for text in source._core.warnings:
        warnings.warn(f"{source.name}: {text}", AirlaneWarning, stacklevel=2)
    try:
        text, names, values = _native.run(source._core, seed, run, over_time_s)
    except RunError as error:
        raise failed(str(error), source, seed, run) from None
    return RunResult(text, dict(zip(names, values, strict=True)))
