"""The trace: what became of every node of the file, and where every line of C and every byte of the blob comes from.

Invariant: nothing is guessed. A node without a disposition, a function that no template is known to write and a byte
that no step reads are listed as untraced, and evidence with such a list is not handed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from ..base.dims import static
from ..emit.blob import blob_bytes, data_bytes
from ..emit.package import Package
from ..frontend.listed import Listed
from ..passes.history import Disposition, History
from ..plan.ir import BLOB, Argument, Branch, Halt, Item, Measured, Plan, Repeat, RowRegion, Step, walk
from .lines import segments

SCHEMA = "mccompile-trace-1"
# What the file says itself: no operation is left once it has been read.
_READ = {
    "Constant": "a constant of the file",
    "If": "its condition is known: one branch is taken",
    "Identity": "its result is its operand",
    "Optional": "optional values are known when compiling",
    "OptionalHasElement": "optional values are known when compiling",
    "OptionalGetElement": "optional values are known when compiling",
    "ZipMap": "its labels are columns of a tensor",
}


def trace(package: Package, nodes: Sequence[Listed]) -> dict[str, Any]:
    assert package.witness is not None
    plan, history = package.plan, package.witness.history
    names = _Names(nodes)
    controls = [*_controls(plan.items)]
    steps = [_step(step, names) for step in plan.steps()]
    unread = [tensor.name for tensor in plan.inputs if not names.of(tensor.name)]
    by_name: dict[str, list[int]] = {}
    for step in plan.steps():
        for name in step.provenance:
            by_name.setdefault(name, []).append(step.number)
    control_names = {name: inside for provenance, inside in controls for name in provenance}
    dispositions = [_disposition(node, names, by_name, control_names, history) for node in nodes]
    files = {path: [*segments(path, package)] for path in sorted(package.files)}
    blob = [*_blob(plan)]
    return {
        "schema": SCHEMA,
        "prefix": plan.prefix,
        "nodes": dispositions,
        "unread_inputs": unread,
        "steps": steps,
        "controls": [{"nodes": names.nodes(provenance), "steps": inside} for provenance, inside in controls],
        "files": files,
        "blob": blob,
        "untraced": {
            "nodes": [node["position"] for node in dispositions if not node["disposition"]],
            "steps": [s["step"] for s in steps if not s["nodes"] and not _only({*unread}, s["provenance"])],
            "lines": [[path, *s["lines"]] for path, parts in files.items() for s in parts if s["what"] == "untraced"],
            "bytes": [[part["begin"], part["end"]] for part in blob if part["what"] == "untraced"],
        },
    }


class _Names:
    """From names of provenance to nodes of the file, and back."""

    def __init__(self, nodes: Sequence[Listed]) -> None:
        self.labels: dict[str, list[str]] = {}
        for node in nodes:
            self.labels.setdefault(node.name, []).append(node.position)
        self.makers = {output: node.position for node in nodes for output in node.outputs if output}
        self.readers: dict[str, list[str]] = {}
        for node in nodes:
            for value in node.inputs:
                self.readers.setdefault(value, []).append(node.position)

    def of(self, name: str) -> list[str]:
        """Positions of the nodes that a name stands for: the longest name of a node that it is, or is inside of; else
        the node that makes the tensor of that name, or those that read it."""
        parts = name.split("/")
        for count in range(len(parts), 0, -1):
            head = "/".join(parts[:count])
            if head in self.labels:
                return self.labels[head]
        for count in range(len(parts), 0, -1):
            head = "/".join(parts[:count])
            if head in self.makers:
                return [self.makers[head]]
            if head in self.readers:
                return self.readers[head]
        return []

    def nodes(self, provenance: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(position for name in provenance for position in self.of(name)))


def _step(step: Step, names: _Names) -> dict[str, Any]:
    return {
        "step": step.number,
        "kind": step.op,
        "kernel": step.function.kernel.id,
        "function": step.function.name,
        "provenance": list(step.provenance),
        "nodes": names.nodes(step.provenance),
    }


def _only(some: Set[str], names: Sequence[str]) -> bool:
    return bool(names) and some >= {*names}


def _controls(items: Iterable[Item]) -> Iterator[tuple[tuple[str, ...], list[int]]]:
    """What becomes control flow: provenance, and the steps inside. A branch without a condition is not of the network:
    `--advance` leaves its steps out."""
    for item in items:
        of_nodes = not isinstance(item, Branch) or item.condition is not None
        if of_nodes and isinstance(item, Branch | Repeat | RowRegion | Halt | Measured):
            yield item.provenance, sorted(step.number for step in walk((item,)))
        if isinstance(item, Branch):
            yield from _controls((*item.then, *item.otherwise))
        elif isinstance(item, Repeat):
            yield from _controls(item.items)


def _disposition(
    node: Listed,
    names: _Names,
    steps: Mapping[str, Sequence[int]],
    controls: Mapping[str, Sequence[int]],
    history: History,
) -> dict[str, Any]:
    own = [name for name in {**history.passes, **history.fates} if node.position in names.of(name)]
    computed = sorted({number for name in own for number in steps.get(name, ())})
    control = sorted({number for name in own if name in controls for number in controls[name]})
    found: dict[str, Any] = {
        "position": node.position,
        "name": node.name,
        "named": node.named,
        "op": node.op,
        "passes": list(dict.fromkeys(stage for name in own for stage in history.passes.get(name, ()))),
    }
    if computed:
        return found | {"disposition": "computed", "steps": computed}
    if any(name in controls for name in own):
        return found | {"disposition": "control", "steps": control}
    fates = [history.fates[name] for name in own if name in history.fates]
    if fates:
        return found | _fate(next((fate for fate in reversed(fates) if fate.into), fates[-1]))
    if not own and (node.op in _READ or node.op.startswith(("Sequence", "SplitToSequence", "ConcatFromSequence"))):
        return found | {"disposition": "read", "why": _READ.get(node.op, "sequences are known when compiling")}
    if not own and "." in node.position:
        return found | {"disposition": "read", "why": "the region that it is in is not taken, or written out"}
    return found | {"disposition": ""}


def _fate(fate: Disposition) -> dict[str, Any]:
    return {"disposition": str(fate.how), "by": fate.stage, "into": list(fate.into)}


def _blob(plan: Plan) -> Iterator[dict[str, Any]]:
    """Every byte of the blob, by what it is and which steps read it."""
    begin = blob_bytes(plan) - data_bytes(plan)
    yield {"begin": 0, "end": begin, "what": "header", "steps": []}
    reads = [*_reads(plan)]
    handed = [t for t in plan.outputs if t.address.base == BLOB]  # outputs that are constants
    spans = [(static(t.address.offset), static(t.address.offset) + t.type.max_bytes) for t in handed]
    made = [state for state in plan.states if state.made.base == BLOB]  # what the next run finds
    spans += [(static(s.made.offset), static(s.made.offset) + s.tensor.type.max_bytes) for s in made]
    spans += [(offset, offset + 1) for check in plan.checks for offset in check.offsets]
    at = 0
    for entry in plan.entries:
        end = entry.offset + entry.contents.type.max_bytes
        if entry.offset > at:
            yield {"begin": begin + at, "end": begin + entry.offset, "what": "padding", "steps": []}
        steps = sorted({number for low, high, number in reads if low < end and entry.offset < high})
        what = "constant" if steps or any(low < end and entry.offset < high for low, high in spans) else "untraced"
        place = {"begin": begin + entry.offset, "end": begin + end, "what": what, "steps": steps}
        yield place | {"name": entry.name, "packing": entry.packing}
        at = end
    if begin + at < blob_bytes(plan):
        yield {"begin": begin + at, "end": blob_bytes(plan), "what": "padding", "steps": []}


def _reads(plan: Plan) -> Iterator[tuple[int, int, int]]:
    """Bytes of the blob's data, and the step that reads them; conditions count for the steps behind them."""
    for step in plan.steps():
        for argument in step.arguments:
            if argument.address.base == BLOB:
                yield argument.low, argument.high, step.number
    for item, inside in _with_arguments(plan.items):
        if item.address.base == BLOB:
            yield from ((item.low, item.high, number) for number in inside)


def _with_arguments(items: Iterable[Item]) -> Iterator[tuple[Argument, list[int]]]:
    for item in items:
        inside = [step.number for step in walk((item,))] or [0]
        if isinstance(item, Branch):
            if item.condition is not None:
                yield item.condition, inside
            yield from _with_arguments((*item.then, *item.otherwise))
        elif isinstance(item, Repeat):
            yield from ((a, inside) for a in (item.condition, item.trips) if isinstance(a, Argument))
            yield from _with_arguments(item.items)
        elif isinstance(item, Measured):
            yield item.source, inside
