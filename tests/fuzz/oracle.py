"""What a subject should give: onnxruntime (optimiser off) and onnx's reference where they agree; rational arithmetic
for quantized networks. Where they differ, either may be right, and that is counted. What is not exact is held to what
the reference itself does when its inputs and weights move by a millionth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from mccompile.frontend.original import widen
from mccompile.frontend.u8s8_to_u8u8 import u8s8_to_u8u8
from tests.passes.graph import exact_qdq

from .builder import EXACT_BITS
from .evaluate import INSTEAD, JUDGED, captured, evaluate
from .operators.registry import entries
from .subject import Arrays, Subject

OF_LARGEST = 3e-5
NARROW = {"float16": 2.0**-9, "bfloat16": 2.0**-6}  # of the largest element
# share of a weight that is lost at most where it is stored so; i8: of an activation that is rounded to it
ROUNDED = {"f16": 2.0**-11, "bf16": 2.0**-8, "i8": 1 / 127}
RANDOM = frozenset(title for title, entry in entries().items() if entry.family == "chance")
OPEN = frozenset({"Bernoulli", "Multinomial"})  # what they draw, the standard does not say: docs/fuzzing.md
NORMALIZATIONS = frozenset(title for title, entry in entries().items() if entry.family == "normalizations")
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
Evaluator = Callable[[Mapping[str, np.ndarray]], list[np.ndarray]]


def session(model: ModelProto) -> Any:
    """None where onnxruntime does not take the model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(u8s8_to_u8u8(model).SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception:  # its exceptions have no class in common
        return None


def _onnxruntime(model: ModelProto) -> Evaluator | None:
    found = session(model)
    return None if found is None else lambda feeds: list(found.run(None, dict(feeds)))


def _corrected(model: ModelProto) -> Evaluator | None:
    """The reference with another one for the operators that references disagree on."""
    opset = _opset(model)

    def run(self: Any, *inputs: np.ndarray | None, **_: Any) -> tuple[np.ndarray, ...]:
        node = self.onnx_node
        arrays = {name: array for name, array in zip(node.input, inputs, strict=False) if array is not None}
        results = iter(evaluate(node, arrays, opset))
        return tuple(next(results) if name else np.zeros(0) for name in node.output)

    judged = [("", *name.split("::"))[-2:] for name in JUDGED]
    instead = [type(operator, (OpRun,), {"op_domain": domain, "_run": run}) for domain, operator in judged]
    return _reference(model, instead)


def _reference(model: ModelProto, instead: Sequence[type[OpRun]] = ()) -> Evaluator | None:
    try:
        found = ReferenceEvaluator(model, new_ops=[*INSTEAD, *instead])
    except Exception:  # whatever it raises where it has gaps
        return None
    return lambda feeds: [_element(result) for result in found.run(None, dict(feeds))]


def _element(result: Any) -> np.ndarray:
    """The reference has a list of one for an optional."""
    return np.asarray(result[0] if isinstance(result, list) and len(result) == 1 else result)


def _opset(model: ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 21)


def _node_by_node(subject: Subject, moves: np.random.Generator | None = None) -> Evaluator:
    """Each node by onnxruntime where that can: for models that it does not run as a whole. With `moves`, what is
    normalized moves by a millionth: of equal elements a normalization shows the rounding of their mean alone."""
    model, drawn = subject.model, bool(RANDOM & subject.operators)
    opset = _opset(model)

    def run(feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer} | dict(feeds)
        for node in model.graph.node:
            if moves is not None and node.op_type in NORMALIZATIONS:
                operands = arrays | {node.input[0]: _nudged(arrays[node.input[0]], moves)}
            else:
                operands = arrays
            arrays |= dict(zip(node.output, evaluate(node, operands, opset, reference_first=drawn), strict=True))
        return [arrays[output.name] for output in model.graph.output]

    return run


@dataclass(frozen=True)
class Wanted:
    """Of each run, what outputs may be; empty where nobody can say."""

    runs: list[dict[str, list[np.ndarray]]]
    disagreed: bool

    @property
    def is_known(self) -> bool:
        return all(found for run in self.runs for found in run.values())


def wanted(subject: Subject, runs: Sequence[Arrays]) -> Wanted:
    names = [output.name for output in subject.model.graph.output]
    if subject.source == "qdq":
        model = subject.model
        exact: Evaluator = lambda feeds: [exact_qdq.run(model, dict(feeds))[name] for name in names]  # noqa: E731
        answers = [_played(subject, exact, names, runs)]
    else:
        makers: list[Evaluator | None] = [] if OPEN & subject.operators else [_reference(subject.model)]
        if makers and JUDGED.keys() & subject.operators:
            makers.append(_corrected(subject.model))
        if makers and not RANDOM & subject.operators:  # onnxruntime's random numbers are its own
            makers.insert(0, _onnxruntime(subject.model))
        answers = [_played(subject, maker, names, runs) for maker in makers if maker is not None]
        if makers and (None in makers or None in answers):
            answers.append(_played(subject, _node_by_node(subject), names, runs))
    answers = [answer for answer in answers if answer is not None]
    disagreed = False
    found: list[dict[str, list[np.ndarray]]] = []
    for number in range(len(runs)):
        per_run: dict[str, list[np.ndarray]] = {}
        for name in names:
            per_run[name] = [answer[number][name] for answer in answers if answer is not None]
            disagreed |= any(differs(per_run[name][0], other) for other in per_run[name][1:])
        found.append(per_run)
    return Wanted(found, disagreed)


def _played(
    subject: Subject,
    run: Evaluator,
    names: Sequence[str],
    runs: Sequence[Arrays],
    held: Mapping[str, np.dtype] = MappingProxyType({}),
) -> list[dict[str, np.ndarray]] | None:
    """What runs give. `held`: the types that states are rounded to between them."""
    now, found = {}, []
    for feeds in runs:
        try:
            with np.errstate(all="ignore"):
                results = run({**feeds, **now})
        except Exception:  # it cannot
            return None
        if not all(isinstance(result, np.ndarray) for result in results):
            return None
        found.append(dict(zip(names, results, strict=True)))
        now = {before: found[-1][after] for after, before in subject.state.items()}
        with np.errstate(over="ignore"):
            now |= {name: now[name].astype(held[name]).astype(now[name].dtype) for name in now.keys() & held.keys()}
    return found


def differs(got: np.ndarray, want: np.ndarray, more: float = 0.0) -> str:
    """What is wrong; nothing if all is right. `more`: of the largest element, besides what rounding explains."""
    if got.shape != want.shape or (got.dtype != want.dtype and want.dtype.kind not in "OSU"):
        return f"it is {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "OSU":
        same = [str(a) == str(b) for a, b in zip(got.reshape(-1), want.reshape(-1), strict=True)]
        return "" if all(same) else f"{got.tolist()} instead of {want.tolist()}"
    if want.size == 0 or got.tobytes() == want.tobytes():
        return ""
    name = want.dtype.name
    if want.dtype.kind in "iub" or name not in (*EXACT_BITS, "complex64", "complex128"):
        wrong = got != want
        return _shown(got, want, wrong) if wrong.any() else ""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    finite = np.isfinite(b)
    largest = float(np.max(np.abs(b[finite]), initial=0.0))
    least = 0.1 if name in NARROW else 1e-3  # references round in the middle of a function, too
    allowed = 1e-6 + max(NARROW.get(name, OF_LARGEST), more) * max(largest, least)
    with np.errstate(invalid="ignore", over="ignore"):
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= allowed))
    return _shown(got, want, wrong) if wrong.any() else ""


