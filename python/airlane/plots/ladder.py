"""The life of one packet as a ladder diagram: nodes are lines, frames are arrows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airlane._check import columns
from airlane._style import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION
from airlane.plots.style import new_figure, styled

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ladder"]

Row = dict[str, Any]


@dataclass(frozen=True)
class _Arrow:
    """A frame in flight."""

    begin_ns: int
    """When it was passed to the transmitter."""
    end_ns: int
    """When it arrived; for a lost one, when its last bit had been sent."""
    ends: tuple[str, str]
    lost: bool
    label: str
    color: str


@dataclass(frozen=True)
class _Mark:
    """An event at a node."""

    at_ns: int
    node: str
    label: str


@styled
def ladder(
    events: pl.DataFrame,
    *,
    flow: str | None = None,
    packet: int | None = None,
    connection: int | None = None,
) -> Figure:
    """The life of one packet: its frames on every link, their repairs, and its acknowledgments.

    A cross marks a lost frame. Time runs downwards and is written on the left; it is not to scale,
    so that milliseconds and timeouts can be read in one diagram.

    Args:
        events: All events of `airlane.events` around that time: do not leave kinds or links out.
        flow: The packet's flow; any flow if left out.
        packet: Its segment or datagram number. If left out: the packet whose frames were lost most
            often, the first of these.
        connection: Which of the flow's connections; if left out, the first that has the number.

    Returns:
        A figure of column width; its `savefig` embeds the fonts.

    Raises:
        ValueError: If there is no such packet, or the frame lacks these events.
    """
    rows = _plain(events)
    life = list(_life(rows, _choose(rows, flow, packet, connection)))
    arrows = _merged(item for item in life if isinstance(item, _Arrow))
    marks = [item for item in life if isinstance(item, _Mark)]
    if not arrows:
        raise ValueError("no frames: the events must have frame-sent and frame-received")
    nodes = _nodes(arrows)
    times = {time for arrow in arrows for time in (arrow.begin_ns, arrow.end_ns)}
    lines = _lines(times | {mark.at_ns for mark in marks})
    figure, axes = new_figure(height_in=0.5 + 0.14 * (max(lines.values()) + 2))
    for place, node in enumerate(nodes):
        axes.plot([place, place], [-0.5, max(lines.values()) + 1], color=BLACK, lw=0.8, zorder=1)
        axes.text(place, -0.9, node, ha="center", va="bottom", fontsize=8)
    for arrow in arrows:
        _draw(axes, arrow, nodes, lines)
    for mark in marks:
        _note(axes, mark, nodes, lines)
    axes.set_ylim(max(lines.values()) + 1, -2.5)
    right = len(nodes) - 0.85
    # The text of a mark is to the left of the first node, over a quarter of the panel.
    axes.set_xlim(-0.39 * right if marks else -0.15, right)
    begin = min(lines)
    axes.set_yticks(list(lines.values()), [f"{(at - begin) / 1e6:.1f}" for at in lines])
    axes.tick_params(axis="y", labelsize=7, length=2)
    axes.set_ylabel(f"ms since {begin / 1e9:.6f} s, not to scale")
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.spines[["bottom", "left"]].set_visible(False)
    return figure


def _lines(times: set[int]) -> dict[int, float]:
    """The position of each time in lines of text: at least one apart, more for longer times."""
    lines: dict[int, float] = {}
    here, before = 0.0, None
    for time in sorted(times):
        if before is not None:
            here += 1 + math.log2(1 + (time - before) / 20e6)
        lines[time], before = here, time
    return lines


def _merged(arrows: Iterable[_Arrow]) -> list[_Arrow]:
    """One arrow for each frame, with all events about it."""
    frames: dict[tuple[int, int, tuple[str, str]], _Arrow] = {}
    for arrow in arrows:
        key = (arrow.begin_ns, arrow.end_ns, arrow.ends)
        known = frames.get(key)
        if known is None:
            frames[key] = arrow
        elif arrow.label.partition(" in ")[0] not in known.label:
            more = arrow.label.partition(" in ")[0]
            frames[key] = replace(known, label=f"{known.label.partition(' #')[0]}, {more}")
    return list(frames.values())


def _plain(events: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    names = (
        "event",
        "link",
        "direction",
        "from_node",
        "to_node",
        "service",
        "frame",
        "reason",
        "flow",
        "packet",
    )
    numbers = ("time_ns", "departs_ns", "created_ns", "connection", "seq", "retransmission")
    columns(events, [*names, *numbers, "frame_seq", "frame_ack"])
    return events.with_columns(pl.col(name).cast(pl.String) for name in names)


def _choose(
    rows: pl.DataFrame, flow: str | None, packet: int | None, connection: int | None
) -> Row:
    """Flow, connection, role and number of the packet."""
    import polars as pl

    wanted = pl.col("packet").is_in(["data", "request", "datagram"]) & pl.col("seq").is_not_null()
    for name, value in (("flow", flow), ("seq", packet), ("connection", connection)):
        if value is not None:
            wanted = wanted & (pl.col(name) == value)
    mine = rows.filter(wanted)
    identity = ["flow", "connection", "packet", "seq"]
    lost = mine.filter(pl.col("event") == "frame-lost")
    if packet is None and lost.height:
        count = lost.group_by(identity, maintain_order=True).len()
        return count.sort("len", descending=True, maintain_order=True).row(0, named=True)
    if not mine.height:
        asked = {"flow": flow, "number": packet, "connection": connection}
        named = [f"{name} {value}" for name, value in asked.items() if value is not None]
        what = f" with {', '.join(named)}" if named else "; the events must have frame-sent"
        raise ValueError(f"no packet{what}")
    return mine.select(identity).row(0, named=True)


def _life(rows: pl.DataFrame, whole: Row) -> Iterator[_Arrow | _Mark]:
    """The events about the packet, in the order of time."""
    import polars as pl

    same = pl.all_horizontal(pl.col(name) == whole[name] for name in ("flow", "connection", "seq"))
    mine = rows.filter(same & (pl.col("packet") == whole["packet"]))
    begin = mine["time_ns"].min()
    received = mine.filter(pl.col("event") == "packet-received")
    over = received["time_ns"].min() if received.height else mine["time_ns"].max()
    tcp = {"data": "ack", "request": "request-ack"}.get(whole["packet"])
    acks = rows.clear()
    if tcp is not None and received.height:
        # The acknowledgment that it causes, and those after it until one comes back.
        flow = (pl.col("flow") == whole["flow"]) & (pl.col("connection") == whole["connection"])
        every = rows.filter(flow & (pl.col("packet") == tcp) & (pl.col("seq") > whole["seq"]))
        every = every.filter(pl.col("created_ns") >= over)
        back = every.filter(pl.col("event") == "packet-received")
        over = back["time_ns"].min() if back.height else every["time_ns"].max() or over
        wanted = pl.concat([every.head(1), back.head(1)]).select("created_ns", "seq").unique()
        acks = every.join(wanted, on=["created_ns", "seq"], how="semi")
    window = rows.filter((pl.col("time_ns") >= begin) & (pl.col("time_ns") <= over))
    mine = mine.filter(pl.col("time_ns") <= over)
    items: list[_Arrow | _Mark] = []
    frames = [*_sent(window, mine), *_sent(window, acks)]
    for row in frames:
        items.append(_arrow(row, whole))
    items.extend(_link_control(window, [row for row in frames if row["packet"] == whole["packet"]]))
    sender = next((row["from_node"] for row in frames), None)
    for row in _of_sender(window, whole):
        items.append(_Mark(row["time_ns"], str(sender), row["event"].replace("-", " ")))
    for row in mine.filter(pl.col("event") == "packet-dropped").iter_rows(named=True):
        label = f"dropped:\n{row['reason']}"
        items.append(_Mark(row["time_ns"], row["from_node"] or str(sender), label))
    yield from sorted(items, key=lambda i: i.begin_ns if isinstance(i, _Arrow) else i.at_ns)


def _sent(window: pl.DataFrame, mine: pl.DataFrame) -> list[Row]:
    """The frames that carried these packets, each with its time of arrival; none if it was lost."""
    import polars as pl

    frames = []
    on_link = ("link", "direction", "service", "frame_seq", "frame")
    for row in mine.filter(pl.col("event") == "frame-sent").iter_rows(named=True):
        same = pl.all_horizontal(pl.col(name).eq_missing(pl.lit(row[name])) for name in on_link)
        after = window.filter(same & (pl.col("time_ns") >= row["time_ns"]))
        # A lost frame is followed by an event of its loss, with the same time of departure.
        lost = after.filter(
            (pl.col("event") == "frame-lost") & (pl.col("departs_ns") == row["departs_ns"])
        )
        arrived = after.filter(
            (pl.col("event") == "frame-received")
            & (pl.col("time_ns") >= row["departs_ns"])
            & pl.col("seq").eq_missing(pl.lit(row["seq"]))
        )
        row["arrives_ns"] = None if lost.height or not arrived.height else arrived["time_ns"][0]
        row["lost"] = bool(lost.height)
        if row["lost"] or row["arrives_ns"] is not None:
            frames.append(row)
    return frames


def _arrow(row: Row, whole: Row) -> _Arrow:
    kind = row["frame"]
    number = f" #{row['frame_seq']}" if kind and row["frame_seq"] is not None else ""
    if row["packet"] == whole["packet"]:
        again = " (TCP, again)" if row["retransmission"] else ""
        label, color = f"{row['packet']} {row['seq']}{number}{again}", BLUE
        if kind in ("retransmission", "copy"):
            label, color = f"{kind}{number}", VERMILION
        elif row["retransmission"]:
            color = ORANGE
    else:
        label, color = f"TCP ack {row['seq']}{number}", GREEN
        if kind in ("retransmission", "copy"):
            label = f"ack, {kind}{number}"
    return _Arrow(
        begin_ns=row["time_ns"],
        end_ns=row["departs_ns"] if row["lost"] else row["arrives_ns"],
        ends=(row["from_node"], row["to_node"]),
        lost=row["lost"],
        label=label,
        color=color,
    )


def _link_control(window: pl.DataFrame, frames: list[Row]) -> Iterator[_Arrow]:
    """NAKs for these frames, and the first acknowledgment on the link of those that arrived."""
    import polars as pl

    seen = set()
    for row in frames:
        key = (row["link"], row["direction"], row["service"], row["frame_seq"])
        if row["frame"] is None or key in seen:
            continue
        seen.add(key)
        back = window.filter(
            (pl.col("link") == row["link"])
            & (pl.col("direction") != row["direction"])
            & (pl.col("service") == row["service"])
            & (pl.col("time_ns") > row["time_ns"])
        )
        sent = back.filter(pl.col("event") == "frame-sent")
        naks = sent.filter((pl.col("frame") == "nak") & (pl.col("frame_seq") == row["frame_seq"]))
        for nak in _sent(back, naks):
            yield _control(nak, f"NAK #{nak['frame_seq']}", PURPLE)
        arrivals = [f["arrives_ns"] for f in frames if _key(f) == key and f["arrives_ns"]]
        if not arrivals:
            continue
        # Numbers are modulo 256 or more; less than half of the smallest circle counts as ahead.
        ahead = (pl.col("frame_ack").cast(pl.Int64) - row["frame_seq"] - 1) % 256 < 128
        acks = sent.filter(
            pl.col("frame_ack").is_not_null() & ahead & (pl.col("time_ns") >= min(arrivals))
        )
        for ack in _sent(back, acks.head(1)):
            inside = "" if ack["frame"] in ("ack", "bitmap") else f" in {ack['frame']}"
            yield _control(ack, f"link ack {ack['frame_ack']}{inside}", GREY)


def _key(row: Row) -> tuple[Any, ...]:
    return row["link"], row["direction"], row["service"], row["frame_seq"]


def _control(row: Row, label: str, color: str) -> _Arrow:
    ends = row["from_node"], row["to_node"]
    end = row["departs_ns"] if row["lost"] else row["arrives_ns"]
    return _Arrow(row["time_ns"], end, ends, row["lost"], label, color)


def _of_sender(window: pl.DataFrame, whole: Row) -> Iterator[Row]:
    import polars as pl

    same = pl.all_horizontal(
        pl.col(name) == whole[name] for name in ("flow", "connection", "packet")
    )
    kinds = pl.col("event").is_in(["timeout", "fast-retransmit"])
    yield from window.filter(same & kinds).iter_rows(named=True)


def _nodes(arrows: list[_Arrow]) -> list[str]:
    """The nodes on the packet's path, from its source."""
    nodes: list[str] = []
    for arrow in arrows:
        for node in arrow.ends:
            if node not in nodes:
                nodes.append(node)
    return nodes


