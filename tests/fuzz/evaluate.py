"""What one node makes of arrays: by onnx's reference evaluator, and where that cannot, by onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, defs, helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_loop import Loop as LoopOfReference

OWN = ("com.microsoft",)  # domains that the reference does not have
IR_VERSION = 10
LAST_OF_ONNXRUNTIME = 22  # opset that every version of it has


class Loop(LoopOfReference):
    """The reference's, which joins what the trips of a loop scan, where the standard stacks it."""

    op_domain = ""

    def __init__(self, node: NodeProto, parameters: dict[str, Any]) -> None:
        super().__init__(node, parameters)
        self.trips: list[list[Any]] = []
        body = self._run_body

        def run_body(*operands: Any, **others: Any) -> list[Any]:
            results: list[Any] = body(*operands, **others)
            self.trips.append(results[len(results) - self.K :])
            return results

        self._run_body = run_body

    def _run(self, *operands: Any, **others: Any) -> tuple[Any, ...]:
        self.trips.clear()
        found = super()._run(*operands, **others)
        scanned = [np.stack(trips) for trips in zip(*self.trips, strict=True)]
        return (*found[: self.N], *scanned) if scanned else tuple(found)


class SequenceInsert(OpRun):
    """The reference's puts a tensor in front where its position is behind the last."""

    op_domain = ""

    def _run(self, sequence: list[Any], tensor: np.ndarray, position: np.ndarray | None = None) -> tuple[list[Any]]:
        place = len(sequence) if position is None else int(np.asarray(position).item())
        found = list(sequence)
        found.insert(place, tensor)
        return (found,)


INSTEAD = (Loop, SequenceInsert)  # of the reference's, which do not what the standard says


def title(node: NodeProto) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


class Failed(Exception):
    """Neither can, or the node is not valid."""


def evaluate(
    node: NodeProto, arrays: Mapping[str, np.ndarray], opset: int, reference_first: bool = True
) -> list[np.ndarray]:
    """The results of a node, whose bodies may use other values of `arrays`."""
    names = sorted({*filter(None, node.input), *(name for name in captured(node) if name in arrays)})
    model = one_node(node, names, arrays, opset)
    feeds = {name: arrays[name] for name in names}
    answers = (_by_reference, _by_onnxruntime) if reference_first else (_by_onnxruntime, _by_reference)
    if node.domain in OWN:
        answers = (_by_onnxruntime,)
    elif title(node) in JUDGED:
        answers = JUDGED[title(node)]
    for answer in answers:
        found = answer(model, feeds)
        if found is not None and all(isinstance(result, np.ndarray | np.generic) for result in found):
            return [np.asarray(result) for result in found]
    raise Failed


def one_node(node: NodeProto, names: list[str], arrays: Mapping[str, np.ndarray], opset: int) -> Any:
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(arrays[n].dtype), arrays[n].shape)
        for n in names
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "one", inputs, outputs)
    return helper.make_model(graph, opset_imports=opsets(opset), ir_version=IR_VERSION)


def opsets(opset: int) -> list[Any]:
    versions = {"": opset, "com.microsoft": 1, "ai.onnx.ml": 5 if opset >= 20 else 3}
    return [helper.make_opsetid(domain, version) for domain, version in versions.items()]


