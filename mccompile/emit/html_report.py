"""The analysis of a model as one HTML page: no script is needed to read it, none is fetched.

Charts are SVG that is laid out here; the page's script sorts tables, nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .render import render_html

_PAGE = Path(__file__).parent / "templates" / "report.html.j2"
_LONGEST = 36  # characters of a name that are shown; the whole is there on hover
_MAP_WIDTH, _MAP_HEIGHT = 1000.0, 320.0
_MOST_BARS = 40


@dataclass(frozen=True)
class Block:
    """A buffer in the memory map."""

    name: str
    bytes: int
    x: float
    y: float
    width: float
    height: float
    at_peak: bool


@dataclass(frozen=True)
class Map:
    """A pool over time: blocks, and where its size and its lower bound are."""

    title: str
    bytes: int
    bound: int
    bound_y: float
    peak_x: float  # the first moment when most is alive
    steps: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Bar:
    name: str
    text: str
    width: float  # 0 to 1
    step: int
    value: float


@dataclass(frozen=True)
class Plan:
    """A point of the frontier: a row of its table, and its place in the picture."""

    ram: int
    flash: int
    time: float  # over that of the fastest
    options: str
    x: float  # 0 to 1, by RAM
    y: float  # 0 to 1, by time


@dataclass(frozen=True)
class Column:
    """A figure of every step: a column of the table, and a chart where `chart` has a title."""

    title: str
    key: str
    chart: str
    form: str = ""
    optional: bool = False


_COLUMNS = (
    Column("MACs", "macs", "Multiply-accumulates"),
    Column("RAM", "ram_bytes", "RAM that a step reads and writes, in bytes"),
    Column("Weights", "weights_bytes", "Flash: weights in bytes"),
    Column("Code", "estimated_code_bytes", "Flash: code in bytes, estimated (steps may share it)"),
    Column("Stack", "stack_bytes", "Stack in bytes", optional=True),
    Column("Est. cycles", "estimated_cycles", "Estimated cycles", ".0f"),
    Column("Ticks", "measured_ticks", "", optional=True),
    Column("µs", "measured_us", "", ".1f", optional=True),
)


def html_report(analysis: Mapping[str, Any]) -> str:
    """The page for what `emit.analysis` says."""
    steps = analysis["steps"]
    return render_html(
        _PAGE,
        {
            "a": analysis,
            "maps": memory_maps(analysis),
            "charts": _charts(steps, analysis.get("measured")),
            "graph": _levels(steps),
            "columns": [column for column in _COLUMNS if column.optional is False or _any(steps, column.key)],
            "frontier": _frontier(analysis.get("frontier", [])),
            "short": short,
            "label": label,
            "number": lambda value: f"{value:,}".replace(",", " "),
        },
    )


def short(name: str) -> str:
    """The end of a long name, from a separator on where there is one."""
    if len(name) <= _LONGEST:
        return name
    cuts = [match.end() for match in re.finditer(r"[/;:]", name) if 4 <= len(name) - match.end() < _LONGEST]
    return f"…{name[min(cuts, default=len(name) - _LONGEST + 1) :]}"


def label(step: Mapping[str, Any]) -> str:
    """The first node of a step, and how many more it does the work of."""
    nodes = step.get("nodes") or [step.get("name") or step.get("op", "")]
    return short(nodes[0] or step.get("op", "")) + (f" + {len(nodes) - 1}" if len(nodes) > 1 else "")


def memory_maps(analysis: Mapping[str, Any]) -> list[Map]:
    """A map for each memory; what report.json says is enough."""
    return [_map(analysis, pool) for pool in _pools(analysis)]


def _pools(analysis: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    whole = {"name": "", "bytes": analysis["arena_bytes"], "bound_bytes": analysis["arena_bound_bytes"]}
    return list(analysis.get("pools", [whole]))


def _map(analysis: Mapping[str, Any], pool: Mapping[str, Any]) -> Map:
    buffers = [b for b in analysis["buffers"] if b.get("pool", "") == pool["name"]]
    end = max([b["end"] for b in analysis["buffers"]], default=1) or 1
    size = pool["bytes"] or 1
    starts = [b["start"] for b in buffers if b.get("at_peak")]

    def height(nbytes: int) -> float:
        return nbytes / size * _MAP_HEIGHT

    blocks = tuple(
        Block(
            b["name"],
            b["high"] - b["low"],
            round(b["start"] / end * _MAP_WIDTH, 2),
            round(_MAP_HEIGHT - height(b["high"]), 2),
            round((b["end"] - b["start"]) / end * _MAP_WIDTH, 2),
            round(height(b["high"] - b["low"]), 2),
            b.get("at_peak", False),
        )
        for b in buffers
    )
    title = f"Memory pool {pool['name']}" if pool["name"] else "Arena"
    bound = pool.get("bound_bytes", pool["bytes"])
    peak_x = round((max(starts, default=0) + 0.5) / end * _MAP_WIDTH, 2)
    return Map(title, pool["bytes"], bound, round(_MAP_HEIGHT - height(bound), 2), peak_x, end, blocks)


def _charts(steps: Sequence[Mapping[str, Any]], measured: Mapping[str, Any] | None) -> list[tuple[str, list[Bar]]]:
    """Where the work, the flash and the time go: the largest steps of each."""
    charts = [(column.chart, _bars(steps, column.key, column.form)) for column in _COLUMNS if column.chart]
    if measured and isinstance(measured.get("steps"), list):
        charts.append(("Measured time in µs", _bars(measured["steps"], "us", ".1f")))
        charts.append(("Measured ticks", _bars(measured["steps"], "ticks", "")))
    return [(title, bars) for title, bars in charts if bars]


def _bars(steps: Sequence[Mapping[str, Any]], key: str, form: str) -> list[Bar]:
    found = [(f"{n} {label(s)}", s.get(key) or 0, n) for n, s in enumerate(steps)]
    largest = max((value for _, value, _ in found), default=0)
    kept = sorted(found, key=lambda pair: -pair[1])[:_MOST_BARS]
    return [Bar(name, f"{value:{form or ','}}", value / largest, step, value) for name, value, step in kept if value]


def _any(steps: Sequence[Mapping[str, Any]], key: str) -> bool:
    return any(key in step for step in steps)


def _frontier(points: Sequence[Mapping[str, Any]]) -> list[Plan]:
    fastest = min((p["estimated_time"] for p in points), default=0) or 1.0
    most = max((p["ram_bytes"] for p in points), default=0) or 1
    slowest = max((p["estimated_time"] for p in points), default=0) or 1.0
    return [
        Plan(
            p["ram_bytes"],
            p["flash_bytes"],
            p["estimated_time"] / fastest,
            p["options"],
            round(p["ram_bytes"] / most, 4),
            round(p["estimated_time"] / slowest, 4),
        )
        for p in points
    ]


def _levels(steps: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Steps by how many others must run before them."""
    depth: list[int] = []
    levels: list[list[int]] = []
    for number, step in enumerate(steps):
        depth.append(1 + max((depth[before] for before in step["after"]), default=-1))
        while len(levels) <= depth[number]:
            levels.append([])
        levels[depth[number]].append(number)
    return levels