def _draw(axes: Axes, arrow: _Arrow, nodes: list[str], lines: Mapping[int, float]) -> None:
    x = [float(nodes.index(node)) for node in arrow.ends]
    y = [lines[at] for at in (arrow.begin_ns, arrow.end_ns)]
    if arrow.lost:
        x[1] = x[0] + 0.8 * (x[1] - x[0])
    style = {"arrowstyle": "-" if arrow.lost else "-|>", "color": arrow.color, "lw": 0.9}
    style |= {"shrinkA": 0, "shrinkB": 0, "mutation_scale": 7}
    axes.annotate("", xy=(x[1], y[1]), xytext=(x[0], y[0]), arrowprops=style)
    if arrow.lost:
        axes.plot([x[1]], [y[1]], "x", color=arrow.color, ms=6, mew=1.4, zorder=3)
    left, right = sorted(zip(x, y, strict=True))
    axes.text(
        (x[0] + x[1]) / 2,
        (y[0] + y[1]) / 2,
        arrow.label,
        ha="center",
        va="bottom",
        fontsize=7,
        color=arrow.color,
        rotation=math.degrees(math.atan2(right[1] - left[1], right[0] - left[0])),
        rotation_mode="anchor",
        transform_rotates_text=True,
    )


def _note(axes: Axes, mark: _Mark, nodes: list[str], lines: Mapping[int, float]) -> None:
    x = nodes.index(mark.node) if mark.node in nodes else 0
    y = lines[mark.at_ns]
    axes.plot([x], [y], "D", color=BLACK, ms=3, zorder=3)
    axes.text(x - 0.05, y, mark.label, ha="right", va="center", fontsize=7)
