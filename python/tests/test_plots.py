import io
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import polars as pl
import pytest
from lossy_world import world
from matplotlib.figure import Figure

import airlane
from airlane import plots


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return airlane.events(world(tmp_path_factory.mktemp("world")), seed=3)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return airlane.events(world(tmp_path_factory.mktemp("world"), services=False), seed=3)


def texts(figure: Figure) -> str:
    """All words of the figure's SVG."""
    svg = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        # Not as a file of its own is saved, in which letters are outlines.
        Figure.savefig(figure, svg, format="svg")
    words = ElementTree.fromstring(svg.getvalue()).itertext()
    return "\n".join(word.strip() for word in words if word.strip())


def test_importing_airlane_does_not_import_matplotlib() -> None:
    code = "import airlane, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_means_of_lines_with_long_names_fit_and_embed_their_fonts() -> None:
    names = [f"selective repeat, mode {n}, of many" for n in range(5)]
    rows = [(n, x, "", 1, run, 0.01 * x) for n in names for x in (1, 2) for run in range(3)]
    columns = ["scheme", "x", "scenario_hash", "seed", "run", "voice.loss_ratio"]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    figure = plots.means(frame, "voice.loss_ratio", x="x", by="scheme", x_label="Load")
    words = texts(figure)
    assert all(name in words for name in names)
    assert "Load" in words
    assert "voice: loss (%)" in words
    # Over the panel, and none of it outside of the paper.
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= figure.axes[0].get_window_extent().y1
    twice = [io.BytesIO(), io.BytesIO()]
    for pdf in twice:
        figure.savefig(pdf, format="pdf")
    text = twice[0].getvalue()
    assert text == twice[1].getvalue()
    assert b"/FontFile2" in text
    assert b"/Type3" not in text


def test_congestion_window(raw: pl.DataFrame) -> None:
    figure = plots.congestion_window(raw)
    assert figure.get_figwidth() == 3.5
    (window, threshold, *_) = figure.axes[0].lines
    states = raw.filter(pl.col("event") == "tcp-state")
    assert list(window.get_ydata()) == states["cwnd_segments"].to_list()
    assert list(threshold.get_ydata()) == states["ssthresh_segments"].to_list()
    assert "fast retransmit" in texts(figure)


def test_sequence(raw: pl.DataFrame) -> None:
    figure = plots.sequence(raw, flow="file")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    sent = raw.filter((pl.col("event") == "packet-sent") & (pl.col("packet") == "data"))
    again = sent.filter("retransmission")
    assert len(lines["sent again"].get_ydata()) == again.height > 0
    assert len(lines["sent"].get_ydata()) == sent.height - again.height
    with pytest.raises(ValueError, match=r'"fax".*the flows are: file'):
        plots.sequence(raw, flow="fax")


def test_delay_cdf(events: pl.DataFrame) -> None:
    figure = plots.delay_cdf(events)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert set(lines) == {"file", "voice"}
    delays = list(lines["voice"].get_xdata())
    assert delays == sorted(delays)
    assert delays[0] > 0.051
    assert lines["voice"].get_ydata()[-1] == 1
    assert set(plots.delay_cdf(pl.DataFrame({"scheme": ["a"], "delay_s": [0.5]}), by="scheme").axes)


def test_cost_against_loss(events: pl.DataFrame, raw: pl.DataFrame) -> None:
    rows = [
        plots.cost_of(frame).with_columns(scheme=pl.lit(name))
        for frame, name in ((raw, "raw"), (events, "services"))
    ]
    down = pl.concat(rows).filter((pl.col("link") == "radio") & (pl.col("direction") == "down"))
    cost = {(row["scheme"], row["service"]): row for row in down.iter_rows(named=True)}
    assert 0.01 < cost["raw", None]["loss_ratio"] < 0.12
    assert cost["services", "tcp"]["loss_ratio"] < cost["raw", None]["loss_ratio"]
    assert 1.0 < cost["raw", None]["cost_ratio"] < 1.15
    assert cost["services", "tcp"]["cost_ratio"] > cost["raw", None]["cost_ratio"]
    words = texts(plots.cost_against_loss(down, by="scheme"))
    assert "residual loss (%)" in words
    assert "services" in words


def test_ladder_of_a_repaired_packet(events: pl.DataFrame) -> None:
    words = texts(plots.ladder(events, flow="file"))
    for word in ("server", "base", "mobile", "NAK", "retransmission", "TCP ack"):
        assert word in words


def test_ladder_of_a_packet_that_tcp_repairs(raw: pl.DataFrame) -> None:
    words = texts(plots.ladder(raw, flow="file"))
    assert "(TCP, again)" in words
    assert "timeout" in words or "fast retransmit" in words


def test_ladder_of_a_datagram(events: pl.DataFrame) -> None:
    words = texts(plots.ladder(events, flow="voice", packet=0))
    assert "datagram 0" in words
    with pytest.raises(ValueError, match="no packet with flow voice, number 999999"):
        plots.ladder(events, flow="voice", packet=999999)
