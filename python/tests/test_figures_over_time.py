"""Curves over time: all of them are in the picture, and a missing file is named."""

from pathlib import Path

import pytest

from airlane.figures import ResultsError
from airlane.figures._outcome import Curves, CurvesPanel, Line
from airlane.figures._over_time import read_points, render_curves

ROWS = """at,line,quantity,time_s,value
lan,reno,goodput_bps,0.050000000,1000000
lan,reno,goodput_bps,0.150000000,2000000
wan,reno,goodput_bps,0.050000000,1000000
wan,reno,goodput_bps,4.050000000,9000000
lan,reno,sent_bytes,0.000000000,0
lan,reno,sent_bytes,3.000000000,5000
lan,reno,timeout_bytes,1.500000000,2500
"""


def curves(path: Path, until_s: float | None = None) -> Curves:
    """Two rows of two panels."""
    series = [
        ("goodput", "bit/s", ("goodput_bps",)),
        ("sent", "B", ("sent_bytes", "timeout_bytes")),
    ]
    panels = [
        CurvesPanel(at.upper(), at, label, unit, quantities, 4000.0 if unit == "B" else None)
        for label, unit, quantities in series
        for at in ("lan", "wan")
    ]
    lines = (Line("reno", "Reno", 0), Line("udp", "UDP", 1))
    return Curves(path, "F1-time", 7, until_s, lines, 2, tuple(panels))


def test_no_curve_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "F1-time.csv"
    path.write_text(ROWS, encoding="utf-8")
    figure = render_curves(curves(path), read_points(path))
    assert len(figure.axes) == 4
    for axis in figure.axes:
        left, right = axis.get_xlim()
        bottom, top = axis.get_ylim()
        assert left == bottom == 0
        for line in axis.lines:
            data = line.get_xydata()
            # A level spans its panel in units of the axis.
            if line.get_linestyle() != "--":
                assert all(x <= right and y <= top for x, y in data)
    assert figure.axes[0].get_ylim()[1] > 9e6
    assert [axis.get_title() for axis in figure.axes] == ["LAN", "WAN", "", ""]
    assert "seed 7" in figure.axes[2].get_xlabel()
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [
        "Reno",
        "UDP",
        "timeout",
        "named by the work",
    ]
    assert render_curves(curves(path, 2.0), read_points(path)).axes[0].get_xlim() == (0, 2)


def test_a_missing_or_wrong_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "F1-time.csv"
    with pytest.raises(ResultsError, match=r"F1-time\.csv: no curves over time"):
        read_points(path)
    path.write_text("time_s,value\n1,2\n", encoding="utf-8")
    with pytest.raises(ResultsError, match="no curves over time"):
        read_points(path)
