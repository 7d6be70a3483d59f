"""Values that are not finite, denormals, zeros of either sign and huge numbers in what programs are given: strays. A
graph grows over ordinary values; strays are put into some of its inputs or weights afterwards.

What is asked is DESIGN.md's rule ("Values that are not finite"): a stray reaches the elements that the standard
computes from it and no others. References say what these are. Where the rule leaves open what an operator makes of a
stray, the graph is evaluated with each answer in turn. Invariant: only elements about which all answers agree are
compared.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from . import oracle
from .builder import EXACT_BITS
from .evaluate import Failed, captured, evaluate, title
from .operators.registry import entries
from .subject import Arrays, Subject

SHARE = 0.15  # of the graphs
OF_WEIGHTS = 0.25  # of these: in a weight instead of inputs
LOST, SMALL, HUGE = "not finite", "small", "huge"
KINDS = (LOST, LOST, LOST, LOST, SMALL, HUGE)  # in one graph
VALUES: Mapping[str, Mapping[str, Sequence[float]]] = {
    LOST: {name: (np.inf, -np.inf, np.nan) for name in EXACT_BITS},
    SMALL: {
        "float32": (1e-40, -1e-42, -0.0),
        "float64": (1e-310, -1e-320, -0.0),
        "float16": (6e-8, -3e-6, -0.0),
        "bfloat16": (1e-39, -0.0),
    },
    # Their products overflow, their sums do not; 16-bit floats are summed in wider ones.
    HUGE: {"float32": (1e30, -1e30), "float64": (1e200, -1e200)},
}
FLUSHING = ("cortex-m55",)  # in vectors denormals are 0 there
# Nothing says what these make of a stray, which chooses, counts or is quantized.
OPEN = frozenset(
    {"Hardmax", "TopK", "Mod", "DeformConv", "GridSample", "MaxUnpool", "NonMaxSuppression", "Unique", "OneHot"}
) | {name for name, entry in entries().items() if entry.family in ("quantized", "learned", "chance", "microsoft")}
# Maxima of a window keep NaN (DESIGN.md), which references drop; tests/kernels/test_not_finite.py asks for it.
OPEN |= {"MaxPool", "MaxRoiPool", "GlobalMaxPool"}
# onnxruntime, which is asked about them, clips sums with a bias, and NaN is a number then.
OPEN_WITH_BIAS = frozenset({"LSTM", "GRU"})
# Their variance overflows; the reference's is the mean of squares less the square of the mean, so NaN.
OPEN_TO_HUGE = frozenset({"GroupNormalization"})
# Products with a factor that is 0 may be left out (DESIGN.md), so fewer elements may be reached.
FEWER = frozenset({"Resize", "RoiAlign", "DFT", "STFT", "AffineGrid", "MelWeightMatrix"})
WITH_ZEROS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"})  # where weights hold zeros
# Their results say which value it is: infinity of which sign, or NaN.
TOLD = frozenset(
    name for name, entry in entries().items() if entry.family in ("elementwise", "moves", "indexing", "sequences")
)
COMPARING = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsNaN", "IsInf", "Shape", "Size"})
ANSWERS: Sequence[float | None] = (None, np.nan, np.inf, -np.inf, 0.5)  # the last one: where it may be left out


class Open(Exception):
    """A stray comes where nothing says what becomes of it."""


@dataclass(frozen=True)
class Strays:
    kind: str
    in_weights: bool
    subject: Subject
    runs: Sequence[Arrays]
    wanted: oracle.Wanted

    def again(self, subject: Subject, runs: Sequence[Arrays], seed: Sequence[int]) -> Strays | None:
        """The same kind in another graph; those in weights are there already."""
        if self.in_weights:
            return _answered(subject, runs, self.kind, True)
        return put(subject, runs, seed, self.kind, False)


def drawn(subject: Subject, runs: Sequence[Arrays], seed: Sequence[int], share: float) -> Strays | None:
    """Strays for a graph that may have some, and what it gives then; None where nobody can say."""
    chance = np.random.default_rng([*seed, 8])
    if subject.source != "graph" or chance.random() > share:
        return None
    return put(subject, runs, seed, str(chance.choice(KINDS)), bool(chance.random() < OF_WEIGHTS))


def put(subject: Subject, runs: Sequence[Arrays], seed: Sequence[int], kind: str, in_weights: bool) -> Strays | None:
    if in_weights:
        changed = _in_a_weight(subject, kind, seed)
        return changed and _answered(changed, runs, kind, True)
    given = list(_in_inputs(subject, runs, kind, seed))
    return _answered(subject, given, kind, False) if any(map(_differ, given, runs)) else None


def _answered(subject: Subject, runs: Sequence[Arrays], kind: str, in_weights: bool) -> Strays | None:
    if oracle.RANDOM & subject.operators:
        return None
    wanted, others = oracle.wanted(subject, runs), _answers(subject, runs)
    if others is None or not wanted.is_known:
        return None
    found = [
        {name: [*arrays, *(answer[number][name] for answer in others)] for name, arrays in run.items()}
        for number, run in enumerate(wanted.runs)
    ]
    return Strays(kind, in_weights, subject, runs, replace(wanted, runs=found))


def _differ(some: Arrays, others: Arrays) -> bool:
    return any(some[name] is not others[name] for name in some)


def _in_inputs(subject: Subject, runs: Sequence[Arrays], kind: str, seed: Sequence[int]) -> Iterator[Arrays]:
    """Some runs have strays in some inputs, and others none: what a run is given is nothing to the next one."""
    free = [made for made in subject.inputs if made.kind != "given" and made.name not in subject.state.values()]
    for number, feeds in enumerate(runs):
        found = dict(feeds)
        for made in free:
            chance = np.random.default_rng([*seed, 9, number, zlib.crc32(made.name.encode())])
            if made.dtype.name in VALUES[kind] and feeds[made.name].size and chance.random() < 0.6:
                found[made.name] = _strewn(feeds[made.name], kind, chance)
        yield found


def _in_a_weight(subject: Subject, kind: str, seed: Sequence[int]) -> Subject | None:
    chance = np.random.default_rng([*seed, 10])
    model = ModelProto()
    model.CopyFrom(subject.model)
    tensors = [tensor for tensor in model.graph.initializer if _takes(numpy_helper.to_array(tensor), kind)]
    if not tensors:
        return None
    tensor = tensors[int(chance.integers(len(tensors)))]
    tensor.CopyFrom(numpy_helper.from_array(_strewn(numpy_helper.to_array(tensor), kind, chance), tensor.name))
    return replace(subject, model=model)


def _takes(array: np.ndarray, kind: str) -> bool:
    return array.dtype.name in VALUES[kind] and array.size > 1


def _strewn(array: np.ndarray, kind: str, chance: np.random.Generator) -> np.ndarray:
    """One to three elements, or a tenth of them."""
    found = array.copy()
    count = min(array.size, int(chance.integers(1, 4)) if chance.random() < 0.7 else 1 + array.size // 10)
    places = chance.choice(array.size, count, replace=False)
    found.reshape(-1)[places] = chance.choice(VALUES[kind][array.dtype.name], count).astype(array.dtype)
    return found


# -- what may come of them


def _answers(subject: Subject, runs: Sequence[Arrays]) -> list[list[Arrays]] | None:
    """What runs give node by node, with each of the values that an operator may make of a stray."""
    found = []
    for number in range(len(ANSWERS)):
        played = _played(subject, runs, number)
        if played is None:
            return None
        answer, is_open = played
        found.append(answer)
        if not is_open:  # the others are the same
            break
    return found


def _played(subject: Subject, runs: Sequence[Arrays], number: int) -> tuple[list[Arrays], bool] | None:
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in subject.model.graph.initializer}
    opset = next(entry.version for entry in subject.model.opset_import if entry.domain in ("", "ai.onnx"))
    now: Arrays = {}
    found, is_open = [], False
    for feeds in runs:
        arrays = {**weights, **feeds, **now}
        for node in subject.model.graph.node:
            try:
                with np.errstate(all="ignore"):
                    results = evaluate(node, arrays, opset, reference_first=number % 2 == 0)
                results, loose = _loosened(node, arrays, results, number, weights)
            except (Failed, Open):
                return None
            is_open |= loose
            arrays |= dict(zip(node.output, results, strict=True))
        found.append({output.name: arrays[output.name] for output in subject.model.graph.output})
        now = {before: arrays[after] for after, before in subject.state.items()}
    return found, is_open


def _loosened(
    node: NodeProto, arrays: Arrays, results: list[np.ndarray], number: int, weights: Arrays
) -> tuple[list[np.ndarray], bool]:
    """Results with one of the values that may stand where a stray has come; and whether there are several."""
    name, used = title(node), [arrays[n] for n in (*node.input, *captured(node)) if n in arrays]
    chosen = any(not _is_float(result) for result in results) and name not in COMPARING
    biased = name in OPEN_WITH_BIAS and len(node.input) > 3 and bool(node.input[3])
    huge = name in OPEN_TO_HUGE and not any(map(_is_lost, used))
    if (name in OPEN or chosen or biased or huge) and any(map(_is_beyond, used)):
        raise Open
    if name in TOLD or not any(map(_is_lost, (*used, *results))):
        return results, False
    fewer = name in FEWER or (name in WITH_ZEROS and any(_has_zeros(weights.get(n)) for n in node.input))
    answer = ANSWERS[number]
    if answer is None or (answer == 0.5 and not fewer):
        return results, True
    return [np.where(_lost(each), each.dtype.type(answer), each) if _is_float(each) else each for each in results], True


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.name in EXACT_BITS or array.dtype.kind == "c"


def _lost(array: np.ndarray) -> np.ndarray:
    return np.asarray(~np.isfinite(array if array.dtype.kind == "c" else array.astype(np.float64)))


def _is_lost(array: np.ndarray) -> bool:
    return _is_float(array) and bool(_lost(array).any())


def _is_beyond(array: np.ndarray) -> bool:
    """Is something not finite, or larger than what graphs grow over?"""
    return _is_float(array) and bool((~(np.abs(array.astype(np.complex128)) < 1e20)).any())


def _has_zeros(array: np.ndarray | None) -> bool:
    return array is not None and bool((array == 0).any())


# -- verdicts


def differs(got: np.ndarray, answers: Sequence[np.ndarray], kind: str, more: float = 0.0) -> str:
    """What is wrong with a result where all answers agree; nothing if all is right. `more` as in oracle.differs."""
    first = answers[0]
    if any(other.shape != first.shape or other.dtype != first.dtype for other in answers):
        return ""
    if got.shape != first.shape or (got.dtype != first.dtype and first.dtype.kind not in "OSU"):
        return f"it is {got.dtype}{list(got.shape)} instead of {first.dtype}{list(first.shape)}"
    if first.dtype.kind in "OSU":
        return oracle.differs(got, first) if not any(oracle.differs(other, first) for other in answers) else ""
    wide = np.complex128 if first.dtype.kind == "c" else np.float64 if _is_float(first) else first.dtype
    said = [each.astype(wide) for each in answers]
    found, allowed = got.astype(wide), _allowed(said, first.dtype.name, more) if _is_float(first) else np.zeros(())
    agreed = np.all([_alike(each, said[0], allowed, kind) for each in said], axis=0)
    wrong = agreed & ~_alike(found, said[0], 2 * allowed, kind)
    if _is_float(first):
        wrong |= np.all([_lost(each) for each in said], axis=0) & np.isfinite(found)
    if not wrong.any():
        return ""
    at = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{kind} values: {int(wrong.sum())} of {got.size} elements: at {list(at)} {got[at]} instead of {first[at]}"


def _allowed(said: Sequence[np.ndarray], name: str, more: float) -> np.ndarray:
    """As oracle.differs has it; what a huge value has reached is not one of the tensor's largest elements."""
    sizes = np.abs(said[0])
    ordinary = np.isfinite(sizes) & (sizes < 1e6)
    largest = float(np.max(sizes, initial=0.0, where=ordinary))
    least = 0.1 if name in oracle.NARROW else 1e-3
    share = max(oracle.NARROW.get(name, oracle.OF_LARGEST), more)
    with np.errstate(invalid="ignore", over="ignore"):
        return 1e-6 + share * np.maximum(max(largest, least), np.where(np.isfinite(sizes), sizes, 0.0))


def _alike(some: np.ndarray, others: np.ndarray, allowed: np.ndarray, kind: str) -> np.ndarray:
    """Near, the same infinity, or both NaN; an infinity that comes of a zero may have either sign."""
    if some.dtype.kind not in "fc":
        return np.asarray(some == others)
    with np.errstate(invalid="ignore", over="ignore"):
        near = (some == others) | (np.abs(some - others) <= allowed) | (np.isnan(some) & np.isnan(others))
    return np.asarray(near | (np.isinf(some) & np.isinf(others))) if kind == SMALL else np.asarray(near)
