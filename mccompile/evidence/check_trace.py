"""Checks the trace: `python check_trace.py FOLDER`; asks it: `python check_trace.py FOLDER kws.c:120`.

Needs Python 3.10 and nothing else.

FOLDER/trace.json is accepted if every node of the file has one disposition, every step comes from nodes, every line of
every file in FOLDER/code is in one segment, whose text is what it is said to be and whose steps are those that call it,
and every byte of the blob is in one part. Steps, regions, calls and reads of the blob are those of memory.json.
Taken on trust: which passes a node went through, names and operators of nodes, and names of constants.
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
WHOLE = ("runtime", "blob", "around")  # files
SEGMENTS = ("function", "step", "control", "interface", "table", "frame", "runtime", "blob", "around")
PARTS = ("header", "padding", "constant")


def check(trace: dict[str, Any], memory: dict[str, Any], files: Mapping[str, bytes]) -> list[str]:
    """All problems. `files`: contents by their paths below code/."""
    try:
        calls = {call["step"]: call for call in calls_in(memory["program"])}
        problems = [*_nodes(trace), *_steps(trace, calls), *_regions(trace, memory["program"])]
        for path in sorted({*files, *trace["files"]}):
            if path not in trace["files"] or path not in files:
                problems.append(f"{path} is not traced, or not there")
            else:
                problems += _lines(path, trace, calls, files[path])
        return [*problems, *_blob(trace, memory["program"], files[trace["prefix"] + ".mcb"])]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [f"the trace is malformed: {type(error).__name__}: {error}"]


def _nodes(trace: dict[str, Any]) -> Iterator[str]:
    positions = [node["position"] for node in trace["nodes"]]
    if len({*positions}) != len(positions):
        yield "a node is listed twice"
    next_of: dict[str, int] = {}  # of each graph: nodes are numbered, those in regions behind the node and its region
    for position in positions:
        graph, _, number = position.rpartition(".")
        if number != str(next_of.get(graph, 0)) or (graph and graph.rsplit(".", 1)[0] not in positions):
            yield f"a node in front of node {position} is left out"
        next_of[graph] = next_of.get(graph, 0) + 1
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
                yield f"{where} is not control flow"
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
        if any(
            step[own] != call[its] for own, its in (("function", "function"), ("provenance", "nodes"), ("kind", "kind"))
        ):
            yield f"step {step['step']} is not that of the certificate of memory"
        given = step["provenance"] and unread.issuperset(step["provenance"])  # the program gives it, nobody reads it
        if not (step["nodes"] or given) or not positions.issuperset(step["nodes"]):
            yield f"step {step['step']} comes from no node: {step['kind']} {step['provenance']}"
    for name, found in trace["untraced"].items():
        if found:
            yield f"untraced {name}: {found[:3]}"


def _regions(trace: dict[str, Any], items: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Control flow has the steps that are inside of it."""
    positions = {node["position"] for node in trace["nodes"]}
    regions, by_step = [*regions_in(items)], {step["step"]: step["nodes"] for step in trace["steps"]}
    inside = [sorted(call["step"] for call in calls_in([item])) for item in regions]
    if [each["steps"] for each in trace["controls"]] != inside:
        yield "control flow is not that of the certificate of memory"
        return
    for each, item in zip(trace["controls"], regions, strict=True):
        needed = {node for step in each["steps"] for node in by_step[step]} if "rows" in item else set()
        if not needed <= {*each["nodes"]} <= positions:
            yield f"control flow of the steps {each['steps']} does not come from the nodes {each['nodes']}"


def _lines(path: str, trace: dict[str, Any], calls: dict[int, dict[str, Any]], contents: bytes) -> Iterator[str]:
    count = contents.count(b"\n") + (not contents.endswith(b"\n"))
    segments, functions = trace["files"][path], {step["step"]: step["function"] for step in trace["steps"]}
    if [s["lines"][0] for s in segments] != [1, *(s["lines"][1] + 1 for s in segments[:-1])]:
        yield f"{path}: segments leave lines out, or overlap"
    if not segments or segments[-1]["lines"][1] != count or any(s["lines"][0] > s["lines"][1] for s in segments):
        yield f"{path}: the segments do not end with the file"
    lines = contents.decode("utf-8", "replace").split("\n") if not path.endswith(".mcb") else []
    written = ["\n".join(lines[s["lines"][0] - 1 : s["lines"][1]]) for s in segments]
    texts = {s["name"]: text for s, text in zip(segments, written, strict=True) if s["what"] == "function"}
    depth = 0  # of braces: what stands between steps is inside of a function
    for number, (s, text) in enumerate(zip(segments, written, strict=True)):
        where, what = f"{path}:{s['lines'][0]}", s["what"]
        names, called = {functions[step] for step in s["steps"]}, {*re.findall(r"\b(\w+)\(", text)}
        if what not in SEGMENTS or (what in ("function", "step", "control") and not s["steps"]):
            yield f"{where} is not traced"
        if what in WHOLE and len(segments) > 1:
            yield f"{where} is not a file of its own"
        if what == "step" and not (len(s["steps"]) == 1 and _calls(calls[s["steps"][0]], text)):
            yield f"{where} does not call {', '.join(sorted(names))}"
        if what == "function" and (s["name"] not in text or s["steps"] != _of_function(s["name"], functions, texts)):
            yield f"{where} is not the function {s['name']}"
        if what in ("step", "control") and s["steps"] != _around(number, segments):
            yield f"{where} does not stand between the steps {s['steps']}"
        opened = re.search(r"^[A-Za-z][^;={]*?\b(\w+)\(", text, re.M)
        before = segments[number - 1].get("name") if number else None
        if what in ("step", "control") and s["name"] != (opened[1] if opened else before):
            yield f"{where} is not a part of {s['name']}"
        if what == "interface" and len(segments) > 1 and not (opened and opened[1] == s["name"]):
            yield f"{where} is not the function {s['name']}"
        depth, inside = depth + text.count("{") - text.count("}"), depth
        if what not in ("step", "control") and path.endswith(".c") and (inside or depth):
            yield f"{where} does not begin and end outside of functions"
        if what not in ("function", "step", "control") and s["steps"]:
            yield f"{where} comes from no step"
        others = (called & {*functions.values()}) - names
        if others and what not in WHOLE:
            yield f"{where} names {sorted(others)[0]}, which is not said"


