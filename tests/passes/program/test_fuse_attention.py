"""Every spelling of attention becomes one call that keeps no matrix of scores, and gives onnxruntime's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, NodeProto, TensorProto, parser
from onnx.reference import ReferenceEvaluator

from mccompile.driver import Options, compile_graph
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.kinds.attention import Attention
from mccompile.kinds.normalize import Normalize
from mccompile.measure.correctness import build
from mccompile.targets.api import load as load_target
from tests.small_models import floats, model, node
from tests.thorough import some

BATCH, HEADS, LONG, SEEN, DEPTH, WIDTH = 2, 3, 5, 7, 4, 6
Q, K, V = (BATCH, HEADS, LONG, DEPTH), (BATCH, HEADS, SEEN, DEPTH), (BATCH, HEADS, SEEN, WIDTH)
TURN = node("Transpose", "k", "kt", perm=[0, 1, 3, 2])
SCORES = [TURN, node("MatMul", "q kt", "s"), node("Mul", "s scale", "scores")]
END = [node("Softmax", "scores", "shares"), node("MatMul", "shares v", "y")]
LAST = np.array([BATCH * HEADS, LONG, SEEN], np.int64)
ARRAYS: dict[str, Any] = {"scale": np.array(0.5, np.float32)}


def network(
    nodes: Sequence[NodeProto],
    ins: dict[str, tuple[Any, ...]] | None = None,
    outs: Sequence[Any] = (("y", "bhlw"),),
    **more: Any,
) -> ModelProto:
    shapes = {"q": Q, "k": K, "v": V} | (ins or {})
    used = {name for one in nodes for name in one.input}
    arrays = {name: array for name, array in (ARRAYS | more).items() if name in used}
    inputs = [(name, list(shape)) for name, shape in shapes.items()]
    made = model("attention", list(nodes), inputs, [(name, list(shape)) for name, shape in outs], arrays)
    for one in made.graph.input:
        if one.name == "seen":
            one.type.tensor_type.elem_type = TensorProto.BOOL
    return made


def compiled(made: ModelProto, dims: dict[str, tuple[int, int]] | None = None, **options: Any) -> Package:
    return compile_graph(load_proto(made, dims=dims), Options(**{"target": "generic", **options}), "attention")


def fused(package: Package) -> bool:
    kinds = [step.function.call.kind for step in package.plan.steps()]
    attention = sum(isinstance(kind, Attention) for kind in kinds)
    assert attention + sum(isinstance(kind, Normalize) for kind in kinds) == 1
    return attention == 1


def compare(
    made: ModelProto, feeds: dict[str, np.ndarray], dims: dict[str, tuple[int, int]] | None = None, **options: Any
) -> Package:
    package = compiled(made, dims, **options)
    target = Options(**{"target": "generic", **options}).resolved_target()
    got = build(package, target).run(feeds)["y"]
    want = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(["y"], feeds)[0]
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.nanmax(np.abs(want)))
    return package


def feeds_of(made: ModelProto) -> dict[str, np.ndarray]:
    found = {}
    for number, one in enumerate(made.graph.input):
        shape = [dim.dim_value or 3 for dim in one.type.tensor_type.shape.dim]
        data = floats(number, *shape) * 2
        found[one.name] = data > 0 if one.name == "seen" else data
    return found


def cut(name: str, shape: Sequence[int], result: str) -> tuple[NodeProto, dict[str, np.ndarray]]:
    return node("Reshape", f"{name} {result}_shape", result), {f"{result}_shape": np.array(shape, np.int64)}


def in_batches() -> ModelProto:
    """Products over batches of one axis, a mask over those of two."""
    nodes: list[NodeProto] = []
    arrays: dict[str, np.ndarray] = {}
    steps: list[Any] = [
        ("q", (-1, LONG, DEPTH), "q3"), ("k", (-1, SEEN, DEPTH), "k3"), ("v", (-1, SEEN, WIDTH), "v3"),
        node("Transpose", "k3", "kt", perm=[0, 2, 1]), node("MatMul", "q3 kt", "s3"),
        ("s3", (BATCH, HEADS, LONG, SEEN), "s"), node("Add", "s m", "masked"), ("masked", LAST, "scores"),
        node("Softmax", "scores", "shares"), node("MatMul", "shares v3", "y"),
    ]  # fmt: skip
    for step in steps:
        made, more = cut(*step) if isinstance(step, tuple) else (step, {})
        nodes.append(made)
        arrays |= more
    return network(nodes, {"m": (BATCH, 1, 1, SEEN)}, [("y", "blw")], **arrays)


def shared_heads() -> ModelProto:
    """Six heads of queries share three of keys and values, which are repeated."""
    nodes, arrays = [], {}
    for name, last in (("k", DEPTH), ("v", WIDTH)):
        made, more = cut(f"{name}5", (BATCH, 6, SEEN, last), f"{name}6")
        arrays |= more | {"axis": np.array([2], np.int64), f"{name}_all": np.array([1, 1, 2, 1, 1], np.int64)}
        nodes += [node("Unsqueeze", f"{name} axis", f"{name}4"), node("Expand", f"{name}4 {name}_all", f"{name}5")]
        nodes.append(made)
    nodes += [node("Transpose", "k6", "kt", perm=[0, 1, 3, 2]), *SCORES[1:], END[0], node("MatMul", "shares v6", "y")]
    return network(nodes, {"q": (BATCH, 6, LONG, DEPTH)}, **arrays)


def heads_as_rows() -> ModelProto:
    """The same, with the queries of those that share as rows of one product, and a mask over all heads."""
    nodes, arrays = [TURN], {}
    steps: list[Any] = [
        ("q", (BATCH, HEADS, 2 * LONG, DEPTH), "q4"), node("MatMul", "q4 kt", "s4"),
        ("s4", (BATCH, 6, LONG, SEEN), "s"), node("Mul", "s scale", "t"), node("Add", "t m", "scores"), END[0],
        ("shares", (BATCH, HEADS, 2 * LONG, SEEN), "shares4"), node("MatMul", "shares4 v", "y"),
    ]  # fmt: skip
    for step in steps:
        made, more = cut(*step) if isinstance(step, tuple) else (step, {})
        nodes.append(made)
        arrays |= more
    return network(nodes, {"q": (BATCH, 6, LONG, DEPTH), "m": (BATCH, 1, LONG, SEEN)}, **arrays)


SPELLINGS = {
    "plain": lambda: network([*SCORES, *END]),
    "divided": lambda: network([TURN, node("MatMul", "q kt", "s"), node("Div", "s scale", "scores"), *END]),
    "scaled_before": lambda: network(
        [TURN, node("Mul", "q scale", "a"), node("Mul", "kt scale", "b"), node("MatMul", "a b", "scores"), *END]
    ),
    "mask_added": lambda: network([*SCORES[:2], node("Add", "s m", "scores"), *END], {"m": (BATCH, 1, 1, SEEN)}),
    "bias_of_heads": lambda: network(
        [*SCORES[:2], node("Mul", "s scale", "t"), node("Add", "m t", "scores"), *END], {"m": (1, HEADS, LONG, SEEN)}
    ),
    "where": lambda: network(
        [*SCORES[:2], node("Where", "seen s low", "scores"), *END],
        {"seen": (BATCH, 1, LONG, SEEN)},
        low=np.array(-1e9, np.float32),
    ),
    "values_first": lambda: network(
        [*SCORES, END[0], node("Transpose", "shares", "back", perm=[0, 1, 3, 2]), node("MatMul", "v back", "y")],
        {"v": (BATCH, HEADS, WIDTH, SEEN)},
    ),
    "keys_first": lambda: network(
        [
            node("Transpose", "q", "qt", perm=[0, 1, 3, 2]),
            node("MatMul", "k qt", "s"),
            node("Transpose", "s", "scores", perm=[0, 1, 3, 2]),
            *END,
        ]
    ),
    "softmax_across": lambda: network(
        [
            node("Transpose", "q", "qt", perm=[0, 1, 3, 2]),
            node("MatMul", "k qt", "scores"),
            node("Softmax", "scores", "shares", axis=2),
            node("MatMul", "v shares", "y"),
        ],
        {"v": (BATCH, HEADS, WIDTH, SEEN)},
    ),
    "in_batches": in_batches,
    "shared_heads": shared_heads,
    "heads_as_rows": heads_as_rows,
    "not_a_number": lambda: network(
        [
            *[*SCORES, END[0], node("IsNaN", "shares", "nan"), node("Where", "nan zero shares", "safe")],
            node("MatMul", "safe v", "y"),
        ],
        zero=np.array(0, np.float32),
    ),
    "residual": lambda: network(
        [*SCORES, END[0], node("MatMul", "shares v", "o"), node("Add", "o r", "y")], {"r": (BATCH, HEADS, LONG, WIDTH)}
    ),
    "one_row": lambda: network([*SCORES, *END], {"q": (1, HEADS, 1, DEPTH), "k": (1, *K[1:]), "v": (1, *V[1:])}),
}


@some(1, "prefer", ["time", "ram"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_one_call(spelling: str, prefer: str) -> None:
    made = SPELLINGS[spelling]()
    assert fused(compare(made, feeds_of(made), prefer=prefer))


@pytest.mark.skipif("vec" not in load_target("native").isas, reason="this machine has no kernels for vectors")
@pytest.mark.parametrize(("workers", "heads"), [(1, 3), (2, 3), (2, 1)])
def test_long_sequences_in_vectors(workers: int, heads: int) -> None:
    """Several blocks of keys, a last one that is not full, and rows that are left over."""
    ins = {"q": (1, heads, 50, 64), "k": (1, heads, 301, 64), "v": (1, heads, 301, 20), "m": (1, 1, 50, 301)}
    made = network([*SCORES[:2], node("Mul", "s scale", "t"), node("Add", "t m", "scores"), *END], ins)
    package = compare(made, feeds_of(made), target="native", prefer="time", threads=workers)
    assert fused(package)
    (step,) = [s for s in package.plan.steps() if isinstance(s.function.call.kind, Attention)][:1]
    assert step.function.kernel.isa == "vec"


def test_sizes_known_only_at_run_time() -> None:
    made = network(
        [*SCORES, *END], {"q": (1, HEADS, "n", DEPTH), "k": (1, HEADS, "m", DEPTH), "v": (1, HEADS, "m", WIDTH)}
    )
    feeds = {"q": floats(0, 1, HEADS, 4, DEPTH), "k": floats(1, 1, HEADS, 9, DEPTH), "v": floats(2, 1, HEADS, 9, WIDTH)}
    assert fused(compare(made, feeds, dims={"n": (1, 6), "m": (1, 99)}))


@pytest.mark.skipif("vec" not in load_target("native").isas, reason="this machine has no kernels for vectors")
def test_rows_and_keys_known_only_at_run_time_in_vectors() -> None:
    """Tiles of rows and single ones; blocks, vectors and single keys; a depth and channels that end inside a vector."""
    ins = {"q": (1, 2, "n", 20), "k": (1, 2, "m", 20), "v": (1, 2, "m", 27), "mask": ("n", "m")}
    made = network([*SCORES[:2], node("Mul", "s scale", "t"), node("Add", "t mask", "scores"), *END], ins)
    dims = {"n": (1, 9), "m": (1, 200)}
    package = compiled(made, dims, target="native")
    (step,) = [s for s in package.plan.steps() if isinstance(s.function.call.kind, Attention)]
    assert step.function.kernel.id == "attention/f32_rows_dots__vec"
    built = build(package, load_target("native"))
    reference = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows, keys in ((1, 1), (1, 131), (2, 64), (5, 8), (9, 199)):
        feeds = {"q": floats(0, 1, 2, rows, 20), "k": floats(1, 1, 2, keys, 20), "v": floats(2, 1, 2, keys, 27)}
        feeds["mask"] = np.where(np.arange(keys) % 5 == 3, -np.inf, floats(3, rows, keys)).astype(np.float32)
        want = reference.run(["y"], feeds)[0]
        np.testing.assert_allclose(built.run(feeds)["y"], want, rtol=0, atol=3e-6 * np.abs(want).max())


def test_keys_that_may_be_missing_stay_apart() -> None:
    """The sum over no keys is 0, where a share of them is not a number."""
    ins = {"q": (1, HEADS, 2, DEPTH), "k": (1, HEADS, "m", DEPTH), "v": (1, HEADS, "m", WIDTH)}
    assert not fused(compiled(network([*SCORES, *END], ins), dims={"m": (0, 9)}))


@pytest.mark.parametrize("result", ["scores", "shares"])
def test_scores_that_somebody_reads_stay(result: str) -> None:
    shape = [BATCH, HEADS, LONG, SEEN]
    assert not fused(compiled(network([*SCORES, *END], outs=[("y", "bhlw"), (result, shape)]), prefer="ram"))


@pytest.mark.parametrize(("target", "depth"), [("generic", DEPTH), ("native", DEPTH), ("native", 64)])
def test_rows_that_see_nothing(target: str, depth: int) -> None:
    """They are not a number, as Softmax has them; those that see the last block alone are exact. Of vectors, deep keys
    make several blocks."""
    made = network(
        [*SCORES[:2], node("Add", "s m", "scores"), *END],
        {"k": (1, 1, 200, depth), "v": (1, 1, 200, WIDTH), "q": (1, 1, 4, depth), "m": (4, 200)},
    )
    feeds = feeds_of(made)
    feeds["m"][0] = -np.inf
    feeds["m"][1, :190] = -np.inf
    feeds["m"][2, :190] = np.finfo(np.float32).min
    feeds["m"][3, 3] = np.nan
    compare(made, feeds, target=target)


def test_rows_that_see_nothing_may_be_zero() -> None:
    made = network(
        [
            *[*SCORES[:2], node("Add", "s m", "scores"), END[0], node("IsNaN", "shares", "nan")],
            *[node("Where", "nan zero shares", "safe"), node("MatMul", "safe v", "y")],
        ],
        {"m": (LONG, SEEN)},
        zero=np.array(0, np.float32),
    )
    feeds = feeds_of(made)
    feeds["m"][1] = -np.inf
    feeds["m"][3, 2] = np.inf
    assert fused(compare(made, feeds))


def test_rows_that_get_other_numbers_stay() -> None:
    nodes = [*SCORES, END[0], node("IsNaN", "shares", "nan"), node("Where", "nan one shares", "safe")]
    made = network([*nodes, node("MatMul", "safe v", "y")], one=np.array(1, np.float32))
    assert not fused(compiled(made))


@pytest.mark.parametrize(
    ("more", "text"), [("", ""), ("", "<is_causal = 1>"), (", bool[5,7] m", ""), (", float[5,7] m", "")]
)
def test_the_operator(more: str, text: str) -> None:
    last = ", m" if more else ""
    head = f"g (float[1,6,5,8] q, float[1,2,7,8] k, float[1,2,7,9] v{more}) => (float[1,6,5,9] y)"
    body = f"y = Attention{text}(q, k, v{last})"
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": 23]> {head} {{ {body} }}')
    package = compiled(made)
    assert fused(package)
    feeds = feeds_of(made)
    if "bool" in more:
        feeds["m"] = feeds["m"] > 0
        feeds["m"][2] = False
    want = ReferenceEvaluator(made).run(None, feeds)[0]
    got = build(package, Options(target="generic").resolved_target()).run(feeds)["y"]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


def test_arena_is_linear_in_length() -> None:
    sizes = []
    for length in (256, 512, 1024):
        ins = {name: (1, 2, length, 8) for name in "qkv"}
        package = compiled(network([*SCORES, *END], ins), target="generic")
        sizes.append(package.plan.arena_bytes)
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_shares_that_are_rounded_stay() -> None:
    """What is stored in 16 bits is rounded there."""
    made = network([TURN, node("MatMul", "q kt", "scores"), *END])
    for one in (*made.graph.input, *made.graph.output):
        one.type.tensor_type.elem_type = TensorProto.FLOAT16
    assert not fused(compiled(made, prefer="ram"))
