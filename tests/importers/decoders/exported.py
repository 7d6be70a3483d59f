"""A llama as exporters to ONNX write it: optimum, with a mask and positions that the graph turns into numbers, and the
builder of onnxruntime-genai, with onnxruntime's own operators. `python -m tests.importers.decoders.exported optimum
FOLDER` writes one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from .files import SIZES
from .reference import random_weights

MICROSOFT = "com.microsoft"
CHOSEN = 2  # of experts
Weights = Mapping[str, np.ndarray]


class Llama:
    """Nodes of one. `bits` and `block`: of the weights of experts, where these are integers."""

    def __init__(
        self, weights: Weights, groups: int, heads: int, layers: int, context: int, bits: int = 0, block: int = 0
    ) -> None:
        self.bits, self.block = bits, block
        self.weights, self.groups, self.heads, self.layers = weights, groups, heads, layers
        self.head = weights["0.q"].shape[0] // heads
        frequencies = 10000.0 ** -(np.arange(0, self.head, 2) / self.head)
        self.angles = np.outer(np.arange(context), frequencies).astype(np.float32)
        self.frequencies = frequencies.astype(np.float32)
        self.graph = GraphProto(name="main_graph")

    def op(self, name: str, *inputs: str, outs: int = 1, domain: str = "", **attributes: Any) -> str:
        made = f"/{name}_{len(self.graph.node)}"
        outputs = [made, *(f"{made}_{number}" for number in range(1, outs))]
        self.graph.node.append(helper.make_node(name, inputs, outputs, made, domain=domain, **attributes))
        return made

    def ints(self, *values: int) -> str:
        return self.op("Constant", value=numpy_helper.from_array(np.array(values, np.int64)))

    def table(self, name: str, array: np.ndarray) -> str:
        if name not in {tensor.name for tensor in self.graph.initializer}:
            made = np.ascontiguousarray(array, array.dtype if array.dtype in (np.int64, np.uint8) else np.float32)
            self.graph.initializer.append(numpy_helper.from_array(made, name))
        return name

    def linear(self, x: str, role: str) -> str:
        return self.op("MatMul", x, self.table(f"{role}.weight", self.weights[role].T))

    def mlp(self, x: str, layer: int) -> str:
        if f"{layer}.router" in self.weights:
            return self.experts(x, layer)
        gate = self.linear(x, f"{layer}.gate")
        gate = self.op("Mul", gate, self.op("Sigmoid", gate))
        return self.linear(self.op("Mul", gate, self.linear(x, f"{layer}.up")), f"{layer}.down")

    def experts(self, x: str, layer: int) -> str:
        count = len(self.weights[f"{layer}.router"])
        scores = self.op("Reshape", self.linear(x, f"{layer}.router"), self.ints(-1, count))
        gate, up, down = (
            np.stack([self.weights[f"{layer}.expert.{n}.{side}"] for n in range(count)])
            for side in ("gate", "up", "down")
        )
        both = np.stack([gate, up], 2).reshape(count, -1, gate.shape[2])  # in turns
        sides = {f"{layer}.gate_up": both, f"{layer}.down": down}
        how = {"k": CHOSEN, "activation_type": "swiglu", "swiglu_fusion": 1, "normalize_routing_weights": 1}
        if not self.bits:
            names = [self.table(role, w) for role, w in sides.items()]
            return self.op("MoE", x, scores, names[0], "", names[1], domain=MICROSOFT, **how)
        named = list[str]()
        for role, w in sides.items():
            levels, scales = leveled(w, self.bits, self.block)
            packed = levels if self.bits == 8 else levels[..., ::2] | levels[..., 1::2] << 4
            named += [self.table(f"{role}.levels", packed), self.table(f"{role}.scales", scales), ""]
        how |= {"expert_weight_bits": self.bits} | ({"block_size": self.block} if self.block else {})
        return self.op("QMoE", x, scores, *named, domain=MICROSOFT, **how)

    def finished(self, logits: str, presents: list[str], more: list[str], total: str) -> ModelProto:
        graph, vocabulary = self.graph, self.weights["embed"].shape[0]
        info = helper.make_tensor_value_info
        graph.input.append(info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]))
        sizes = {"attention_mask": total, "position_ids": "sequence_length"}
        graph.input.extend(info(name, TensorProto.INT64, ["batch_size", sizes[name]]) for name in more)
        graph.node.append(helper.make_node("Identity", [logits], ["logits"]))
        shape: list[Any] = ["batch_size", "sequence_length", vocabulary]
        graph.output.append(info("logits", TensorProto.FLOAT, shape))
        for number, made in enumerate(presents):
            name = f"{number // 2}.{('key', 'value')[number % 2]}"
            graph.node.append(helper.make_node("Identity", [made], [f"present.{name}"]))
            for ends, prefix, length in (
                (graph.input, "past_key_values", "past_sequence_length"),
                (graph.output, "present", total),
            ):
                shape = ["batch_size", self.groups, length, self.head]
                ends.append(info(f"{prefix}.{name}", TensorProto.FLOAT, shape))
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def leveled(w: np.ndarray, bits: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels of the weights of experts, and the scale of each row, or of each of its blocks."""
    parts = w.reshape(*w.shape[:2], -1, block or w.shape[2])
    scales = (np.abs(parts).max(-1, keepdims=True) / np.float32((1 << (bits - 1)) - 1)).astype(np.float32)
    levels = np.rint(parts / scales) + (1 << (bits - 1))
    return levels.astype(np.uint8).reshape(w.shape), scales[..., 0] if block else scales[..., 0, 0]


