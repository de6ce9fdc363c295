"""TCP over time: its window, and the segments it sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airlane._check import columns
from airlane._style import BLACK, BLUE, GREEN, GREY, VERMILION
from airlane.plots.style import name_lines, new_figure, styled

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["congestion_window", "sequence"]

_NEEDED = ("time_ns", "event", "flow", "connection", "packet")


@styled
def congestion_window(
    events: pl.DataFrame, *, flow: str | None = None, connection: int | None = None
) -> Figure:
    """Congestion window over time, with slow start threshold, timeouts and fast retransmits.

    Above the dotted line, the receiver's window, the congestion window has no effect.

    Args:
        events: Events of `airlane.events`: `tcp-state`, `timeout` and `fast-retransmit`.
        flow: Whose; may be left out if there is one flow.
        connection: Which of its connections; the first if left out.

    Returns:
        A figure of column width; its `savefig` embeds the fonts.

    Raises:
        ValueError: If there is no such flow or connection, or the frame has not these events.

    """
    import polars as pl

    columns(events, [*_NEEDED, "cwnd_segments", "ssthresh_segments"])
    rows = _one_connection(events, flow, connection, ["tcp-state"], ["data", "request"])
    figure, axes = new_figure()
    times = rows["time_ns"] / 1e9
    axes.step(times, rows["cwnd_segments"], where="post", color=BLUE, label="congestion window")
    threshold = rows["ssthresh_segments"]
    axes.step(times, threshold, where="post", color=GREY, ls="--", lw=0.8, label="threshold")
    if "window_segments" in rows.columns:
        cap = rows["window_segments"]
        axes.step(times, cap, where="post", color=BLACK, ls=":", lw=0.8, label="receiver's window")
    marks = [("timeout", "x", VERMILION), ("fast-retransmit", "v", BLACK)]
    for kind, marker, color in marks:
        at = _one_connection(
            events, rows["flow"][0], rows["connection"][0], [kind], [rows["packet"][0]], False
        )
        if at.height:
            # The window right after the event: marks lie on the curve that they explain.
            joined = at.select(pl.col("time_ns") / 1e9).sort("time_ns")
            height = [_value_at(rows, t) for t in joined["time_ns"]]
            label = kind.replace("-", " ")
            axes.plot(joined["time_ns"], height, marker, ms=4, color=color, label=label)
    axes.set(xlabel="time (s)", ylabel="segments")
    axes.set_ylim(bottom=0)
    name_lines(figure, axes)
    return figure


@styled
def sequence(
    events: pl.DataFrame, *, flow: str | None = None, connection: int | None = None
) -> Figure:
    """Segment numbers over time: sent, retransmitted, acknowledged.

    Args:
        events: Events of `airlane.events`: `packet-sent` and `packet-received`.
        flow: Whose; may be left out if there is one flow with TCP.
        connection: Which of its connections; the first if left out.

    Returns:
        A figure of column width; its `savefig` embeds the fonts.

    Raises:
        ValueError: If there is no such flow or connection, or the frame has not these events.

    """
    import polars as pl

    columns(events, [*_NEEDED, "seq", "retransmission"])
    sent = _one_connection(events, flow, connection, ["packet-sent"], ["data", "request"])
    whose = sent["flow"][0], sent["connection"][0]
    ack = "ack" if sent["packet"][0] == "data" else "request-ack"
    acked = _one_connection(events, *whose, ["packet-received"], [ack], False)
    figure, axes = new_figure()
    style: dict[str, Any] = {"ls": "", "ms": 2.5, "mew": 0.7}
    # Long runs have more segments than a vector file should have points.
    style["rasterized"] = sent.height > 5000
    first = sent.filter(~pl.col("retransmission"))
    again = sent.filter(pl.col("retransmission"))
    if acked.height:
        times = acked["time_ns"] / 1e9
        axes.step(times, acked["seq"], where="post", color=GREEN, label="acknowledged")
    axes.plot(first["time_ns"] / 1e9, first["seq"], marker=".", color=BLUE, label="sent", **style)
    if again.height:
        times = again["time_ns"] / 1e9
        axes.plot(times, again["seq"], marker="x", color=VERMILION, label="sent again", **style)
    axes.set(xlabel="time (s)", ylabel="segment number")
    name_lines(figure, axes)
    return figure


def _one_connection(
    events: pl.DataFrame,
    flow: str | None,
    connection: int | None,
    kinds: list[str],
    packets: list[str],
    must: bool = True,
) -> pl.DataFrame:
    """Events of one direction of one connection; names as text."""
    import polars as pl

    names = [pl.col(name).cast(pl.String) for name in ("event", "flow", "packet")]
    rows = events.with_columns(names).filter(
        pl.col("event").is_in(kinds) & pl.col("packet").is_in(packets)
    )
    flows = rows["flow"].unique(maintain_order=True).to_list()
    if flow is None:
        if len(flows) > 1:
            raise ValueError(f"events of several flows: write flow= with one of {', '.join(flows)}")
        flow = flows[0] if flows else None
    if flow is not None:
        rows = rows.filter(pl.col("flow") == flow)
    if rows.height and connection is None:
        # A request and its reply use a connection each: take the one that carries more.
        connection = rows["connection"].mode().min()  # type: ignore[assignment]
    if connection is not None:
        rows = rows.filter(pl.col("connection") == connection)
    if rows.height:
        way = "data" if "data" in rows["packet"].to_list() else rows["packet"][0]
        rows = rows.filter(pl.col("packet") == way)
    if must and not rows.height:
        what = f'flow "{flow}"' if flow is not None else "TCP"
        what += "" if connection is None else f", connection {connection}"
        raise ValueError(
            f"no {kinds[0]} events of {what}; the flows are: {', '.join(flows) or 'none'}"
        )
    return rows


def _value_at(rows: pl.DataFrame, time_s: float) -> float:
    """The window right after an event."""
    import polars as pl

    before = rows.filter(pl.col("time_ns") <= time_s * 1e9 + 0.5)["cwnd_segments"]
    return float(before[-1]) if before.len() else 0.0
