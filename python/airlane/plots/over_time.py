"""What flows achieve during a run: throughput, delay and its jitter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airlane._check import columns
from airlane._frames import polars_of
from airlane._style import COLOURS, DASHES, shown_unit
from airlane.plots.style import name_lines, new_figure, styled

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["delay", "jitter_of", "throughput"]

_NEEDED = ("time_ns", "event", "packet", "created_ns", "len_bytes")


def _received(events: object, by: str) -> list[tuple[str, pl.DataFrame]]:
    """The arrivals of each group, in order: `time_s`, `delay_s` and `len_bytes`."""
    import polars as pl

    frame = polars_of(events)
    columns(frame, [*_NEEDED, by])
    carried = pl.col("packet").cast(pl.String).is_in(["datagram", "data", "request"])
    received = (pl.col("event").cast(pl.String) == "packet-received") & carried
    rows = (
        frame.filter(received)
        .sort("time_ns", maintain_order=True)
        .select(
            pl.col(by).cast(pl.String),
            "len_bytes",
            time_s=pl.col("time_ns") / 1e9,
            delay_s=(pl.col("time_ns") - pl.col("created_ns")) / 1e9,
        )
    )
    if rows.is_empty():
        raise ValueError("nothing arrived: no packet-received events of data or datagrams")
    groups = rows.partition_by(by, as_dict=True, maintain_order=True)
    return sorted((str(name), group) for (name,), group in groups.items())


@styled
def throughput(events: pl.DataFrame, *, by: str = "flow", interval_s: float = 1.0) -> Figure:
    """Throughput over time, as means over intervals, with a line for each group.

    Args:
        events: Events of `airlane.events` of the kind `packet-received`, of which data and
            datagrams count, retransmissions and headers included.
        by: Column of the group that each line shows.
        interval_s: Length of an interval in seconds.

    Returns:
        A figure of column width; its `savefig` embeds the fonts. The last interval, which the end
        of the run may have truncated, is left out if there are others.

    Raises:
        ValueError: If nothing arrived, a column is missing, or the interval is not above 0.

    """
    if not interval_s > 0:
        raise ValueError(f"interval_s={interval_s}: above 0")
    groups = _received(events, by)
    last = max(float(rows["time_s"].item(-1)) for _, rows in groups)
    count = max(int(last / interval_s), 1)
    lines = []
    for name, rows in groups:
        bits = [0.0] * (count + 1)
        for time, length in zip(rows["time_s"], rows["len_bytes"], strict=True):
            bits[min(int(time / interval_s), count)] += 8 * length
        lines.append((name, [value / interval_s for value in bits[:count]]))
    unit, factor = shown_unit("bit/s", (value for _, values in lines for value in values))
    figure, axes = new_figure()
    for index, (name, values) in enumerate(lines):
        axes.stairs(
            [value * factor for value in values],
            [at * interval_s for at in range(count + 1)],
            baseline=None,
            color=COLOURS[index % len(COLOURS)],
            ls=DASHES[index % len(DASHES)],
            label=name,
        )
    axes.set(xlabel="time (s)", ylabel=f"throughput ({unit})")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    name_lines(figure, axes)
    return figure


def jitter_of(delays_s: pl.Series) -> list[float]:
    """The interarrival jitter of RFC 3550 after each packet, in the order of arrival.

    Args:
        delays_s: One-way delays in seconds.

    Returns:
        As many values, in seconds; the first is 0.
    """
    jitter, before, all_ = 0.0, None, []
    for delay_s in delays_s:
        if before is not None:
            jitter += (abs(delay_s - before) - jitter) / 16
        before = delay_s
        all_.append(jitter)
    return all_


@styled
def delay(events: pl.DataFrame, *, by: str = "flow", jitter: bool = False) -> Figure:
    """One-way delay of each packet over its time of arrival, with a colour for each group.

    Args:
        events: Events of `airlane.events` of the kind `packet-received`, of which data and
            datagrams count.
        by: Column of the group that each colour shows.
        jitter: Whether the interarrival jitter of RFC 3550 is drawn instead, as lines.

    Returns:
        A figure of column width; its `savefig` embeds the fonts.

    Raises:
        ValueError: If nothing arrived, or a column is missing.

    """
    groups = [
        (name, rows["time_s"], jitter_of(rows["delay_s"]) if jitter else rows["delay_s"].to_list())
        for name, rows in _received(events, by)
    ]
    unit, factor = shown_unit("s", (value for _, _, values in groups for value in values))
    figure, axes = new_figure()
    for index, (name, times, values) in enumerate(groups):
        axes.plot(
            times,
            [value * factor for value in values],
            color=COLOURS[index % len(COLOURS)],
            ls=DASHES[index % len(DASHES)] if jitter else "none",
            marker=None if jitter else ".",
            markersize=1.8,
            label=name,
        )
    what = "interarrival jitter" if jitter else "one-way delay"
    axes.set(xlabel="time (s)", ylabel=f"{what} ({unit})")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    name_lines(figure, axes)
    return figure