def rounded(w: np.ndarray, bits: int, block: int) -> np.ndarray:
    """What weights of an expert are behind that."""
    levels, scales = leveled(w[None], bits, block)
    parts = (levels.astype(np.float32) - (1 << (bits - 1))).reshape(*w.shape[:1], -1, block or w.shape[1])
    return (parts * scales.reshape(*parts.shape[:1], -1, 1)).reshape(w.shape)


def optimum(w: Weights, groups: int, heads: int, layers: int, context: int) -> ModelProto:
    """As transformers computes it, traced by torch.onnx."""
    net = Llama(w, groups, heads, layers, context)
    past = net.op("Gather", net.op("Shape", "past_key_values.0.key"), net.ints(2))
    new = net.op("Gather", net.op("Shape", "input_ids"), net.ints(1))
    total = net.op("Add", past, new)
    scalar = [net.op("Squeeze", each) for each in (past, total)]
    one = net.op("Constant", value=numpy_helper.from_array(np.array(1, np.int64)))
    zero = net.op("Constant", value=numpy_helper.from_array(np.array(0, np.int64)))
    own = net.op("Reshape", net.op("Range", *scalar, one), net.ints(-1, 1))
    seen = net.op("LessOrEqual", net.op("Range", zero, scalar[1], one), own)
    kept = net.op("Cast", net.op("Unsqueeze", "attention_mask", net.ints(1, 2)), to=TensorProto.BOOL)
    seen = net.op("And", net.op("Unsqueeze", seen, net.ints(0, 1)), kept)
    low = net.op("Constant", value=numpy_helper.from_array(np.array(np.finfo(np.float32).min)))
    none = net.op("Constant", value=numpy_helper.from_array(np.array(0, np.float32)))
    mask = net.op("Where", seen, none, low)
    places = net.op("Cast", net.op("Unsqueeze", "position_ids", net.ints(1)), to=TensorProto.FLOAT)
    angles = net.op("MatMul", net.table("inv_freq", net.frequencies.reshape(1, -1, 1)), places)
    angles = net.op("Transpose", angles, perm=[0, 2, 1])
    angles = net.op("Concat", angles, angles, axis=-1)
    turns = [net.op("Unsqueeze", net.op(name, angles), net.ints(1)) for name in ("Cos", "Sin")]

    def norm(x: str, role: str) -> str:
        squares = net.op("ReduceMean", net.op("Pow", x, net.table("two", np.array(2.0))), net.ints(-1))
        moved = net.op("Sqrt", net.op("Add", squares, net.table("epsilon", np.array(1e-5))))
        return net.op("Mul", net.table(role, w[role]), net.op("Mul", x, net.op("Reciprocal", moved)))

    def cut(x: str) -> str:
        return net.op("Transpose", net.op("Reshape", x, net.ints(0, 0, -1, net.head)), perm=[0, 2, 1, 3])

    def turned(x: str) -> str:
        half = net.head // 2
        first = net.op("Slice", x, net.ints(0), net.ints(half), net.ints(3))
        second = net.op("Slice", x, net.ints(half), net.ints(1 << 62), net.ints(3))
        across = net.op("Concat", net.op("Neg", second), first, axis=-1)
        return net.op("Add", net.op("Mul", x, turns[0]), net.op("Mul", across, turns[1]))

    def repeated(x: str) -> str:
        wide = net.op("Unsqueeze", x, net.ints(2))
        wide = net.op("Expand", wide, net.ints(1, 1, heads // groups, 1, 1))
        return net.op("Reshape", wide, net.ints(0, heads, -1, net.head))

    x, presents = net.op("Gather", net.table("embed", w["embed"]), "input_ids"), []
    for layer in range(layers):
        normed = norm(x, f"{layer}.attn_norm")
        q, k, v = (cut(net.linear(normed, f"{layer}.{role}")) for role in "qkv")
        q, k = turned(q), turned(k)
        k = net.op("Concat", f"past_key_values.{layer}.key", k, axis=-2)
        v = net.op("Concat", f"past_key_values.{layer}.value", v, axis=-2)
        presents += [k, v]
        factor = net.table("factor", np.array(net.head**-0.25))
        flat = net.op("Transpose", repeated(k), perm=[0, 1, 3, 2])
        scores = net.op("MatMul", net.op("Mul", q, factor), net.op("Mul", flat, factor))
        shares = net.op("Softmax", net.op("Add", scores, mask), axis=-1)
        mixed = net.op("Transpose", net.op("MatMul", shares, repeated(v)), perm=[0, 2, 1, 3])
        x = net.op("Add", x, net.linear(net.op("Reshape", mixed, net.ints(0, 0, -1)), f"{layer}.o"))
        x = net.op("Add", x, net.mlp(norm(x, f"{layer}.mlp_norm"), layer))
    logits = net.op("MatMul", norm(x, "final_norm"), net.table("head.weight", w["embed"].T))
    more = ["attention_mask", "position_ids"]
    return net.finished(logits, presents, more, "past_sequence_length + sequence_length")


def genai(w: Weights, groups: int, heads: int, layers: int, context: int, **experts: int) -> ModelProto:
    """As onnxruntime_genai.models.builder writes it for processors."""
    net = Llama(w, groups, heads, layers, context, **experts)
    count = net.op("Sub", net.op("ReduceSum", "attention_mask", net.ints(1), keepdims=1), net.ints(1))
    lengths = net.op("Cast", count, to=TensorProto.INT32)
    one = net.op("Constant", value=numpy_helper.from_array(np.array(1, np.int64)))
    total = net.op("Cast", net.op("Gather", net.op("Shape", "attention_mask"), one), to=TensorProto.INT32)
    caches = net.table("cos_cache", np.cos(net.angles)), net.table("sin_cache", np.sin(net.angles))
    x, presents = net.op("Gather", net.table("embed", w["embed"]), "input_ids"), list[str]()

    def norm(x: str, skip: str, role: str) -> tuple[str, str]:
        scale = net.table(role, w[role])
        if not skip:
            return net.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-5, stash_type=1), x
        made = net.op("SkipSimplifiedLayerNormalization", x, skip, scale, outs=4, domain=MICROSOFT, epsilon=1e-5)
        net.graph.node[-1].output[1] = net.graph.node[-1].output[2] = ""
        return made, f"{made}_3"

    more = ""
    for layer in range(layers):
        normed, x = norm(x, more, f"{layer}.attn_norm")
        sides = [net.linear(normed, f"{layer}.{role}") for role in "qkv"]
        pasts = [f"past_key_values.{layer}.{side}" for side in ("key", "value")]
        how = {"num_heads": heads, "kv_num_heads": groups, "do_rotary": 1, "scale": net.head**-0.5}
        made = net.op(
            "GroupQueryAttention", *sides, *pasts, lengths, total, *caches, outs=3, domain=MICROSOFT,
            **how, rotary_interleaved=0, local_window_size=-1, softcap=0.0,
        )  # fmt: skip
        presents += [f"{made}_1", f"{made}_2"]
        normed, x = norm(x, net.linear(made, f"{layer}.o"), f"{layer}.mlp_norm")
        more = net.mlp(normed, layer)
    normed, _ = norm(x, more, "final_norm")
    logits = net.op("MatMul", normed, net.table("head.weight", w["embed"].T))
    return net.finished(logits, presents, ["attention_mask"], "total_sequence_length")


WAYS: dict[str, Callable[..., ModelProto]] = {"optimum": optimum, "genai": genai}


def folder(path: Path, way: str, context: int = 300, **sizes: int) -> Path:
    """What the exporter leaves, with the weights in a file of their own."""
    sizes = {**SIZES, "head": 16, **sizes}  # the least that onnxruntime takes
    return written(path, way, random_weights(sizes, np.random.default_rng(1)), sizes, context)


def written(path: Path, way: str, w: Weights, sizes: Mapping[str, int], context: int, **experts: int) -> Path:
    """The same of these weights. `experts`: bits and block of theirs."""
    path.mkdir(parents=True, exist_ok=True)
    layers, groups = sizes["layers"], sizes["groups"]
    model = WAYS[way](w, groups, sizes["heads"], layers, context, **experts)
    onnx.save(model, path / "model.onnx", save_as_external_data=True, location="model.onnx.data", size_threshold=256)
    if way == "genai":
        decoder = {"filename": "model.onnx", "num_hidden_layers": layers, "num_key_value_heads": groups}
        told = {"model": {"type": "llama", "context_length": context, "eos_token_id": [2], "decoder": decoder}}
        (path / "genai_config.json").write_text(json.dumps(told))
    else:
        (path / "config.json").write_text(json.dumps({"model_type": "llama", "max_position_embeddings": context}))
    return path


def continued(path: Path, tokens: list[int], count: int) -> list[int]:
    """The most likely tokens behind those, by onnxruntime and without what is tested."""
    import onnxruntime

    session, found, new = onnxruntime.InferenceSession(path / "model.onnx"), list(tokens), len(tokens)
    taken = {entry.name: entry.shape for entry in session.get_inputs()}
    kinds = {entry.name: np.float16 if "16" in entry.type else np.float32 for entry in session.get_inputs()}
    names = [name for name in taken if name.startswith("past")]
    caches = {name: np.zeros((1, taken[name][1], 0, taken[name][3]), kinds[name]) for name in names}
    for _ in range(count):
        feeds: dict[str, Any] = {"input_ids": np.array([found[-new:]]), **caches}
        feeds["attention_mask"] = np.ones((1, len(found)), np.int64)
        if "position_ids" in taken:
            feeds["position_ids"] = np.arange(len(found) - new, len(found))[None]
        logits, *made = session.run(None, feeds)
        caches, new = dict(zip(names, made, strict=True)), 1
        found.append(int(np.argmax(logits[0, -1])))
    return found[len(tokens) :]


if __name__ == "__main__":
    folder(Path(sys.argv[2]), sys.argv[1])