def _calls(call: dict[str, Any], text: str) -> bool:
    """Is a call made with the arguments that it has in the certificate of memory?"""
    bare = " ".join(re.sub(r"/\*.*?\*/", "", text, flags=re.S).split())
    wanted = ", ".join(a["c"] for a in call["arguments"] if a["c"] is not None)
    return f"{call['function']}({wanted}" in re.sub(r" \+ piece \* \d+", "", bare).replace("( ", "(")


def _of_function(name: str, functions: dict[int, str], texts: dict[str, str]) -> list[int]:
    """The steps that call a function, or the one that it is a part of; else those whose functions reach it."""
    own = max((n for n in functions.values() if name == n or name.startswith(f"{n}_")), key=len, default="")
    if own:
        return sorted(step for step, n in functions.items() if n == own)
    users = {n for n in {*functions.values()} if name in _reached(n, texts)}
    return sorted(step for step, n in functions.items() if n in users)


def _around(number: int, segments: list[dict[str, Any]]) -> list[int]:
    """A step's own; of what stands between the calls of steps in a function, the one before and the one behind."""
    s = segments[number]
    if s["what"] == "step":
        return sorted({*s["steps"]})
    near = [each for each in segments[max(0, number - 1) : number + 2] if each["what"] == "step"]
    return sorted({step for each in near if each["name"] == s["name"] for step in each["steps"]})


def _reached(name: str, texts: dict[str, str]) -> set[str]:
    """What a function calls, and what that calls, of those of the file."""
    found: set[str] = set()
    new = {name}
    while new:
        found |= new
        new = {*re.findall(r"\b(\w+)\(", "\n".join(texts.get(each, "") for each in new))} & texts.keys() - found
    return found


def _blob(trace: dict[str, Any], items: list[dict[str, Any]], contents: bytes) -> Iterator[str]:
    parts = trace["blob"]
    if [part["begin"] for part in parts] != [0, *(part["end"] for part in parts[:-1])]:
        yield "the parts of the blob leave bytes out, or overlap"
    if parts[-1]["end"] != len(contents) or any(part["begin"] >= part["end"] for part in parts):
        yield "the parts do not end with the blob"
    data = parts[0]["end"]
    if data != int.from_bytes(contents[32:40], "little"):
        yield "the header is not as long as it says"
    blobs = [(a, call["step"]) for call in calls_in(items) for a in call["arguments"] if a["base"] == "blob"]
    reads = [(a["low"] + data, a["high"] + data, step) for a, step in blobs]
    for low, high, step in reads:
        if low < high and not any(part["begin"] <= low and high <= part["end"] for part in parts):
            yield f"step {step} reads bytes {low} to {high} of the blob, which are not of one constant"
    regions = [item for item in regions_in(items) if "rows" not in item]  # which may read what they are decided by
    decided = {call["step"] for call in calls_in(regions)} | ({0} if regions else set())
    for part in parts:
        where = f"byte {part['begin']} of the blob"
        if part["what"] not in PARTS or (part["what"] == "constant" and not {"name", "packing"} <= part.keys()):
            yield f"{where} is not traced"
        if part["what"] == "padding" and any(contents[part["begin"] : part["end"]]):
            yield f"{where} is not padding"
        readers = {step for low, high, step in reads if low < part["end"] and part["begin"] < high}
        readers = readers if part["what"] == "constant" else set()
        if part["steps"] != sorted({*part["steps"]}) or not readers <= {*part["steps"]} <= readers | decided:
            yield f"{where} is not read by the steps {part['steps']}"


def regions_in(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """All but calls, each in front of those inside of it."""
    for item in items:
        ((kind, inner),) = item.items()
        yield from [] if kind == "call" else [item]
        for name in {"if": ("then", "else"), "loop": ("body",)}.get(kind, ()):
            yield from regions_in(inner[name])


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
