"""Small models whose blobs hold all that steers a run: indices, trees, ends of strings, automata, shifts, counts; and
those of every way to lay memory out. One line per model puts it into the fuzzer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mccompile.driver import Options
from mccompile.passes.api import ALL
from mccompile.targets.api import Pool
from tests import small_models
from tests.passes.qdq_graphs import BLOCKS, network
from tests.small_models import floats, node
from tests.small_trees import NODES

FLOAT, INT64, STRING, BOOL, INT8 = (getattr(TensorProto, name) for name in ("FLOAT", "INT64", "STRING", "BOOL", "INT8"))
Port = tuple[str, int, Sequence[int | str]]


@dataclass(frozen=True)
class Subject:
    """`options` are those of one program each."""

    model: Callable[[], ModelProto]
    options: Mapping[str, Options] = field(default_factory=lambda: {"": Options()})


def _model(
    nodes: Sequence[NodeProto], ins: Sequence[Port], outs: Sequence[Port], weights: Mapping[str, Any]
) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "fuzzed",
        [helper.make_tensor_value_info(*port) for port in ins],
        [helper.make_tensor_value_info(*port) for port in outs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _learnt(op: str, ins: str, outs: str, **attributes: object) -> NodeProto:
    return helper.make_node(op, ins.split(), outs.split(), domain="ai.onnx.ml", **attributes)


def _trees() -> ModelProto:
    """Two trees with nodes of several modes, one of which says where NaN goes; and classes with texts for labels."""
    nodes = NODES | {"nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0]}
    leaves = {"treeids": [0, 0, 1, 1, 1], "nodeids": [1, 2, 1, 3, 4], "ids": [0, 1, 2, 1, 0]}
    weights = [0.5, 1.0, 2.0, 3.0, 0.25]
    target = {f"target_{name}": numbers for name, numbers in leaves.items()}
    classes = {f"class_{name}": numbers for name, numbers in leaves.items()}
    labels = ["cat", "dog", "mouse"]
    return _model(
        [
            _learnt("TreeEnsembleRegressor", "x", "y", n_targets=3, target_weights=weights, **nodes, **target),
            _learnt(
                "TreeEnsembleClassifier", "x", "label z", class_weights=weights, classlabels_strings=labels, **nodes,
                **classes,
            ),
        ],
        [("x", FLOAT, (4, 3))],
        [("y", FLOAT, (4, 3)), ("label", STRING, (4,)), ("z", FLOAT, (4, 3))],
        {},
    )  # fmt: skip


def _tables() -> ModelProto:
    """Positions in a table that other tables, the largest of the inputs and a comparison say: they lie inside."""
    nodes = [
        node("ArgMax", "x", "class", axis=0, keepdims=0),
        node("Gather", "base class", "b"),
        node("ReduceMax", "x", "most", keepdims=0),
        node("Less", "most limit", "below"),
        node("Not", "below", "yes"),
        node("Cast", "yes", "one", to=INT64),
        node("Add", "b one", "place"),
        node("Gather", "table place", "y", axis=0),
    ]
    weights = {"base": np.array([4, 1, 2]), "limit": np.float32(0.5), "table": floats(1, 6, 2)}
    return _model(nodes, [("x", FLOAT, (3,))], [("y", FLOAT, (2,))], weights)


def _resized() -> ModelProto:
    """Positions of the nearest element, and of the taps of linear and cubic kernels."""
    ways: dict[str, dict[str, Any]] = {
        "a": {"mode": "nearest"},
        "b": {"mode": "linear"},
        "c": {"mode": "cubic"},
        "d": {"mode": "linear", "antialias": 1},
    }
    sizes = {"a": (1, 3, 7, 9), "b": (1, 3, 7, 9), "c": (1, 3, 9, 4), "d": (1, 3, 3, 4)}
    return _model(
        [helper.make_node("Resize", ["x", "", "", f"to_{name}"], [name], **way) for name, way in ways.items()],
        [("x", FLOAT, (1, 3, 4, 5))],
        [(name, FLOAT, sizes[name]) for name in ways],
        {f"to_{name}": np.array(size, np.int64) for name, size in sizes.items()},
    )


def _indices() -> ModelProto:
    """Constant indices of every operator that takes some, also those of inputs into constants."""
    nodes = [
        node("Gather", "table ids", "rows", axis=0),
        node("Gather", "x some", "a", axis=1),
        node("GatherElements", "x each", "b", axis=1),
        node("GatherND", "x pairs", "c"),
        node("ScatterElements", "x each updates", "d", axis=1),
        node("ScatterND", "x pairs few", "e"),
        node("Slice", "x from to", "f"),
        node("OneHot", "some depth onoff", "g"),
        node("TopK", "x k", "h places"),
        node("Gather", "table again", "i", axis=0),
        node("Compress", "x which", "j", axis=1),
        node("MatMul", "x table", "m"),
    ]
    weights = {
        "table": floats(1, 5, 4),
        "some": np.array([0, 4, -1], np.int64),
        "each": np.array([[0, 1, 4], [3, 2, -1]], np.int64),
        "pairs": np.array([[0, 1], [1, 4], [2, 0]], np.int64),
        "updates": floats(2, 2, 3),
        "few": floats(3, 3),
        "from": np.array([1, 1], np.int64),
        "to": np.array([3, 4], np.int64),
        "depth": np.array(6, np.int64),
        "onoff": np.array([0, 1], np.float32),
        "k": np.array([2], np.int64),
        "again": np.array([4, 0, 2], np.int64),
        "which": np.array([True, False, True, True, False]),
    }
    outs: list[Port] = [("rows", FLOAT, (3, 4)), ("a", FLOAT, (3, 3)), ("b", FLOAT, (2, 3)), ("c", FLOAT, (3,))]
    outs += [("d", FLOAT, (3, 5)), ("e", FLOAT, (3, 5)), ("f", FLOAT, (2, 3)), ("g", FLOAT, (3, 6))]
    outs += [("h", FLOAT, (3, 2)), ("places", INT64, (3, 2)), ("i", FLOAT, (3, 4)), ("j", FLOAT, (3, "found"))]
    outs += [("m", FLOAT, (3, 4))]
    return _model(nodes, [("x", FLOAT, (3, 5)), ("ids", INT64, (3,))], outs, weights)


def _places() -> ModelProto:
    """Regions, grids, offsets, pooled positions and boxes that are weights."""
    chance = np.random.default_rng(5)
    nodes = [
        node("RoiAlign", "x rois batches", "a", output_height=2, output_width=2),
        node("GridSample", "x grid", "b", mode="cubic", padding_mode="reflection"),
        node("MaxUnpool", "x pooled", "c", kernel_shape=[2, 2], strides=[2, 2]),
        node("DeformConv", "x w offsets", "d", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("NonMaxSuppression", "boxes scores most overlap", "e"),
        node("MaxRoiPool", "x regions", "f", pooled_shape=[2, 2]),
    ]
    weights = {
        "rois": np.array([[0, 0, 3, 3], [1, 1, 4, 2]], np.float32),
        "batches": np.array([0, 0], np.int64),
        "grid": chance.uniform(-1, 1, (1, 3, 3, 2)).astype(np.float32),
        "pooled": chance.permutation(80)[:40].reshape(1, 2, 4, 5).astype(np.int64),
        "w": floats(4, 2, 2, 3, 3),
        "offsets": floats(5, 1, 18, 4, 5),
        "boxes": chance.uniform(0, 1, (1, 6, 4)).astype(np.float32),
        "most": np.array(3, np.int64),
        "overlap": np.array(0.5, np.float32),
        "regions": np.array([[0, 0, 0, 3, 3], [0, 1, 1, 4, 2]], np.float32),
    }
    outs: list[Port] = [("a", FLOAT, (2, 2, 2, 2)), ("b", FLOAT, (1, 2, 3, 3)), ("c", FLOAT, (1, 2, 8, 10))]
    outs += [("d", FLOAT, (1, 2, 4, 5)), ("e", INT64, ("boxes", 3)), ("f", FLOAT, (2, 2, 2, 2))]
    return _model(nodes, [("x", FLOAT, (1, 2, 4, 5)), ("scores", FLOAT, (1, 1, 6))], outs, weights)


def _texts() -> ModelProto:
    """Labels, n-grams, automata, pieces and numbers of texts."""
    nodes = [
        _learnt("LabelEncoder", "words", "a", keys_strings=["mcc", "Hello"], values_strings=["x", "much longer"]),
        _learnt("LabelEncoder", "numbers", "b", keys_int64s=[3, 4], values_strings=["three", "four"]),
        _learnt("CategoryMapper", "words", "c", cats_int64s=[1, 2], cats_strings=["mcc", "Hello"]),
        node("StringConcat", "words other", "d"),
        node("StringSplit", "words", "e many", delimiter="l"),
        node("StringNormalizer", "words", "h", case_change_action="UPPER", stopwords=["mcc"], is_case_sensitive=1),
        node("RegexFullMatch", "words", "f", pattern="(?i)h[a-z]+|(mc)*c?"),
        node(
            "TfIdfVectorizer", "numbers", "g", mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
            ngram_counts=[0, 2], ngram_indexes=[0, 3, 1], pool_int64s=[3, 4, 3, 4],
        ),
    ]  # fmt: skip
    outs: list[Port] = [("a", STRING, (3,)), ("b", STRING, (4,)), ("c", INT64, (3,)), ("d", STRING, (3,))]
    outs += [("e", STRING, (3, "parts")), ("many", INT64, (3,)), ("h", STRING, ("kept",)), ("f", BOOL, (3,))]
    outs += [("g", FLOAT, (4,))]
    weights = {"other": np.array(["größer", "", "w"], object)}
    return _model(nodes, [("words", STRING, (3,)), ("numbers", INT64, (4,))], outs, weights)


def _loops() -> ModelProto:
    """Counts, conditions and lengths that are weights; a recurrent layer, and a state."""
    body = helper.make_graph(
        [
            node("Gather", "rows number", "row"),
            node("Add", "before row", "after"),
            node("Identity", "on", "still"),
            node("Identity", "after", "kept"),
        ],
        "body",
        [
            helper.make_tensor_value_info("number", INT64, ()),
            helper.make_tensor_value_info("on", BOOL, ()),
            helper.make_tensor_value_info("before", FLOAT, (3,)),
        ],
        [
            helper.make_tensor_value_info("still", BOOL, ()),
            helper.make_tensor_value_info("after", FLOAT, (3,)),
            helper.make_tensor_value_info("kept", FLOAT, (3,)),
        ],
    )
    nodes = [
        helper.make_node("Loop", ["trips", "go", "x"], ["last", "each"], body=body),
        helper.make_node("LSTM", ["seq", "w", "r", "", "lengths", "h0"], ["y", "h1"], hidden_size=4),
        helper.make_node("CumSum", ["last", "axis"], ["sums"]),
        helper.make_node("ReverseSequence", ["seq", "some"], ["turned"], batch_axis=1, time_axis=0),
    ]
    weights = {
        "trips": np.array(4, np.int64),
        "go": np.array(True),
        "rows": floats(1, 4, 3),
        "w": floats(2, 1, 16, 3),
        "r": floats(3, 1, 16, 4),
        "lengths": np.array([5, 2], np.int32),
        "axis": np.array(0, np.int64),
        "some": np.array([5, 3], np.int64),
    }
    ins: list[Port] = [("x", FLOAT, (3,)), ("seq", FLOAT, (5, 2, 3)), ("h0", FLOAT, (1, 2, 4))]
    outs: list[Port] = [("last", FLOAT, (3,)), ("each", FLOAT, (4, 3)), ("y", FLOAT, (5, 1, 2, 4))]
    outs += [("h1", FLOAT, (1, 2, 4)), ("sums", FLOAT, (3,)), ("turned", FLOAT, (5, 2, 3))]
    return _model(nodes, ins, outs, weights)


def _free() -> ModelProto:
    """Sizes that a run is told."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1]),
        node("Gather", "c some", "g", axis=1),
        node("Softmax", "g", "s", axis=-1),
        node("Concat", "s g", "y", axis=2),
    ]
    weights = {"w": floats(1, 4, 2, 3), "some": np.array([0, 3, -2], np.int64)}
    outs: list[Port] = [("y", FLOAT, (1, 3, "m"))]
    return _model(nodes, [("x", FLOAT, (1, 2, "n"))], outs, weights)


