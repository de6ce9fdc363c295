"""The events of a run as a data frame.

docs/events.md describes each event and each column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Required, TypedDict

from airlane import _native
from airlane._again import failed
from airlane._check import names, natural
from airlane.errors import RunError
from airlane.scenario import ScenarioSource, read

if TYPE_CHECKING:
    import polars as pl

__all__ = ["KINDS", "Event", "Probe", "events"]

KINDS: Final = tuple(_native.event_kinds())
"""The names of all kinds of events."""


def events(
    scenario: ScenarioSource,
    *,
    seed: int | None = None,
    run: int = 0,
    kinds: str | Iterable[str] = (),
    flows: str | Iterable[str] = (),
    links: str | Iterable[str] = (),
    limit: int | None = None,
) -> pl.DataFrame:
    """Simulates one repetition and returns its events, one row each, in the order of time.

    Other Python threads continue meanwhile. Observing a run does not change it.

    Args:
        scenario: What to simulate.
        seed: Seed of all random streams; the scenario's own if None.
        run: Repetition, from 0.
        kinds: Only events of this kind or these (`KINDS`); all if empty, as with the next two.
        flows: Only events of this flow or these; frames without a packet belong to none.
        links: Only events on this link or these.
        limit: The run ends after this many rows; None for all. A row takes about 150 bytes.

    Returns:
        A frame with the columns of docs/events.md, times in ns, lengths in bytes. A column that an
        event does not have is null.

    Raises:
        ScenarioError: If the file is not a valid scenario.
        OSError: If it cannot be read.
        TypeError: If an argument is of the wrong type.
        ValueError: If a name is unknown, or a number out of range.
        RunError: If the simulator fails; its message has the command that repeats the run.

    """
    import polars as pl

    source = read(scenario)
    seed = natural("seed", source.seed if seed is None else seed)
    limit = None if limit is None else natural("limit", limit)
    wanted = names("kinds", kinds), names("flows", flows), names("links", links)
    run = natural("run", run)
    try:
        table = _native.events(source._core, seed, run, *wanted, limit)
    except RunError as error:
        raise failed(str(error), source, seed, run) from error
    return pl.DataFrame(table)


class Event(TypedDict, total=False):
    """An event as a probe receives it: the fields of docs/events.md that the event has."""

    time_ns: Required[int]
    event: Required[str]
    link: str
    direction: str
    from_node: str
    to_node: str
    service: str
    frame: str
    frame_seq: int
    frame_ack: int
    frame_len_bytes: int
    departs_ns: int
    reason: str
    flow: str
    connection: int
    packet: str
    seq: int
    len_bytes: int
    retransmission: bool
    created_ns: int
    cwnd_segments: float
    ssthresh_segments: int
    window_segments: int
    srtt_ns: int
    rto_ns: int
    number: int
    duration_ns: int


class Probe:
    """A receiver of events during a run: define the methods that you need.

    Each method gets the event as a dictionary: `time_ns`, `event` and the fields of docs/events.md
    that it has. Only kinds with a method are reported. This is slow, some microseconds an event: if
    you only need the events, use `airlane.events`. A probe cannot change the run; an exception ends
    it and reaches the caller.
    """

    def on_packet_entered(self, event: Event) -> None:
        """IP hands a packet to a link."""

    def on_packet_left(self, event: Event) -> None:
        """A link passes a packet to IP at its other end."""

    def on_packet_dropped(self, event: Event) -> None:
        """A packet is dropped before it enters a link."""

    def on_frame_sent(self, event: Event) -> None:
        """A frame is passed to the transmitter."""

    def on_frame_lost(self, event: Event) -> None:
        """A frame will not arrive."""

    def on_frame_received(self, event: Event) -> None:
        """A frame arrives."""

    def on_service_event(self, event: Event) -> None:
        """A service reports an event of its own."""

    def on_service_reset(self, event: Event) -> None:
        """A service starts anew because its scheme requires it."""

    def on_packet_sent(self, event: Event) -> None:
        """A host sends a packet."""

    def on_packet_received(self, event: Event) -> None:
        """The host at the other end receives it."""

    def on_tcp_state(self, event: Event) -> None:
        """A TCP sender has another window, threshold, round trip time or timeout."""

    def on_timeout(self, event: Event) -> None:
        """A retransmission timer expires."""

    def on_fast_retransmit(self, event: Event) -> None:
        """Duplicate acknowledgments start a retransmission."""

    def on_response_done(self, event: Event) -> None:
        """An application completes a page or response."""

    def on_flow_finished(self, event: Event) -> None:
        """An application finishes."""
