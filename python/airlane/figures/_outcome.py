"""Reads what `airlane study run` writes about a work, `WORK/outcome.json`, into records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airlane.errors import AirlaneError

SCHEMA = 1


class ResultsError(AirlaneError, ValueError):
    """A folder of results, or an id in it, is not what was requested."""


@dataclass(frozen=True, slots=True)
class Value:
    """A mean over repetitions, in the unit of its panel.

    Attributes:
        value: The mean.
        half_width: Half its 95 % confidence interval; None for a single repetition.
    """

    value: float
    half_width: float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a figure; `slot` is the same for the same `id` in all figures of a work."""

    id: str
    label: str
    slot: int


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing area.

    Attributes:
        title: Which part of the study it shows; empty if all of it.
        y: The expression that is drawn.
        y_label: What is drawn.
        unit: Of the values: `bit/s`, `s`, `ratio`, or nothing.
        values: By line, then by place on the x axis; None where nothing could be measured.
    """

    title: str
    y: str
    y_label: str
    unit: str
    values: tuple[tuple[Value | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A printed value of a line at a place on the x axis, and the band that counts as equal.

    Attributes:
        panel: Index of the panel.
        line: Index of the line in it.
        at: Index of the place on the x axis.
        value: The printed value.
        band: A measured value between these counts as the printed one.
    """

    panel: int
    line: int
    at: int
    value: float
    band: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The numbers of a figure with their names; `columns` panels stand side by side.

    `x_ids` are the places by the names that claims use.
    """

    kind: str
    width: str
    log: bool
    x_label: str
    x: tuple[str, ...]
    x_ids: tuple[str, ...]
    lines_label: str
    lines: tuple[Line, ...]
    columns: int
    panels: tuple[Panel, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class CurvesPanel:
    """One drawing area of curves over time.

    Attributes:
        title: Which part of the study it shows; empty if all of it.
        at: The column `at` of its rows in the file.
        y_label: What is drawn.
        unit: Of the values: `B`, `bit/s` or `s`.
        quantities: What it shows of the file: the curve, then marks.
        level: Where a dashed line stands; None for none.
    """

    title: str
    at: str
    y_label: str
    unit: str
    quantities: tuple[str, ...]
    level: float | None


@dataclass(frozen=True, slots=True)
class Curves:
    """What a study draws over the time of one run; `columns` panels stand side by side.

    Attributes:
        path: The file with the curves.
        name: Of its picture.
        seed: Of the run, which is the first repetition.
        until_s: Where the time axis ends; None for the end of the curves.
        lines: A curve for each.
        columns: How many panels stand side by side.
        panels: Row by row.
    """

    path: Path
    name: str
    seed: int
    until_s: float | None
    lines: tuple[Line, ...]
    columns: int
    panels: tuple[CurvesPanel, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """A figure or table of a work.

    Attributes:
        work: Id of the work.
        id: Its own.
        title: What it shows.
        scenarios: How many it runs.
        drawing: None if it runs no scenario of its own, or reads nothing of them.
        curves: What it draws over time; None for nothing.
    """

    work: str
    id: str
    title: str
    scenarios: int
    drawing: Drawing | None
    curves: Curves | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A published claim and its outcome.

    Attributes:
        id: Its name.
        study: The study that judges it.
        kind: `quantitative` or `qualitative`.
        published: What was published.
        measured: What was measured, in words.
        verdict: `holds`, `consistent`, `near`, `misses`, `source-inconsistent`, or None if
            nothing is compared.
        apart: Why it is not counted, as `class: reason`; None if it is.
        note: Why it misses, as far as is known.
        checks: As they are written in the study.
        unjudged: Why it was not judged; None if it was.
    """

    id: str
    study: str
    kind: str
    published: str
    measured: str
    verdict: str | None
    apart: str | None
    note: str | None
    checks: tuple[str, ...]
    unjudged: str | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another choice where the work specifies none: counts, and the verdicts that it changes."""

    name: str
    counts: Mapping[str, int]
    moved: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class GridPoint:
    """Choices that applied together, each a place and its value, and the outcome of the claims.

    Attributes:
        choices: Path into scenarios and value; None for an alternative that has a name.
        verdicts: By claim; None if nothing was compared.
        agree: Comparisons that agree.
        all: All of them.
    """

    choices: tuple[tuple[str, str | None], ...]
    verdicts: Mapping[str, str | None]
    agree: int
    all: int


@dataclass(frozen=True, slots=True)
class Grid:
    """A factorial experiment of a work: claims in the order of its studies, and all settings."""

    work: str
    claims: tuple[str, ...]
    points: tuple[GridPoint, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All results about a work.

    Attributes:
        work: Its id.
        title: The publication.
        version: Version of the code that simulated.
        runs: Repetitions of every scenario.
        seed: Seed of all random streams.
        asked: The work, or the studies of it, that `airlane study run` was asked for.
        options: The options that give the same results again.
        counts: Claims that count, by verdict.
        claims: Those that count, then those that do not, then those that were not judged.
        studies: In the order of their numbers.
        alternatives: Other choices that ran, too.
        grid: Several choices that ran without the committed ones; None if there were none.
    """

    work: str
    title: str
    version: str
    runs: int
    seed: int
    asked: tuple[str, ...]
    options: tuple[str, ...]
    counts: Mapping[str, int]
    claims: tuple[Claim, ...]
    studies: tuple[Study, ...]
    alternatives: tuple[Alternative, ...]
    grid: Grid | None