def _shares() -> ModelProto:
    """Softmax and normalization of integers."""
    nodes = [
        node("DequantizeLinear", "q s z", "x"),
        node("Softmax", "x", "p"),
        node("QuantizeLinear", "p s2 z2", "y"),
        node("LayerNormalization", "x gain bias", "n"),
        node("QuantizeLinear", "n s z", "u"),
    ]
    weights = {"s": np.float32(0.1), "z": np.int8(3), "s2": np.float32(1 / 256), "z2": np.int8(-128)}
    weights |= {"gain": floats(1, 10) + 1, "bias": floats(2, 10)}
    outs: list[Port] = [("y", INT8, (2, 10)), ("u", INT8, (2, 10))]
    return _model(nodes, [("q", INT8, (2, 10))], outs, weights)


def _quantized() -> ModelProto:
    return network(3, [*range(10), 11, 12 % len(BLOCKS)])


_BYTES = {
    "": Options(),
    "updatable": Options(updatable=True),
    "v3": Options(target="x86-64-v3"),
    "m4": Options(target="cortex-m4"),
    "m4_time": Options(target="cortex-m4", prefer="time"),
    "m4_flash": Options(target="cortex-m4", prefer="flash"),
    "m0": Options(target="cortex-m0"),
    "m55": Options(target="cortex-m55"),
}