def captured(node: NodeProto) -> Iterator[str]:
    """Names that bodies of a node use."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from filter(None, inner.input)
                yield from captured(inner)
            yield from (output.name for output in attribute.g.output)


def run_nodes(nodes: list[NodeProto], last: str, arrays: Mapping[str, np.ndarray], opset: int) -> np.ndarray:
    """The tensor `last` that several nodes make."""
    used = {name for node in nodes for name in node.input}
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(arrays[n].dtype), arrays[n].shape)
        for n in sorted(used & arrays.keys())
    ]
    graph = helper.make_graph(nodes, "some", inputs, [helper.make_empty_tensor_value_info(last)])
    model = helper.make_model(graph, opset_imports=opsets(opset), ir_version=IR_VERSION)
    feeds = {n: arrays[n] for n in used & arrays.keys()}
    for answer in (_by_reference, _by_onnxruntime):
        found = answer(model, feeds)
        if found is not None and isinstance(found[0], np.ndarray | np.generic):
            return np.asarray(found[0])
    raise Failed


def _by_reference(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any] | None:
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(model, new_ops=[*INSTEAD]).run(None, dict(feeds)))
    except Exception:  # whatever it raises where it has gaps
        return None


def _by_formula(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """QLinearMatMul as the standard writes it: zero points are added to quotients that are rounded already."""
    (node,) = model.graph.node
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (feeds[name] for name in node.input)
    total = (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero)
    info = np.iinfo(y_zero.dtype)
    quotient = total * (np.float64(a_scale) * np.float64(b_scale)) / y_scale
    return [np.clip(np.rint(quotient) + y_zero, info.min, info.max).astype(y_zero.dtype)]


def _normalized(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """MeanVarianceNormalization as its function body has it, in doubles: rounding decides where elements are equal."""
    (node,) = model.graph.node
    given = {entry.name: tuple(entry.ints) for entry in node.attribute}
    (x,) = feeds.values()
    wide = x.astype(np.float64)
    axes = given.get("axes", tuple(axis for axis in (0, 2, 3) if axis < x.ndim))
    mean = wide.mean(axes, keepdims=True)
    variance = np.maximum((wide**2).mean(axes, keepdims=True) - mean**2, 0)
    return [((wide - mean) / (np.sqrt(variance) + 1e-9)).astype(x.dtype)]


def _local_response(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any]:
    """LRN as the standard writes it, in doubles."""
    (node,) = model.graph.node
    given = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    (x,) = feeds.values()
    wide, size = x.astype(np.float64), given["size"]
    before, after = (size - 1) // 2, size // 2
    squares = np.pad(wide**2, [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
    total = sum(squares[:, first : first + x.shape[1]] for first in range(size))
    divided = wide / (given.get("bias", 1.0) + given.get("alpha", 1e-4) / size * total) ** given.get("beta", 0.75)
    return [divided.astype(x.dtype)]


def _by_resize(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any] | None:
    """The reference, except where pytorch_half_pixel makes a length of 1 (it reads at -0.5, the standard at 0) or
    scales ask align_corners for parts of an element (it divides by these, the standard by the length of the result).
    Nearest elements are those of onnxruntime, of any type: the reference is off where its rounding crosses a whole
    number."""
    given = {entry.name: entry.s for entry in model.graph.node[0].attribute}
    how = given.get("coordinate_transformation_mode", b"half_pixel")
    if given.get("mode", b"nearest") == b"nearest" and how != b"tf_crop_and_resize":
        return _chosen(model, feeds)
    if how == b"align_corners" and _asks_for_parts(model, feeds):
        return None
    found = _by_reference(model, feeds)
    return None if found and how == b"pytorch_half_pixel" and 1 in found[0].shape else found


def _asks_for_parts(model: Any, feeds: Mapping[str, np.ndarray]) -> bool:
    """Do scales ask Resize for sizes that are not whole numbers?"""
    (node,) = model.graph.node
    scales = feeds.get(node.input[2]) if len(node.input) > 2 else None
    given = {entry.name: list(entry.ints) for entry in node.attribute}
    x = feeds[node.input[0]]
    if scales is None:
        return False
    return any(scale * x.shape[axis] % 1 for scale, axis in zip(scales, given.get("axes", range(x.ndim)), strict=False))


def _chosen(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any] | None:
    """What a node that only chooses elements of its first operand makes of them, by what it makes of their places."""
    (node,) = model.graph.node
    x = feeds[node.input[0]]
    places = {**feeds, node.input[0]: np.arange(x.size, dtype=np.float32).reshape(x.shape)}
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    found = _by_onnxruntime(one_node(node, list(places), places, opset), places)
    return found and [x.reshape(-1)[found[0].astype(np.int64)]]


def _by_onnxruntime(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any] | None:
    from .oracle import session

    made = session(_for_onnxruntime(model))
    try:
        return None if made is None else list(made.run(None, dict(feeds)))
    except Exception:  # its exceptions have no class in common
        return None


def _in_floats(model: Any, feeds: Mapping[str, np.ndarray]) -> list[Any] | None:
    """By onnxruntime with the floats that it has a kernel for, of a node whose floats are all of one type."""
    types = {array.dtype for array in feeds.values() if array.dtype.kind == "f"}
    if len(types) != 1:
        return None
    (dtype,) = types
    wide = {name: array.astype(np.float32) for name, array in feeds.items()}
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    found = _by_onnxruntime(one_node(model.graph.node[0], list(wide), wide, opset), wide)
    return found and [result.astype(dtype) for result in found]


def _for_onnxruntime(model: Any) -> Any:
    """With an opset that it has, where the nodes mean the same there."""
    (opset,) = (entry for entry in model.opset_import if entry.domain == "")
    if opset.version <= LAST_OF_ONNXRUNTIME:
        return model
    ours = [node for node in model.graph.node if node.domain == "" and defs.has(node.op_type)]
    since = [defs.get_schema(node.op_type, opset.version).since_version for node in ours]
    if max(since, default=0) <= LAST_OF_ONNXRUNTIME:
        opset.version = LAST_OF_ONNXRUNTIME
    return model


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
_ONNXRUNTIME = (_by_onnxruntime, _in_floats, _by_reference)
# Who is asked first about operators that references disagree on; docs/fuzzing.md says why.
JUDGED = {
    "AveragePool": _ONNXRUNTIME,
    "ConvTranspose": _ONNXRUNTIME,
    "DynamicQuantizeLinear": _ONNXRUNTIME,
    "GlobalMaxPool": _ONNXRUNTIME,
    "GRU": _ONNXRUNTIME,
    "LRN": (_local_response,),
    "LSTM": _ONNXRUNTIME,
    "LpPool": _ONNXRUNTIME,
    "MaxPool": _ONNXRUNTIME,
    "MeanVarianceNormalization": (_normalized,),
    "QLinearConv": _ONNXRUNTIME,
    "QLinearMatMul": (_by_formula,),
    "RNN": _ONNXRUNTIME,
    "Resize": (_by_resize, _by_onnxruntime),
    "StringSplit": (_by_reference, _by_onnxruntime),
    "ai.onnx.ml::SVMClassifier": _ONNXRUNTIME,
    **{f"Reduce{name}": (_by_reference, _by_onnxruntime) for name in _REDUCTIONS},
}