def read(folder: str | Path) -> list[Outcome]:
    """Read the results in a folder about each of its works.

    Args:
        folder: What `airlane study run --out` was given.

    Returns:
        One outcome for each work, by name.

    Raises:
        ResultsError: If the folder has no results, or of another version.
    """
    folder = Path(folder)
    paths = sorted(folder.glob("*/outcome.json"))
    if not paths:
        if (folder / "manifest.json").is_file():
            raise ResultsError(
                f"{folder}: no WORK/outcome.json yet; `airlane study report {folder}` writes it"
                " when all shards are there"
            )
        raise ResultsError(
            f"{folder}: no results of studies here; `airlane study run ID --out {folder}`"
            " makes some"
        )
    return [_outcome(path) for path in paths]


def find(folder: str | Path, figure: str) -> tuple[Outcome, Study]:
    """Find a study by `ID`, or by `WORK/ID` where two works share one.

    Raises:
        ResultsError: If there is none of that name, or more than one.
    """
    outcomes = read(folder)
    work, _, name = figure.rpartition("/")
    found = [
        (outcome, study)
        for outcome in outcomes
        if work in ("", outcome.work)
        for study in outcome.studies
        if study.id == name
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = " or ".join(f"{study.work}/{study.id}" for _, study in found)
        raise ResultsError(f'{folder}: "{figure}" may be {names}')
    known = ", ".join(f"{o.work}/{s.id}" for o in outcomes for s in o.studies)
    raise ResultsError(f'{folder}: no study "{figure}"; there are: {known}')


def _outcome(path: Path) -> Outcome:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            raise ResultsError(
                f"{path}: of schema {data['schema']}, where this package reads {SCHEMA};"
                " use the package and the program of one version"
            )
        work = data["work"]
        return Outcome(
            work=work,
            title=data["title"],
            version=data["version"],
            runs=data["runs"],
            seed=data["seed"],
            asked=tuple(data["asked"]),
            options=tuple(data["options"]),
            counts=data["counts"],
            claims=(
                *(_claim(claim) for claim in data["claims"] + data["apart"]),
                *(_unjudged(claim) for claim in data.get("unjudged", [])),
            ),
            studies=tuple(
                Study(
                    work,
                    study["id"],
                    study["title"],
                    len(study["points"]),
                    None if study["figure"] is None else _drawing(study["figure"]),
                    _curves(path.parent, study.get("over_time")),
                )
                for study in data["studies"]
            ),
            alternatives=tuple(
                Alternative(a["name"], a["counts"], tuple(_claim(c) for c in a["moved"]))
                for a in data["alternatives"]
            ),
            grid=_grid(data),
        )
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ResultsError(
            f"{path}: not what `airlane study run` writes ({type(error).__name__}: {error});"
            " run it again"
        ) from error


def _claim(data: Mapping[str, Any]) -> Claim:
    kind = data.get("class")
    apart = None if kind is None else kind.replace("-", " ")
    if apart is not None and data.get("reason"):
        apart = f"{apart}: {data['reason']}"
    return Claim(
        id=data["id"],
        study=data["study"],
        kind=data["kind"],
        published=data["published"],
        measured=data["measured"],
        verdict=data["verdict"],
        apart=apart,
        note=data.get("note"),
        checks=tuple(data["checks"]),
    )


def _unjudged(data: Mapping[str, Any]) -> Claim:
    return Claim(
        id=data["id"],
        study=data["study"],
        kind="",
        published=data["published"],
        measured="",
        verdict=None,
        apart=None,
        note=None,
        checks=(),
        unjudged=f"it reads {', '.join(data['reads'])}, which --figure-only left out",
    )


def _grid(data: Mapping[str, Any]) -> Grid | None:
    points = tuple(
        GridPoint(
            tuple((choice["place"], choice.get("value")) for choice in point["choices"]),
            point["verdicts"],
            point["agree"],
            point["all"],
        )
        for point in data.get("grid", [])
    )
    claims = tuple(claim["id"] for claim in data["claims"])
    return Grid(data["work"], claims, points) if points and claims else None


def _drawing(data: Mapping[str, Any]) -> Drawing:
    def value(cell: Mapping[str, Any] | None) -> Value | None:
        return None if cell is None else Value(cell["value"], cell["ci95_half_width"])

    return Drawing(
        kind=data["kind"],
        width=data["width"],
        log=data["log"],
        x_label=data["x_label"],
        x=tuple(data["x"]),
        x_ids=tuple(data["x_ids"]),
        lines_label=data["lines_label"],
        lines=_lines(data),
        columns=data["columns"],
        panels=tuple(
            Panel(
                panel["title"],
                panel["y"],
                panel["y_label"],
                panel["unit"],
                tuple(tuple(value(cell) for cell in row) for row in panel["values"]),
            )
            for panel in data["panels"]
        ),
        marks=tuple(
            Mark(mark["panel"], mark["line"], mark["x"], mark["value"], tuple(mark["band"]))
            for mark in data["marks"]
        ),
    )


def _lines(data: Mapping[str, Any]) -> tuple[Line, ...]:
    return tuple(Line(line["id"], line["label"], line["slot"]) for line in data["lines"])


def _curves(folder: Path, data: Mapping[str, Any] | None) -> Curves | None:
    if data is None:
        return None
    return Curves(
        path=folder / f"{data['name']}.csv",
        name=data["name"],
        seed=data["seed"],
        until_s=data["until_s"],
        lines=_lines(data),
        columns=data["columns"],
        panels=tuple(
            CurvesPanel(
                panel["title"],
                panel["at"],
                panel["y_label"],
                panel["unit"],
                tuple(panel["quantities"]),
                panel["level"],
            )
            for panel in data["panels"]
        ),
    )