def _filters() -> ModelProto:
    """A product with a matrix of short runs."""
    matrix = np.zeros((32, 5), np.float32)
    for column in range(5):
        matrix[6 * column : 6 * column + 8, column] = floats(column, 8)
    nodes = [node("MatMul", "x m", "y")]
    return _model(nodes, [("x", FLOAT, (2, 32))], [("y", FLOAT, (2, 5))], {"m": matrix})


MODELS: Mapping[str, Subject] = {
    "trees": Subject(_trees),
    "tables": Subject(_tables),
    "resized": Subject(_resized, {"": Options(), "v3": Options(target="x86-64-v3")}),
    "indices": Subject(_indices),
    "places": Subject(_places),
    "texts": Subject(_texts, {"": Options(bounds={"e": (4,)})}),
    "text": Subject(small_models.text),
    "loops": Subject(_loops, {"": Options(state={"h1": "h0"})}),
    "free": Subject(_free, {"": Options(dims={"n": (3, 9)})}),
    "shares": Subject(_shares),
    "filters": Subject(_filters),
    "quantized": Subject(_quantized, _BYTES),
    "conv": Subject(
        small_models.conv,
        {
            "pools": Options(mem=(Pool("fast", 400, 0), Pool("slow", None, 1))),
            "outside": Options(external=(ALL,), slices=True),
            "v3": Options(target="x86-64-v3"),
        },
    ),
}


def all_programs() -> Mapping[str, tuple[Callable[[], ModelProto], Options]]:
    """By name: what is compiled, and how."""
    return {
        f"{name}_{how}".rstrip("_"): (subject.model, options)
        for name, subject in MODELS.items()
        for how, options in subject.options.items()
    }
