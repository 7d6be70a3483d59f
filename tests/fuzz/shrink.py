"""Makes a failing program small: leaves out options, outputs and nodes, as long as the verdict stays the same kind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

from onnx import ModelProto

from mccompile.driver import Options

from . import oracle, trial
from .evaluate import captured
from .subject import Arrays, Subject, trained_anew
from .trial import Trial


def shrunk(failing: Trial, folder: Path, seconds: float) -> Trial:
    """The smallest that was found in this time."""
    best, end = failing, time.monotonic() + seconds
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for candidate in _smaller(best):
            if time.monotonic() > end:
                break
            if _fails_alike(candidate, failing, folder):
                best, changed = candidate, True
                break
    return best


def _fails_alike(candidate: Trial, failing: Trial, folder: Path) -> bool:
    try:
        runs = candidate.subject.runs([candidate.seed, candidate.number])
        candidate.hand_over(runs)
        if failing.renewed is not None:
            candidate.renewed = trained_anew(candidate.subject, candidate.seed, candidate.number)
            if candidate.renewed is None:
                return False
        candidate.wanted = oracle.wanted(candidate.renewed or candidate.subject, candidate.runs)
        if failing.strays and not _strewn(candidate, runs):
            return False
        if failing.verdict and failing.verdict.kind == trial.WRONG and not candidate.wanted.is_known:
            return False
        trial.run([candidate], folder)
    except Exception:  # a candidate that is not a model any more
        return False
    assert candidate.verdict is not None and failing.verdict is not None
    return candidate.verdict.kind == failing.verdict.kind


def _strewn(candidate: Trial, runs: Sequence[Arrays]) -> bool:
    """Puts strays where they are drawn for what is left."""
    assert candidate.strays is not None
    again = candidate.strays.again(candidate.subject, runs, [candidate.seed, candidate.number])
    if again is not None:
        candidate.runs, candidate.wanted = again.runs, again.wanted
    return again is not None


def _smaller(best: Trial) -> Iterator[Trial]:
    for subject in _subjects(best.subject):
        named = {output.name for output in subject.model.graph.output}
        options = replace(best.options, observe=(), state=dict(subject.state))
        taken = {made.name for made in subject.inputs}
        options = replace(options, inputs={n: f for n, f in options.inputs.items() if n in taken})
        options = replace(options, outputs={n: f for n, f in options.outputs.items() if n in named})
        yield replace(best, subject=subject, options=options, item=None, verdict=None)
    if best.way:
        yield replace(best, way="", item=None, verdict=None)
    for options in _options(best.options):
        yield replace(best, options=options, item=None, verdict=None)


def _options(options: Options) -> Iterator[Options]:
    plain = Options()
    for field in fields(Options):
        if field.name in ("dims", "bounds", "state", "target"):
            continue
        if getattr(options, field.name) != getattr(plain, field.name):
            yield replace(options, **{field.name: getattr(plain, field.name)})


def _subjects(subject: Subject) -> Iterator[Subject]:
    model = subject.model
    count = len(model.graph.node)
    if subject.source != "qdq":
        for start in range(count):  # what a late node makes becomes an output, all that follows goes
            yield from _kept(subject, list(range(start + 1)), [model.graph.node[start].output[0]])
    if len(model.graph.output) > 1:
        for output in model.graph.output:
            if output.name not in subject.state:
                left = [o.name for o in model.graph.output if o.name != output.name]
                yield from _kept(subject, list(range(count)), left)
    if subject.state:
        yield replace(subject, state={})
    if subject.source != "qdq":
        for number in reversed(range(count)):  # a node's result becomes an input
            yield from _cut(subject, number)


def _kept(subject: Subject, numbers: list[int], outputs: list[str]) -> Iterator[Subject]:
    """The same with these nodes and outputs, and only what they need."""
    needed = {*outputs, *subject.state}
    nodes = []
    for number in reversed(numbers):
        node = subject.model.graph.node[number]
        if needed & set(node.output):
            nodes.append(node)
            needed |= {*node.input, *captured(node)}
    if len(nodes) == len(subject.model.graph.node) and len(outputs) == len(subject.model.graph.output):
        return
    made = ModelProto()
    made.CopyFrom(subject.model)
    graph = made.graph
    infos = {info.name: info for info in (*graph.output, *_inferred(subject.model))}
    if not all(name in infos for name in (*outputs, *subject.state)):
        return
    kept = [info for info in graph.input if info.name in needed]
    tensors = [tensor for tensor in graph.initializer if tensor.name in needed]
    outs = [infos[name] for name in dict.fromkeys([*outputs, *subject.state])]
    for entries, left in (("node", nodes[::-1]), ("input", kept), ("initializer", tensors), ("output", outs)):
        copies = [type(entry).FromString(entry.SerializeToString()) for entry in left]
        del getattr(graph, entries)[:]
        getattr(graph, entries).extend(copies)
    names = {info.name for info in graph.input}
    yield replace(
        subject,
        model=made,
        inputs=tuple(i for i in subject.inputs if i.name in names),
        exact=subject.exact | frozenset(o.name for o in graph.output if o.name not in _outputs(subject)),
        state={after: before for after, before in subject.state.items() if before in names},
        bounds={name: bound for name, bound in subject.bounds.items()},
    )


def _outputs(subject: Subject) -> set[str]:
    return {output.name for output in subject.model.graph.output}


def _inferred(model: ModelProto) -> list[object]:
    from onnx import shape_inference

    try:
        return list(shape_inference.infer_shapes(model).graph.value_info)
    except Exception:  # it has gaps
        return []


def _cut(subject: Subject, number: int) -> Iterator[Subject]:
    from onnx import helper

    from .builder import EXACT_BITS, Input

    node = subject.model.graph.node[number]
    if len(node.output) != 1 or node.output[0] in _outputs(subject):
        return
    info = next((i for i in _inferred(subject.model) if i.name == node.output[0]), None)  # type: ignore[attr-defined]
    if info is None or not info.type.tensor_type.elem_type:  # type: ignore[attr-defined]
        return  # not known, or no tensor
    dims = [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]  # type: ignore[attr-defined]
    if any(not isinstance(d, int) and d not in subject.free for d in dims) or 0 in dims:
        return
    dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)  # type: ignore[attr-defined]
    kind = "exact" if dtype.name in EXACT_BITS else "bool" if dtype.kind == "b" else "integer"
    if dtype.kind not in "biuf" and dtype.name not in EXACT_BITS:
        return
    made = ModelProto()
    made.CopyFrom(subject.model)
    del made.graph.node[number]
    made.graph.input.append(helper.make_tensor_value_info(node.output[0], helper.np_dtype_to_tensor_dtype(dtype), dims))
    entry = Input(node.output[0], dtype, tuple(dims), kind, 0, 1)
    changed = replace(subject, model=made, inputs=(*subject.inputs, entry))
    outputs = [o.name for o in made.graph.output]
    found = list(_kept(changed, list(range(len(made.graph.node))), outputs))
    yield found[0] if found else changed
