import io
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import polars as pl
import pytest
from lossy_world import world
from matplotlib.figure import Figure
from matplotlib.text import Text

import airlane
from airlane import plots
from airlane.plots.__main__ import main as draw


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return airlane.events(world(tmp_path_factory.mktemp("world")), seed=3)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    return airlane.events(world(tmp_path_factory.mktemp("world"), services=False), seed=3)


def texts(figure: Figure) -> str:
    """All words in the figure's SVG."""
    svg = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        # Unlike in a saved file, letters are not outlines here.
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
    assert "scheme (bars: 95 % intervals)" in words
    assert "voice: loss (%)" in words
    # Above the panel, and completely on the paper.
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


def drawn(columns: dict[str, list[object]], **options: str) -> Figure:
    """Means of a metric, from one run of each point, over the other columns."""
    frame = pl.DataFrame(columns).with_columns(
        pl.lit("").alias("scenario_hash"), pl.lit(1).alias("seed"), pl.lit(0).alias("run")
    )
    metric = "v.loss_ratio"
    return plots.means(frame.select(pl.exclude(metric), metric), metric, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("axis", "values", "stand", "label"),
    [
        ("links.radio.errors.rate", [0.1, 0.2], [0.1, 0.2], "radio: errors rate (probability)"),
        ("links.radio.delay", ["50 ms", "0.2 s"], [50, 200], "radio: delay (ms)"),
        ("links.radio.rate", ["64 kbit/s", "1 Mbit/s"], [0.064, 1], "radio: rate (Mbit/s)"),
        (
            "links.*.services[voice].scheme.retries",
            [1, 2],
            [1, 2],
            "all links, voice: scheme retries (requests)",
        ),
        ("flows[0].transport.window", [4, 8], [4, 8], "flows 0: transport window (segments)"),
        ("links.radio.queue", ["4 packets", "9 kB"], [0, 1], "radio: queue"),
        ("way of mine", ["4 ms", "9 ms"], [0, 1], "way of mine"),
    ],
)
def test_an_axis_has_the_name_and_unit_that_files_give_it(
    axis: str, values: list[object], stand: list[float], label: str
) -> None:
    figure = drawn({axis: values, "v.loss_ratio": [0.1, 0.2]}, x=axis)
    (panel,) = figure.axes
    assert panel.get_xlabel() == label
    assert list(panel.lines[0].get_xdata(orig=False)) == pytest.approx(stand)


