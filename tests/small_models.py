"""Small networks that tests compile: each shows one thing that can go wrong. Weights come from a seed and are as good
as any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto

FLOAT = TensorProto.FLOAT
PLAIN = Options()


def model(
    name: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[tuple[str, Sequence[int | str]]],
    outputs: Sequence[tuple[str, Sequence[int | str]]],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 17,
) -> ModelProto:
    """A model over floats."""
    graph = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(made)
    return made


def floats(seed: int, *shape: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) / 2).astype(np.float32)


def node(op: str, ins: str, outs: str, **attributes: object) -> NodeProto:
    """`node("Add", "a b", "y")`; the node is called after its first result."""
    return helper.make_node(op, ins.split(), outs.split(), name=f"{outs.split()[0]}/{op}", **attributes)


def conv(seed: int = 0) -> ModelProto:
    """Convolution, bias, activation, residual: what fusing is about."""
    nodes = [
        node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2", "c2", pads=[1, 1, 1, 1]),
        node("Add", "c2 r1", "sum"),
        node("Relu", "sum", "y"),
    ]
    weights = {"w1": floats(seed, 4, 2, 3, 3), "b1": floats(seed + 1, 4), "w2": floats(seed + 2, 4, 4, 3, 3)}
    return model("conv", nodes, [("x", (1, 2, 6, 6))], [("y", (1, 4, 6, 6))], weights)


def mlp(seed: int = 0) -> ModelProto:
    """Two dense layers with names that are not C identifiers."""
    nodes = [
        node("MatMul", "in/put:0 w1", "m1"),
        node("Add", "m1 b1", "a1"),
        node("Tanh", "a1", "t1"),
        node("MatMul", "t1 w2", "out.put"),
    ]
    weights = {"w1": floats(seed, 8, 16), "b1": floats(seed + 1, 16), "w2": floats(seed + 2, 16, 3)}
    return model("mlp", nodes, [("in/put:0", (2, 8))], [("out.put", (2, 3))], weights)


def branches(seed: int = 0) -> ModelProto:
    """Branches that are concatenated, transposed and split: views, parts written in place, two outputs."""
    nodes = [
        node("Conv", "x w1", "left"),
        node("Sigmoid", "x", "right"),
        node("Concat", "left right x", "joined", axis=1),
        node("Transpose", "joined", "turned", perm=[0, 2, 3, 1]),
        node("Split", "turned sizes", "first second", axis=3),
        node("Mul", "first first", "y"),
        node("Add", "second bias", "z"),
    ]
    weights = {"w1": floats(seed, 3, 3, 1, 1), "bias": floats(seed + 1, 5), "sizes": np.array([4, 5], np.int64)}
    return model("branches", nodes, [("x", (1, 3, 4, 5))], [("y", (1, 4, 5, 4)), ("z", (1, 4, 5, 5))], weights)


def passthrough(seed: int = 0) -> ModelProto:
    """An input that is an output, an output that is a constant, and one value under two names."""
    nodes = [
        node("Identity", "x", "same"),
        node("Neg", "x", "y"),
        node("Identity", "y", "again"),
        node("Identity", "w", "fixed"),
    ]
    outputs = [(name, (2, 3)) for name in ("same", "y", "again", "fixed")]
    return model("passthrough", nodes, [("x", (2, 3))], outputs, {"w": floats(seed, 2, 3)})


def fixed(seed: int = 0) -> ModelProto:
    """No inputs, no steps, no arena: the output is a constant."""
    return model("fixed", [node("Identity", "w", "y")], [], [("y", (2, 3))], {"w": floats(seed, 2, 3)})


def empty(seed: int = 0) -> ModelProto:
    """Tensors without elements beside others."""
    nodes = [node("Abs", "nothing", "still"), node("Concat", "still x", "y", axis=1)]
    return model("empty", nodes, [("nothing", (2, 0)), ("x", (2, 3))], [("still", (2, 0)), ("y", (2, 3))])


def text(seed: int = 0) -> ModelProto:
    """Strings in, out and constant: compared, matched, counted, made of numbers and read again."""
    ngrams = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 2]}
    ngrams |= {"ngram_indexes": [0, 2, 1], "pool_strings": ["mcc", "Hello", "Hello", "mcc"]}
    nodes = [
        node("Equal", "words word", "same"),
        node("Where", "same other words", "y"),
        node("Gather", "y places", "first", axis=1),
        node("RegexFullMatch", "words", "matched", pattern="(?i)h[a-zß]+( w.*)?"),
        node("TfIdfVectorizer", "words", "counts", **ngrams),
        node("Cast", "x", "written", to=TensorProto.STRING),
        node("Cast", "written", "again", to=FLOAT),
    ]
    inputs = {"words": (TensorProto.STRING, (2, 3)), "x": (FLOAT, (5,))}
    outputs = {"y": (TensorProto.STRING, (2, 3)), "first": (TensorProto.STRING, (2, 1)), "again": (FLOAT, (5,))}
    outputs |= {"matched": (TensorProto.BOOL, (2, 3)), "counts": (FLOAT, (2, 3))}
    weights = {"word": np.array(["mcc"], object), "other": np.array(["größer"], object)}
    weights["places"] = np.array([1], np.int64)
    graph = helper.make_graph(
        nodes,
        "text",
        [helper.make_tensor_value_info(name, *port) for name, port in inputs.items()],
        [helper.make_tensor_value_info(name, *port) for name, port in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def unpooled() -> ModelProto:
    """One channel, unpooled into a part of a tensor: most axes of what is written have one element."""
    nodes = [
        node("MaxPool", "x", "most places", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxUnpool", "most places", "u", kernel_shape=[2, 2], strides=[2, 2]),
        node("Sin", "z", "s"),
        node("Concat", "s u", "y", axis=-1),
    ]
    return model("unpooled", nodes, [("x", [1, 1, 8, 8]), ("z", [1, 1, 8, 8])], [("y", [1, 1, 8, 16])])


ALL = {made.__name__: made for made in (conv, mlp, branches, passthrough, fixed, empty, text)}


def save(made: ModelProto, folder: Path) -> Path:
    path = folder / f"{made.graph.name}.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def compiled(made: ModelProto, options: Options = PLAIN) -> Package:
    """The package of a model, named after its graph."""
    return compile_graph(load_proto(made), options, made.graph.name)


def written(made: ModelProto, folder: Path, options: Options = PLAIN) -> Path:
    """A new folder in `folder` with what is compiled from the model."""
    compiled(made, options).write(folder / made.graph.name)
    return folder / made.graph.name


def random_inputs(made: ModelProto, seed: int = 0) -> dict[str, np.ndarray]:
    types = {entry.name: entry.type.tensor_type for entry in made.graph.input}
    shapes = {name: [dim.dim_value for dim in type.shape.dim] for name, type in types.items()}
    words = np.array(["", "mcc", "Hello", "HEIß World"], object)
    return {
        name: floats(seed + number, *shape)
        if types[name].elem_type == FLOAT
        else words[np.random.default_rng(seed + number).integers(0, len(words), shape)]
        for number, (name, shape) in enumerate(shapes.items())
    }


def reference(made: ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the model should compute, by onnx's own evaluator."""
    names = [entry.name for entry in made.graph.output]
    return dict(zip(names, ReferenceEvaluator(made).run(names, inputs), strict=True))
