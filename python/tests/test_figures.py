"""Figures: every study can be drawn, nothing is cut off, equal results give equal bytes."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import results
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Text

from airlane import figures
from airlane._figure import HouseFigure
from airlane.figures._outcome import find, read

# A work that no code knows: three files, none of which says how to draw.
MINI = {
    "work.toml": 'title = "A work"\nruns = 2\n',
    "parts/base.toml": """
[scenario]
schema = 1
duration = "20 s"
[scenario.nodes.a]
[scenario.nodes.b]
[scenario.links.air]
ends = ["a", "b"]
rate = "64 kbit/s"
delay = "10 ms"
frame = "100 B"
header = "study"
services = [{ number = 0, name = "all", rate = 1.0, scheme = { kind = "default" } }]
[[scenario.flows]]
name = "call"
ends = ["a", "b"]
transport = { kind = "udp" }
app = { kind = "conferencing", rate = "8 kbit/s", talk = "1 s", silence = "1 s", packet = "100 B" }
""",
    "one.toml": """
title = "Loss by errors, size and repair"
parts = ["base"]
metrics.loss = "call.loss_ratio"
metrics.delay = "call.delay_mean_s"
metrics.sent = "call.packets_sent"
axes.repair.none = ['links.air.services[all].scheme={ kind = "default" }']
axes.repair.rlp = ['links.air.services[all].scheme={ kind = "rlp-oos", retries = 1 }']
axes.frame.small = ["links.air.frame=100 B"]
axes.frame.large = ["links.air.frame=200 B"]
axes.errors.few = ['links.air.errors={ kind = "uniform", rate = 0.02 }']
axes.errors.more = ['links.air.errors={ kind = "uniform", rate = 0.1 }']
axes.errors.most = ['links.air.errors={ kind = "uniform", rate = 0.3 }']
""",
}


@pytest.fixture(scope="module")
def every(few: Path) -> list[tuple[str, Path]]:
    """All available drawings, by name and folder, including those of `make claims` if it ran."""
    folders = [few]
    if (results.CLAIMS / "xylomenos-1999" / "outcome.json").is_file():
        folders.append(results.CLAIMS)
    return [
        (f"{study.work}/{study.id}", folder)
        for folder in folders
        for outcome in read(folder)
        for study in outcome.studies
        if study.drawing or study.curves
    ]


def texts(figure: Figure) -> list[Text]:
    """All text of a figure; Matplotlib keeps ticks beyond the ends of an axis, but does not draw
    them."""
    beyond = set()
    for axis in figure.axes:
        limits = (axis.get_xlim(), axis.get_ylim())
        for at, labels in enumerate((axis.get_xticklabels(), axis.get_yticklabels())):
            low, high = sorted(limits[at])
            beyond |= {label for label in labels if not low <= label.get_position()[at] <= high}
    found = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    found = [text for text in found if text not in beyond]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def check_layout(name: str, figure: Figure) -> None:
    """No text is cut off or too small, and no two names on an x axis or in a legend overlap."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    width, height = figure.get_size_inches() * figure.dpi
    for text in texts(figure):
        box = text.get_window_extent(canvas.get_renderer())
        if text.axes is not None and box.width == 0:
            continue
        inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
        assert inside, f"{name}: {text.get_text()!r} is cut off: {box}"
        assert text.get_fontsize() >= 7, f"{name}: {text.get_text()!r} is too small"
    for axis in figure.axes:
        labels = [t.get_window_extent() for t in axis.get_xticklabels() if t.get_text()]
        for left, right in pairwise(labels):
            assert left.x1 < right.x0, f"{name}: names on the x axis meet"
    for legend in figure.legends:
        frame = legend.get_window_extent()
        for axis in figure.axes:
            assert not frame.overlaps(axis.get_window_extent()), f"{name}: legend over the axes"


def test_every_figure_can_be_read(every: list[tuple[str, Path]]) -> None:
    for name, folder in every:
        _, study = find(folder, name)
        drawn = [figures.draw(folder, name)] if study.drawing else []
        if study.curves:
            drawn.append(figures.draw_over_time(folder, name))
        for figure in drawn:
            assert figure.get_size_inches()[0] in figures.WIDTHS_IN.values()
            check_layout(name, figure)


def test_a_legend_says_what_marks_and_bars_are(few: Path) -> None:
    entries = {text.get_text() for text in figures.draw(few, "F4.2").legends[0].get_texts()}
    assert {"95 % interval", "published, tolerance"} <= entries


def test_the_same_results_give_the_same_bytes(few: Path, tmp_path: Path) -> None:
    def written(out: str) -> list[bytes]:
        paths = figures.save_all(few, tmp_path / out, figures=["F4.2"], formats=figures.FORMATS)
        assert [path.name for path in paths] == ["F4.2.pdf", "F4.2.svg", "F4.2.png"]
        return [path.read_bytes() for path in paths]

    first, second = written("one"), written("two")
    assert first == second
    pdf, svg, _ = first
    assert b"/FontFile2" in pdf
    assert b"CreationDate" not in pdf
    # 3.5 inches at 72 points each.
    assert b"/MediaBox [ 0 0 252 " in pdf
    assert re.search(rb"<dc:date>|<text", svg) is None


def test_any_figure_is_saved_without_a_date(tmp_path: Path) -> None:
    plain, house = Figure(), HouseFigure()
    for figure in (plain, house):
        figure.add_subplot()
    house.savefig(tmp_path / "house.PDF")
    for path in (figures.save(plain, tmp_path / "plain.PDF"), tmp_path / "house.PDF"):
        pdf = path.read_bytes()
        assert b"/FontFile2" in pdf
        assert b"CreationDate" not in pdf