def of_no_trip(subject: Subject, got: np.ndarray, want: np.ndarray) -> bool:
    """Scan outputs of a loop that ends at once have no element, and sizes that nothing says; where a loop collects
    those of another one, the reference knows no rank either."""
    loops = subject.operators & {"Loop", "Scan"}
    alike = got.ndim == want.ndim or want.shape == (0,)
    return bool(loops) and got.size == want.size == 0 and alike and got.dtype == want.dtype


def _shown(got: np.ndarray, want: np.ndarray, wrong: np.ndarray) -> str:
    at = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {want.size} elements: at {list(at)} {got[at]} instead of {want[at]}"


def moved(
    subject: Subject, runs: Sequence[Arrays], name: str, number: int, weights_dtype: str = ""
) -> list[np.ndarray]:
    """What an output of a run becomes where inputs and weights move by a millionth, or weights as far as that type of
    them rounds."""
    found = []
    names = [output.name for output in subject.model.graph.output]
    for trial in range(6):
        chance = np.random.default_rng(trial)
        model = ModelProto()
        model.CopyFrom(subject.model)
        _nudge_weights(model, chance, ROUNDED.get(weights_dtype, 0.0))
        alone = replace(subject, model=model)
        makers: list[Evaluator | None] = [_node_by_node(alone, chance)]
        if not NORMALIZATIONS & subject.operators:
            makers = [_onnxruntime(model), _reference(model), _node_by_node(alone)]
        nudged = [{key: _nudged(array, chance) for key, array in feeds.items()} for feeds in runs]
        answers = (_played(subject, maker, names, nudged) for maker in makers if maker is not None)
        answer = next(filter(None, answers), None)
        if answer:
            found.append(answer[number][name])
    return found


