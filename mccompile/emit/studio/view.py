"""What the page is told of a build: the analysis, with labels, links between steps, buffers and lines of C, and what
shares memory.

Invariant: figures are those of the analysis, under the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from ...base.dtypes import DTYPES
from .short_names import labels

TEXT_BYTES = 500_000  # of C that the page shows; longer code is named by its lines
_OTHERS = 3  # kernels that were not chosen
_QUANTIZES = ("QuantizeLinear", "DequantizeLinear")
_FIGURES = (
    "arena_bytes",
    "arena_bound_bytes",
    "arena_naive_bytes",
    "arena_call_by_call_bytes",
    "external_bytes",
    "weights_bytes",
    "macs",
)
_MEASURED = (
    "run_instructions",
    "run_ticks",
    "init_instructions",
    "median_us",
    "fastest_us",
    "spread",
    "runs",
    "code_bytes",
    "struct_bytes",
    "run_stack_bytes",
)
_STEP = ("op", "kernel", "function", "macs", "result", "ram_bytes", "weights_bytes", "after", "moment")
_STEP_MORE = ("stack_bytes", "code_bytes", "estimated_cycles", "signal_to_noise")
_LINES = 2  # the axis that rows of a tensor go along
_CLOCKS = ("us", "ticks", "instructions")
Lines = Sequence[Mapping[str, Any]]  # file, first, last, text and steps of a piece of C


def view(analysis: Mapping[str, Any], lines: Lines = (), title: str = "") -> dict[str, Any]:
    """The object that scripts draw from. `lines`: of C, with the steps that they are of."""
    buffers = _buffers(analysis)
    measured = analysis.get("measured", {})
    return {
        "title": title or f"{analysis['model']} for {analysis['target']}",
        "model": analysis["model"],
        "target": analysis["target"],
        "version": analysis["mccompile"],
        "options": analysis.get("options", {}),
        "figures": {key: analysis[key] for key in _FIGURES if analysis.get(key) is not None}
        | {key: measured[key] for key in _MEASURED if measured.get(key) is not None},
        "inputs": [t["name"] for t in analysis["inputs"]],
        "outputs": [t["name"] for t in analysis["outputs"]],
        "pools": _pools(analysis),
        "moments": max([b["end"] for b in analysis["buffers"]], default=1),
        "buffers": buffers,
        "steps": _steps(analysis, buffers),
        "timeline": analysis.get("timeline"),
        "lines": _shown(lines),
        "frontier": [dict(plan) | _external(analysis) for plan in analysis.get("frontier", [])],
        "smallest": analysis.get("smallest"),
        "quantized": _quantized(analysis.get("quantized")),
        "passes": _passes(analysis["passes"]),
        "moves": list(analysis["moves"]),
        "portable": list(analysis["portable"]),
        "float_in_quantized": list(analysis["float_in_quantized"]),
        "constants": len(analysis.get("constants", ())),
    }


def _external(analysis: Mapping[str, Any]) -> dict[str, int]:
    """Of each plan: inputs and outputs outside the arena are those of the model."""
    return {"external_bytes": count} if (count := analysis.get("external_bytes")) else {}


def _pools(analysis: Mapping[str, Any]) -> list[dict[str, Any]]:
    whole = {"name": "", "bytes": analysis["arena_bytes"], "bound_bytes": analysis["arena_bound_bytes"]}
    return [{key: p[key] for key in ("name", "bytes", "bound_bytes")} for p in analysis.get("pools", [whole])]


def _buffers(analysis: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [dict(buffer) for buffer in analysis["buffers"]]
    ends = {"input": analysis["inputs"], "output": analysis["outputs"], "state": analysis["states"]}
    role = {tensor["name"]: what for what, tensors in ends.items() for tensor in tensors}
    for buffer, short in zip(found, labels([b["name"] for b in found]), strict=True):
        buffer |= {"label": short, "role": role.get(buffer["name"], "tensor"), "steps": [], "type": ""}
    for number, step in enumerate(analysis["steps"]):
        for touch in step.get("touches", ()):
            if "buffer" in touch:
                buffer = found[touch["buffer"]]
                if number not in buffer["steps"]:
                    buffer["steps"].append(number)
                buffer["type"] = buffer["type"] or touch["type"]
                if touch["role"] == "scratch" and buffer["role"] != "workspace":
                    buffer["role"], buffer["label"] = "workspace", f"workspace of step {number}"
    for buffer in found:
        if (lines := _lines(buffer)) is not None:
            buffer["lines"] = lines
    for one, other in _sharing(found):
        found[one].setdefault("shares", []).append(other)
        found[other].setdefault("shares", []).append(one)
    return found


def _lines(buffer: Mapping[str, Any]) -> int | None:
    """How many lines of its tensor a ring holds; None for what is whole."""
    name, _, sizes = buffer["type"].rstrip("]").partition("[")
    shape = [int(size) if size.isdigit() else 0 for size in sizes.split(",")]
    if len(shape) <= _LINES or not all(shape) or buffer["role"] == "workspace":
        return None
    whole, held = DTYPES[name].nbytes(prod(shape)), int(buffer["high"] - buffer["low"])
    return max(1, held * shape[_LINES] // whole) if held < whole else None


def _sharing(buffers: Sequence[Mapping[str, Any]]) -> Iterable[tuple[int, int]]:
    """Buffers that have bytes in common while both are alive: results in place, and parts of others."""
    order = sorted(range(len(buffers)), key=lambda number: buffers[number]["start"])
    alive: list[int] = []
    for number in order:
        own = buffers[number]
        alive = [other for other in alive if buffers[other]["end"] > own["start"]]
        for other in alive:
            there = buffers[other]
            if there.get("pool") == own.get("pool") and there["low"] < own["high"] and own["low"] < there["high"]:
                yield other, number
        alive.append(number)


def _steps(analysis: Mapping[str, Any], buffers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    steps = analysis["steps"]
    return [
        {
            **{key: step[key] for key in _STEP},
            **{key: step[key] for key in _STEP_MORE if step.get(key) is not None},
            **{key: step[f"measured_{key}"] for key in _CLOCKS if f"measured_{key}" in step},
            "label": short,
            "nodes": step["nodes"],
            "touches": [[t["buffer"], int(t.get("written", False))] for t in step["touches"] if "buffer" in t],
            "others": [[o["kernel"], o["cycles"]] for o in step.get("other_kernels", ())[:_OTHERS]],
        }
        for step, short in zip(steps, labels([_name(step, buffers) for step in steps]), strict=True)
    ]


def _name(step: Mapping[str, Any], buffers: Sequence[Mapping[str, Any]]) -> str:
    """The tensor that a step makes, else the first node that it does the work of."""
    for touch in step["touches"]:
        if touch.get("written") and touch["role"] != "scratch" and "buffer" in touch:
            return str(buffers[touch["buffer"]]["name"])
    nodes = [node for node in step["nodes"] if node and not node.endswith(_QUANTIZES)]
    return str((nodes or step["nodes"] or [step["op"]])[0] or step["op"])


def _shown(lines: Lines) -> list[dict[str, Any]]:
    """Pieces of C, the first of them with their text: calls before functions, as long as there is room."""
    room, kept = TEXT_BYTES, []
    for piece in sorted(lines, key=lambda each: each.get("what") != "step"):
        own = {key: piece[key] for key in ("file", "first", "last", "steps", "what")}
        size = len(piece["text"].encode())
        if size <= room:
            own["text"], room = piece["text"], room - size
        kept.append(own)
    return kept


def _quantized(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    names = list(found["signal_to_noise"])
    noise = [[name, short, found["signal_to_noise"][name]] for name, short in zip(names, labels(names), strict=True)]
    return {"accuracy": found.get("accuracy"), "reference": found.get("reference", ""), "noise": noise}


def _passes(passes: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Those that changed something."""
    keys = ("nodes", "moves", "bytes")
    rows = [[p["name"], *([p.get(f"{key}_before"), p.get(f"{key}_after")] for key in keys)] for p in passes]
    return [row for row in rows if any(pair[0] != pair[1] for pair in row[1:])]