def test_a_figure_shows_what_was_measured(few: Path) -> None:
    figure = figures.draw(few, "F4.2")
    (axis,) = figure.axes
    assert axis.get_ylabel() == "Throughput, kbit/s"
    assert [t.get_text() for t in axis.get_xticklabels()] == [
        "L1\n1 %",
        "L2\n2 %",
        "L3\n5 %",
        "L4\n10 %",
    ]
    # Bands of printed values are bars without lines.
    curves = [c for c in axis.containers if isinstance(c, ErrorbarContainer)]
    drawn = [list(curve.lines[0].get_ydata()) for curve in curves]
    outcome = next(o for o in read(few) if o.work == "xylomenos-1999")
    study = next(s for s in outcome.studies if s.id == "F4.2")
    assert study.drawing is not None
    (panel,) = study.drawing.panels
    assert drawn == [[cell.value * 1e-3 for cell in row if cell] for row in panel.values]
    assert all(cell and cell.half_width for row in panel.values for cell in row)


def test_names_have_the_same_style_in_all_figures(few: Path) -> None:
    slots: dict[tuple[str, str], int] = {}
    for outcome in read(few):
        for study in outcome.studies:
            lines = study.drawing.lines if study.drawing else ()
            assert len({line.slot for line in lines}) == len(lines)
            for line in lines:
                assert slots.setdefault((outcome.work, line.id), line.slot) == line.slot


def test_every_study_that_runs_something_is_drawn(every: list[tuple[str, Path]]) -> None:
    for folder in {folder for _, folder in every}:
        for outcome in read(folder):
            for study in outcome.studies:
                drawn = study.drawing is not None or study.curves is not None
                assert drawn == (study.scenarios > 0), study.id


def test_a_study_without_runs_says_so(few: Path) -> None:
    with pytest.raises(figures.ResultsError, match="background has nothing to draw"):
        figures.draw(few, "background")


def test_a_work_needs_nothing_but_its_files(tmp_path: Path) -> None:
    for name, text in MINI.items():
        path = tmp_path / "studies" / "mini" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    out = tmp_path / "out"
    results.run("mini", "--out", out, studies=tmp_path / "studies")
    figure = figures.draw(out, "one")
    # Two metrics with a unit, at two sizes each.
    assert len(figure.axes) == 4
    assert {axis.get_ylabel() for axis in figure.axes} == {"Loss, %", "Delay, ms"}
    assert {axis.get_title() for axis in figure.axes} == {"small", "large"}
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries == ["none", "rlp", "95 % interval"]
    check_layout("mini/one", figure)


def test_an_experiment_shows_each_setting_and_claim(tmp_path: Path) -> None:
    studies = tmp_path / "studies" / "mini"
    for name, text in MINI.items():
        (studies / name).parent.mkdir(parents=True, exist_ok=True)
        (studies / name).write_text(text)
    with (studies / "one.toml").open("a") as study:
        for number, check in enumerate(("loss[none] > loss[rlp]", "loss[rlp] > 0.9"), 1):
            study.write(f'[[claims]]\nid = "A-{number}"\npublished = "it"\ncheck = "{check}"\n')
    out = tmp_path / "out"
    grids = ["links.air.delay=10 ms,20 ms", "flows[*].app(kind=conferencing).talk=1 s,2 s"]
    arguments = [text for grid in grids for text in ("--grid", grid)]
    results.run("mini", "--out", out, *arguments, studies=tmp_path / "studies")
    figure = figures.draw_grid(out)
    check_layout("grid", figure)
    cells, bars = figure.axes
    assert cells.get_ylabel() == "delay, talk"
    rows = [label.get_text() for label in cells.get_yticklabels()]
    assert rows == ["10 ms, 1 s", "10 ms, 2 s", "20 ms, 1 s", "20 ms, 2 s"]
    assert [label.get_text() for label in cells.get_xticklabels()] == ["1", "2"]
    found = json.loads((out / "mini" / "outcome.json").read_text())["grid"]
    verdicts = [point["verdicts"][claim] for point in found for claim in ("A-1", "A-2")]
    assert [text.get_text() for text in cells.texts] == [verdict[0] for verdict in verdicts]
    assert len(set(verdicts)) > 1
    assert len(bars.texts) == 4
    paths = figures.save_all(out, tmp_path / "drawn", formats=["svg"])
    assert [path.name for path in paths] == ["grid.svg"]
    with pytest.raises(figures.ResultsError, match="0 experiments"):
        figures.draw_grid(write_without_grid(out, tmp_path / "plain"))


def write_without_grid(results_folder: Path, folder: Path) -> Path:
    """The same results as without any alternatives."""
    path = folder / "mini" / "outcome.json"
    path.parent.mkdir(parents=True)
    outcome = json.loads((results_folder / "mini" / "outcome.json").read_text())
    del outcome["grid"]
    path.write_text(json.dumps(outcome))
    return folder


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere"], "nowhere: no results of studies here"),
        (["{few}", "F99"], 'no study "F99"; there are: xylomenos-1999/F4.2, '),
        (["{few}", "--format", "gif"], 'no format "gif"; there are: pdf, svg, png'),
    ],
)
def test_a_wrong_call_gets_one_line(few: Path, arguments: list[str], problem: str) -> None:
    command = [sys.executable, "-m", "airlane.figures"]
    command += [argument.format(few=few) for argument in arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_invalid_outcome_is_refused(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "outcome.json").write_text('{"schema": 1, "work": "work"}')
    with pytest.raises(figures.ResultsError, match=r"outcome\.json: not what"):
        figures.draw(tmp_path, "F1")
    (tmp_path / "work" / "outcome.json").write_text('{"schema": 99}')
    with pytest.raises(figures.ResultsError, match="of schema 99"):
        figures.draw(tmp_path, "F1")