def in_doubles(subject: Subject, runs: Sequence[Arrays], name: str, number: int) -> list[np.ndarray]:
    """What an output of a run is where references compute in doubles instead of floats, of those that can."""
    names = [name, *subject.state]
    wider = replace(subject, model=_only(subject.model, names))
    widen(wider.model.graph, FLOATS)
    given = [
        {key: array.astype(np.float64) if array.dtype.name in EXACT_BITS else array for key, array in feeds.items()}
        for feeds in runs
    ]
    makers = (_reference(wider.model), _corrected(wider.model), _node_by_node(wider))
    held = {entry.name: entry.dtype for entry in subject.inputs if entry.dtype.name in EXACT_BITS}
    answers = [_played(wider, maker, names, given, held) for maker in makers if maker is not None]
    return [answer[number][name] for answer in answers if answer is not None]


def _only(model: ModelProto, names: Sequence[str]) -> ModelProto:
    """A copy with the nodes that these outputs need."""
    copy, needed, nodes = ModelProto(), set(names), []
    copy.CopyFrom(model)
    for node in reversed(model.graph.node):
        if needed & set(node.output):
            nodes.append(node)
            needed |= {*node.input, *captured(node)}
    outputs = {output.name: output for output in model.graph.output}
    del copy.graph.node[:], copy.graph.output[:]
    copy.graph.node.extend(reversed(nodes))
    copy.graph.output.extend(outputs[name] for name in names)
    return copy


def _nudge_weights(model: ModelProto, chance: np.random.Generator, step: float) -> None:
    """Each use by itself: what one scale takes away, another one that is equal brings back otherwise."""
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for number, node in enumerate(model.graph.node):
        for index, name in enumerate(node.input):
            if name in weights and weights[name].dtype.name in EXACT_BITS:
                node.input[index] = f"{name}_{number}_{index}"
                nudged = _nudged(weights[name], chance, step)
                model.graph.initializer.append(numpy_helper.from_array(nudged, node.input[index]))


def _nudged(array: np.ndarray, chance: np.random.Generator, least: float = 0.0) -> np.ndarray:
    if array.dtype.name not in EXACT_BITS:
        return array
    step = max(least, {"float32": 1e-6, "float64": 1e-7, "float16": 1e-3, "bfloat16": 8e-3}[array.dtype.name])
    moves, wide = chance.uniform(-step, step, array.shape), array.astype(np.float64)
    tiny = (wide != 0) & (np.abs(wide) < float(np.finfo(np.float32).tiny))  # denormals stay some
    with np.errstate(over="ignore"):
        return np.asarray(wide * (1 + moves) + np.where(tiny, 0.0, moves * 1e-2)).astype(array.dtype)


def explains(got: np.ndarray, want: np.ndarray, others: Sequence[np.ndarray]) -> bool:
    """Do the reference's own moves reach as far as the difference?"""
    if not others or any(o.shape != want.shape for o in others) or got.shape != want.shape:
        return bool(others) and any(o.shape != want.shape for o in others)
    if want.dtype.kind in "OSU":
        return any(differs(o, want) for o in others)
    wide = [np.asarray(o, np.complex128) for o in (got, want, *others)]
    reach = np.max([_apart(o, wide[1]) for o in wide[2:]], axis=0)
    typical = np.max(reach, initial=0.0, where=np.isfinite(reach))
    return bool((_apart(wide[0], wide[1]) <= 4 * np.maximum(reach, typical * 0.25)).all())


def _apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far apart elements are; nothing where they are the same infinity or both no number."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    return np.nan_to_num(apart, nan=np.inf, posinf=np.inf)
