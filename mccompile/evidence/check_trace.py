"""Checks the trace: `python check_trace.py FOLDER`; asks it: `python check_trace.py FOLDER kws.c:120`.

Needs Python 3.10 and nothing else.

FOLDER/trace.json is accepted if every node of the file has one disposition, every step comes from nodes, every line of
every file in FOLDER/code is in one segment, whose text is what it is said to be, and every byte of the blob is in one
part. Steps, calls and reads of the blob are those of memory.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

WITH_STEPS = ("computed",)
WITH_PLACE = ("folded", "replaced", "viewed", "fused")
SEGMENTS = ("function", "step", "control", "interface", "table", "frame", "runtime", "blob", "around")
PARTS = ("header", "padding", "constant")


def check(trace: dict[str, Any], memory: dict[str, Any], files: Mapping[str, bytes]) -> list[str]:
    """All problems. `files`: contents by their paths below code/."""
    try:
        calls = {call["step"]: call for call in calls_in(memory["program"])}
        problems = [*_nodes(trace), *_steps(trace, calls)]
        for path in sorted({*files, *trace["files"]}):
            if path not in trace["files"] or path not in files:
                problems.append(f"{path} is not traced, or not there")
            else:
                problems += _lines(path, trace, files[path])
        return [*problems, *_blob(trace, calls, files[trace["prefix"] + ".mcb"])]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the trace is malformed: {type(error).__name__}: {error}"]


def _nodes(trace: dict[str, Any]) -> Iterator[str]:
    positions = [node["position"] for node in trace["nodes"]]
    if len({*positions}) != len(positions):
        yield "a node is listed twice"
    by_step = {step["step"]: set(step["nodes"]) for step in trace["steps"]}
    control = {position for each in trace["controls"] for position in each["nodes"]}
    for node in trace["nodes"]:
        how, where = node["disposition"], f"node {node['position']} ({node['name']})"
        if how in WITH_STEPS:
            if not node["steps"] or any(node["position"] not in by_step[step] for step in node["steps"]):
                yield f"{where} is not computed by the steps that it names"
            mine = {step for step, nodes in by_step.items() if node["position"] in nodes}
            if mine != set(node["steps"]):
                yield f"{where} does not name the steps that compute it"
        elif how in WITH_PLACE:
            if not node["into"] or not node["by"]:
                yield f"{where} does not say what stands in its place"
        elif how == "control":
            if node["position"] not in control:
                yield f"{where} is no control flow"
        elif how not in ("unread", "read") or not (node.get("by") or node.get("why")):
            yield f"{where} has no disposition"
        if how not in WITH_STEPS and any(node["position"] in nodes for nodes in by_step.values()) and how == "unread":
            yield f"{where} is computed"


def _steps(trace: dict[str, Any], calls: dict[int, dict[str, Any]]) -> Iterator[str]:
    positions, unread = {node["position"] for node in trace["nodes"]}, set(trace["unread_inputs"])
    if [step["step"] for step in trace["steps"]] != sorted(calls):
        yield "the steps are not those of the certificate of memory"
        return
    for step in trace["steps"]:
        call = calls[step["step"]]
        if step["function"] != call["function"] or step["provenance"] != call["nodes"]:
            yield f"step {step['step']} is not that of the certificate of memory"
        given = step["provenance"] and unread.issuperset(step["provenance"])  # the program gives it, nobody reads it
        if not (step["nodes"] or given) or not positions.issuperset(step["nodes"]):
            yield f"step {step['step']} comes from no node: {step['kind']} {step['provenance']}"
    for name, found in trace["untraced"].items():
        if found:
            yield f"untraced {name}: {found[:3]}"


def _lines(path: str, trace: dict[str, Any], contents: bytes) -> Iterator[str]:
    count = contents.count(b"\n") + (not contents.endswith(b"\n"))
    segments, functions = trace["files"][path], {step["step"]: step["function"] for step in trace["steps"]}
    if [s["lines"][0] for s in segments] != [1, *(s["lines"][1] + 1 for s in segments[:-1])]:
        yield f"{path}: segments leave lines out, or overlap"
    if not segments or segments[-1]["lines"][1] != count or any(s["lines"][0] > s["lines"][1] for s in segments):
        yield f"{path}: the segments do not end with the file"
    lines = contents.decode("utf-8", "replace").split("\n") if not path.endswith(".mcb") else []
    written = ["\n".join(lines[s["lines"][0] - 1 : s["lines"][1]]) for s in segments]
    texts = {s["name"]: text for s, text in zip(segments, written, strict=True) if s["what"] == "function"}
    for s, text in zip(segments, written, strict=True):
        where = f"{path}:{s['lines'][0]}"
        names, called = {functions[step] for step in s["steps"]}, {*re.findall(r"\b(\w+)\(", text)}
        if s["what"] not in SEGMENTS or (s["what"] in ("function", "step") and not s["steps"]):
            yield f"{where} is not traced"
        if s["what"] == "step" and not names <= called:
            yield f"{where} does not call {', '.join(sorted(names))}"
        is_own = (s["name"].startswith(n) or s["name"] in _reached(n, texts) for n in names)
        if s["what"] == "function" and (s["name"] not in text or not all(is_own)):
            yield f"{where} is not the function {s['name']}"
        others = (called & {*functions.values()}) - names
        if others and s["what"] not in ("runtime", "blob", "around"):
            yield f"{where} names {sorted(others)[0]}, which is not said"


def _reached(name: str, texts: dict[str, str]) -> set[str]:
    """What a function calls, and what that calls, of those of the file."""
    found: set[str] = set()
    new = {name}
    while new:
        found |= new
        new = {*re.findall(r"\b(\w+)\(", "\n".join(texts.get(each, "") for each in new))} & texts.keys() - found
    return found


def _blob(trace: dict[str, Any], calls: dict[int, dict[str, Any]], contents: bytes) -> Iterator[str]:
    parts = trace["blob"]
    if [part["begin"] for part in parts] != [0, *(part["end"] for part in parts[:-1])]:
        yield "the parts of the blob leave bytes out, or overlap"
    if parts[-1]["end"] != len(contents) or any(part["begin"] >= part["end"] for part in parts):
        yield "the parts do not end with the blob"
    data = parts[0]["end"]
    for part in parts:
        where = f"byte {part['begin']} of the blob"
        if part["what"] not in PARTS:
            yield f"{where} is not traced"
        if part["what"] == "padding" and any(contents[part["begin"] : part["end"]]):
            yield f"{where} is no padding"
        for step in part["steps"]:
            reads = [a for a in calls[step]["arguments"] if a["base"] == "blob"]
            low, high = part["begin"] - data, part["end"] - data
            if not any(a["low"] < high and low < a["high"] for a in reads):
                yield f"{where} is not read by step {step}"


def calls_in(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for item in items:
        ((kind, inner),) = item.items()
        yield from [inner] if kind == "call" else inner["calls"] if kind == "rows" else ()
        for name in {"if": ("then", "else"), "loop": ("body",)}.get(kind, ()):
            yield from calls_in(inner[name])


def back(trace: dict[str, Any], path: str, line: int) -> list[str]:
    """Where a line of generated code comes from, in words."""
    found = [s for s in trace["files"].get(path, ()) if s["lines"][0] <= line <= s["lines"][1]]
    if not found:
        return [f"{path}:{line}: there is no such line"]
    (segment,) = found
    told = [f"{path}:{line}: {segment['what']} {segment.get('name', '')}".rstrip()]
    nodes = {node["position"]: node for node in trace["nodes"]}
    for step in (trace["steps"][number] for number in segment["steps"]):
        told.append(f"  step {step['step']}: {step['kind']}, kernel {step['kernel']}, function {step['function']}")
        for position in step["nodes"]:
            node = nodes[position]
            told.append(f"    node {position}: {node['op']} {node['name']}; passes: {', '.join(node['passes'])}")
    return told


def main(folder: Path, place: str = "") -> int:
    trace = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
    if place:
        path, _, line = place.rpartition(":")
        print("\n".join(back(trace, path, int(line))))
        return 0
    memory = json.loads((folder / "memory.json").read_text(encoding="utf-8"))
    code = folder / "code"
    files = {path.relative_to(code).as_posix(): path.read_bytes() for path in code.rglob("*") if path.is_file()}
    problems = check(trace, memory, files)
    for problem in problems or [f"{len(trace['nodes'])} nodes, {len(trace['steps'])} steps: accepted"]:
        print("trace: " + problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "."), *sys.argv[2:3]))
