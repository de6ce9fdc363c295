"""Distributions of delay, and the cost of repair against residual loss."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from airlane._check import columns
from airlane._style import COLOURS, DASHES, MARKERS
from airlane.plots.style import name_lines, new_figure, styled

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["cost_against_loss", "cost_of", "delay_cdf"]


@styled
def delay_cdf(frame: pl.DataFrame, *, by: str = "flow") -> Figure:
    """The cumulative distribution of one-way delay, with a curve for each group.

    Args:
        frame: Events of `airlane.events` of the kind `packet-received`, of which data and datagrams
            count; or any frame with a column `delay_s` and the column `by`.
        by: Column of the group that each curve shows.

    Returns:
        A figure of column width; its `savefig` embeds the fonts.

    Raises:
        ValueError: If there are no delays, or a column is missing.

    """
    import polars as pl

    measured = "delay_s" in frame.columns or "event" not in frame.columns
    columns(frame, [by, "delay_s"] if measured else [by, "packet", "time_ns", "created_ns"])
    if not measured:
        carried = pl.col("packet").cast(pl.String).is_in(["datagram", "data", "request"])
        received = (pl.col("event").cast(pl.String) == "packet-received") & carried
        delay = (pl.col("time_ns") - pl.col("created_ns")) / 1e9
        frame = frame.filter(received).with_columns(delay_s=delay)
    groups = frame.with_columns(pl.col(by).cast(pl.String)).partition_by(
        by, as_dict=True, maintain_order=True
    )
    if not groups:
        raise ValueError("no delays: there are no packet-received events of data or datagrams")
    figure, axes = new_figure()
    for index, ((name,), group) in enumerate(groups.items()):
        delays = group["delay_s"].drop_nulls().sort()
        share = pl.int_range(1, delays.len() + 1, eager=True) / delays.len()
        color, line = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        axes.step(delays, share, where="post", color=color, ls=line, label=str(name))
    axes.set(xlabel="one-way delay (s)", ylabel="share of packets", ylim=(0, 1))
    axes.set_xlim(left=0)
    axes.legend(loc="lower right")
    return figure


def cost_of(events: pl.DataFrame) -> pl.DataFrame:
    """The cost of each direction of each service, and its residual loss.

    Args:
        events: Events of `airlane.events` of the kinds `packet-entered`, `packet-left` and
            `frame-sent`.

    Returns:
        A frame with `link`, `direction`, `service`, `cost_ratio` (bytes of all frames over bytes of
        the delivered packets) and `loss_ratio` (share of packets that entered and were not
        delivered, including dropped ones). Packets still in flight at the end count as lost. Frames
        of acknowledgments count in their own direction.

    Raises:
        ValueError: If the frame lacks a column of events.

    """
    import polars as pl

    place = ["link", "direction"]
    names = ["event", *place, "service", "flow"]
    numbers = ["connection", "packet", "seq", "created_ns", "len_bytes", "frame_len_bytes"]
    columns(events, [*names, *numbers])
    rows = events.with_columns(pl.col(name).cast(pl.String) for name in names)

    def only(kind: str) -> pl.DataFrame:
        return rows.filter(pl.col("event") == kind)

    # The event of a packet that leaves lacks the service, which is the one that it entered.
    identity = [*place, "flow", "connection", "packet", "seq", "created_ns"]
    entered = only("packet-entered").unique(identity, keep="first", maintain_order=True)
    left = only("packet-left").unique(identity, keep="first", maintain_order=True)
    both = entered.join(left.select(identity), on=identity, how="semi", nulls_equal=True)
    key = [*place, "service"]
    frames = only("frame-sent").group_by(key).agg(frame=pl.col("frame_len_bytes").sum())
    packets = entered.group_by(key).agg(entered=pl.len())
    out = both.group_by(key).agg(left=pl.len(), left_bytes=pl.col("len_bytes").sum())
    table = packets.join(out, on=key, how="left", nulls_equal=True)
    table = table.join(frames, on=key, how="left", nulls_equal=True)
    return table.select(
        *key,
        cost_ratio=pl.col("frame") / pl.col("left_bytes"),
        loss_ratio=1 - pl.col("left").fill_null(0) / pl.col("entered"),
    ).sort(key)


@styled
def cost_against_loss(
    frame: pl.DataFrame,
    *,
    by: str = "service",
    cost: str = "cost_ratio",
    loss: str = "loss_ratio",
) -> Figure:
    """The cost of repair against the residual loss: lower and further left is better.

    Args:
        frame: A row a run: group, cost and residual loss; `cost_of` gives the last two.
        by: Column of the group of each mark; its rows are averaged, bars are standard deviations.
            Links, directions and services are never averaged: if the frame has several, each has a
            mark of its own.
        cost: Column of the cost, such as bytes sent over bytes delivered.
        loss: Column of the residual loss, 0 to 1.

    Returns:
        A figure of column width; its `savefig` embeds the fonts.

    Raises:
        ValueError: If there are no rows, or a column is missing.

    """
    columns(frame, [by, cost, loss])
    frame = frame.drop_nulls([cost, loss])
    places = [name for name in ("link", "direction", "service") if name in frame.columns]
    several = [name for name in places if name == by or frame[name].n_unique() > 1]
    keys = several if by in several else [by, *several]
    groups = frame.partition_by(keys, as_dict=True, maintain_order=True)
    if not groups:
        raise ValueError(f'no rows with "{cost}" and "{loss}"')
    figure, axes = new_figure()
    for index, (key, group) in enumerate(groups.items()):
        x, x_bar = _mean_and_bar((100 * group[loss]).to_list())
        y, y_bar = _mean_and_bar(group[cost].to_list())
        axes.errorbar(
            [x],
            [y],
            xerr=x_bar,
            yerr=y_bar,
            fmt=MARKERS[index % len(MARKERS)],
            color=COLOURS[index % len(COLOURS)],
            ms=4,
            elinewidth=0.8,
            capsize=2,
            # A mark at zero loss is drawn whole.
            clip_on=False,
            label=", ".join(str(value) for value in key if value is not None) or "none",
        )
    axes.set(xlabel="residual loss (%)", ylabel="bytes sent per byte delivered")
    axes.set_xlim(left=0)
    axes.spines["left"].set_position(("outward", 6))
    name_lines(figure, axes)
    return figure


def _mean_and_bar(values: list[float]) -> tuple[float, list[list[float]] | None]:
    """The mean, and one standard deviation below and above it, but nothing below 0."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, None
    sd = statistics.stdev(values)
    return mean, [[min(sd, mean)], [sd]]