def test_lines_that_lie_on_each_other_stay_visible() -> None:
    means = {"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.5], "c": [0.4, 0.3, 0.1]}
    columns: dict[str, list[object]] = {
        "way": [way for way in means for _ in range(3)],
        "load": [1, 2, 3] * 3,
        "v.loss_ratio": [mean for line in means.values() for mean in line],
    }
    figure = drawn(columns, x="load", by="way")
    lines = [container.lines[0] for container in figure.axes[0].containers]  # type: ignore[attr-defined]
    hidden, over, apart = (line.get_linewidth() for line in lines)
    assert hidden > over + 1
    assert over == apart
    assert lines[0].get_markersize() > lines[1].get_markersize()
    assert lines[0].get_zorder() <= lines[1].get_zorder()


@pytest.mark.parametrize(
    ("metric", "label"), [("f.delivered_bytes", "f: delivered (B)"), ("events", "events")]
)
def test_differences_are_labelled_and_bytes_have_a_unit(metric: str, label: str) -> None:
    rows = [(way, x, "", 1, run, x + run) for way in "ab" for x in (1, 2) for run in range(3)]
    columns = ["way", "x", "scenario_hash", "seed", "run", metric]
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    assert plots.means(frame, metric, x="x", by="way").axes[0].get_ylabel() == label
    less = airlane.difference(frame, "way", "a")
    figure = plots.means(less, metric, x="x")
    assert figure.axes[0].get_ylabel() == f"{label},\ndifference from a"


@pytest.mark.parametrize(
    ("plot", "column"),
    [
        (plots.delay_cdf, "flow"),
        (partial(plots.delay_cdf, by="x"), "delay_s"),
        (plots.cost_of, "event"),
        (plots.cost_against_loss, "service"),
        (plots.congestion_window, "time_ns"),
        (plots.sequence, "time_ns"),
        (plots.ladder, "event"),
    ],
)
def test_a_wrong_frame_says_what_is_missing(
    plot: Callable[[pl.DataFrame], object], column: str
) -> None:
    with pytest.raises(ValueError, match=f"^there is no column '{column}'; there are: x, y"):
        plot(pl.DataFrame({"x": [1], "y": [2]}))


@pytest.mark.parametrize("kind", ["frame-lost", "tcp-state"])
def test_plots_without_their_events_say_so(events: pl.DataFrame, kind: str) -> None:
    other = events.filter(pl.col("event").cast(pl.String) == kind)
    window = plots.sequence if kind == "tcp-state" else plots.congestion_window
    for plot in (window, plots.ladder):
        with pytest.raises(ValueError, match=r"^no .*(events|packet|frames)"):
            plot(other)


def test_congestion_window(raw: pl.DataFrame) -> None:
    figure = plots.congestion_window(raw)
    assert figure.get_figwidth() == 3.5
    (window, threshold, cap, *_) = figure.axes[0].lines
    states = raw.filter(pl.col("event") == "tcp-state")
    assert list(window.get_ydata()) == states["cwnd_segments"].to_list()
    assert list(threshold.get_ydata()) == states["ssthresh_segments"].to_list()
    assert set(cap.get_ydata()) == {20}
    assert max(window.get_ydata()) > 20
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
    assert {"raw", "services, tcp", "services, voice"} <= set(words.splitlines())


def test_unlike_costs_are_not_averaged() -> None:
    places = [("radio", "down"), ("radio", "up"), ("wired", "down")]
    rows = [
        (*place, "tcp", 1.0 + i + run, 0.1 * run)
        for i, place in enumerate(places)
        for run in (0, 1)
    ]
    columns = ["link", "direction", "service", "cost_ratio", "loss_ratio"]
    figure = plots.cost_against_loss(pl.DataFrame(rows, schema=columns, orient="row"))
    (axes,) = figure.axes
    assert axes.get_legend_handles_labels()[1] == [", ".join((*place, "tcp")) for place in places]
    assert [bar.lines[0].get_ydata()[0] for bar in axes.containers] == [1.5, 2.5, 3.5]
    assert axes.get_xlim()[0] == 0
    # A standard deviation of 7 % around 5 % is cut off at 0.
    assert min(point[0] for point in axes.collections[0].get_segments()[0]) == 0


def test_ladder_of_a_repaired_packet(events: pl.DataFrame) -> None:
    words = texts(plots.ladder(events, flow="file"))
    for word in ("server", "base", "mobile", "NAK", "retransmission", "TCP ack"):
        assert word in words


def test_ladder_of_a_packet_that_tcp_repairs(raw: pl.DataFrame) -> None:
    words = texts(plots.ladder(raw, flow="file"))
    assert "(TCP, again)" in words
    assert "timeout" in words or "fast retransmit" in words


def test_a_ladder_can_be_read_in_print(raw: pl.DataFrame) -> None:
    assert (
        min(text.get_fontsize() for text in plots.ladder(raw).findobj(Text) if text.get_text()) >= 7
    )


def test_ladder_of_a_datagram(events: pl.DataFrame) -> None:
    words = texts(plots.ladder(events, flow="voice", packet=0))
    assert "datagram 0" in words
    with pytest.raises(ValueError, match="no packet with flow voice, number 999999"):
        plots.ladder(events, flow="voice", packet=999999)


@pytest.mark.parametrize("kind", ["window", "sequence"])
def test_a_file_of_events_is_drawn(
    raw: pl.DataFrame, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "events.parquet", tmp_path / "picture.png"
    raw.write_parquet(file)
    assert draw([kind, str(file), "--flow", "file", "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert draw([kind, str(file), "--flow", "nobody", "--out", str(out)]) == 2
    assert "nobody" in capsys.readouterr().err
    assert draw([kind, str(tmp_path / "missing"), "--out", str(out)]) == 2


def sweep_of(names: list[str]) -> pl.DataFrame:
    rows = [
        (name, x, side, "", 1, run, None if x == 10 and run else 10.0**n * x)
        for n, name in enumerate(names)
        for x in (1, 10, 100)
        for side in ("down", "up")
        for run in range(3)
    ]
    columns = ["scheme", "x", "side", "scenario_hash", "seed", "run", "voice.delay_mean_s"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_means_have_facets_and_logarithmic_axes_and_say_of_how_many_runs_they_are() -> None:
    frame = sweep_of(["none", "sr"])
    figure = plots.means(frame, "voice.delay_mean_s", x="x", by="scheme", facet="side", log="xy")
    assert [axes.get_title() for axes in figure.axes] == ["side down", "side up"]
    assert all(axes.get_xscale() == axes.get_yscale() == "log" for axes in figure.axes)
    assert texts(figure).count("1 of 3 runs") == 4
    with pytest.raises(ValueError, match="log='z'"):
        plots.means(frame, "voice.delay_mean_s", x="x", log="z")
    with pytest.raises(ValueError, match="names, which have no logarithms"):
        plots.means(frame, "voice.delay_mean_s", x="scheme", log="x")
    # The same from pandas.
    both = [plots.means(one, "voice.delay_mean_s", x="x") for one in (frame, frame.to_pandas())]
    ours, theirs = (texts(figure).splitlines()[1:] for figure in both)
    assert ours == theirs


def test_throughput_and_delay_are_drawn_over_time(events: pl.DataFrame) -> None:
    figure = plots.throughput(events, interval_s=0.5)
    assert "throughput (" in texts(figure)
    drawn = sum(float(patch.get_data().values.sum()) for patch in figure.axes[0].patches)
    assert drawn > 0
    assert "one-way delay (" in texts(plots.delay(events))
    assert "interarrival jitter (" in texts(plots.delay(events, jitter=True))
    with pytest.raises(ValueError, match="nothing arrived"):
        plots.delay(events.clear())
    with pytest.raises(ValueError, match="interval_s=0"):
        plots.throughput(events, interval_s=0)


def test_jitter_is_that_of_rfc_3550() -> None:
    assert plots.jitter_of(pl.Series([0.1, 0.1, 0.26, 0.1])) == pytest.approx(
        [0.0, 0.0, 0.01, 0.01 + 0.15 / 16]
    )
