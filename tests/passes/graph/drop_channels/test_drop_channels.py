"""Channels that never vary or that nobody reads are left out, and every result stays what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.kernels.registry import Registry
from mccompile.passes.api import GRAPH, Context, PassManager
from mccompile.passes.graph.drop_channels.drop_channels import drop_channels, suits
from mccompile.passes.lower import lower
from mccompile.pipeline import GRAPH_PASSES
from mccompile.targets import api as targets
from tests.passes.conftest import parse
from tests.passes.graph.exact_qdq import run
from tests.passes.program.interpreter import outputs
from tests.passes.qdq_graphs import BLOCKS, network, some_integers
from tests.thorough import some

CONTEXT = Context(targets.load("generic"), Registry.load(()))
NAMED = {block.__name__: number for number, block in enumerate(BLOCKS)}
ALONG = [n for name, n in NAMED.items() if name not in ("shares", "normal", "product")]  # what channels go through


def compiled(model: ModelProto, *without: str) -> Graph:
    graph = load_proto(model)
    PassManager(CONTEXT).run(GRAPH, graph, [step for step in GRAPH_PASSES if step.name not in without])
    return graph


@some(8, "seed", range(24))
def test_random_networks_with_dead_channels_are_exact(seed: int) -> None:
    chance = np.random.default_rng(seed)
    blocks = [0 if chance.random() < 0.4 else int(chance.choice(ALONG)) for _ in range(5)]
    model = network(seed, blocks, 9, dead=0.5)
    inputs = some_integers(model)
    found, before = (outputs(lower(compiled(model, *out)), inputs) for out in ([], ["drop_channels"]))
    for name, array in run(model, inputs).items():
        np.testing.assert_array_equal(before[name], array, err_msg=name)
        np.testing.assert_array_equal(found[name], array, err_msg=name)


# -- one convolution, what stands between, and a reader; which channels of the first are kept

W = np.array([0, 2, 0, 3], np.int8).reshape(4, 1, 1, 1) * np.array([1, -1], np.int8).reshape(1, 2, 1, 1)
BIAS, SHAPE = np.array([300, 20, -500, 40], np.int32), (4, 1, 1)
HEAD = """
  input %x: i8[1,2,5,5]
  const %w: i8[4,2,1,1] = #w
  const %wx: i8[] = #wx
  const %b: i32[4,1,1] = #b
  const %m: i32[4,1,1] = #m
  const %a: i32[4,1,1] = #a
"""
FIRST = """
  %s: i32[1,4,5,5] = ConvInteger(%x, %w, %wx)
  %q: i8[1,4,5,5] = mccompile.ShortRescale(%s, %b, %m, %a, none, none, none) {shift=2, to=3}
"""
NUMBERS = {
    "w": W,
    "wx": np.int8(1),
    "b": BIAS.reshape(SHAPE),
    "m": np.full(SHAPE, 1 << 26, np.int32),
    "a": np.full(SHAPE, 2, np.int32),
}
CONSTANT = [1, 0, -2, 0]  # what channels 0 and 2 of q are
KINDS = {"int8": "i8", "int32": "i32", "int64": "i64", "uint8": "u8"}


def before_and_after(body: str, facts: frozenset[str] | None = None, **arrays: np.ndarray) -> Graph:
    """The graph after the pass; its results are what they were."""
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    shapes = {name: ",".join(map(str, array.shape)) for name, array in arrays.items()}
    more = "".join(f"  const %{n}: {KINDS[a.dtype.name]}[{shapes[n]}] = #{n}\n" for n, a in arrays.items())
    graph, was = (parse(f"{HEAD}{more}{FIRST}{body}", {**NUMBERS, **arrays}) for _ in range(2))
    verify(graph)
    graph.facts_known = facts
    drop_channels(graph, CONTEXT)
    verify(graph, "drop_channels")
    chance = np.random.default_rng(0)
    given = {v.name: chance.integers(-128, 128, v.type.static_shape).astype(np.int8) for v in graph.inputs}
    found, wanted = (outputs(lower(each), given) for each in (graph, was))
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    return graph


def kept(body: str, **arrays: np.ndarray) -> int:
    """How many of the four channels of the first convolution there are."""
    graph = before_and_after(body, **arrays)
    (first,) = (node for node in graph.nodes if node.inputs[0] is graph.inputs[0])
    return first.output.type.static_shape[1]


def some(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 20, shape).astype(np.int8)


LAST = "  %y: i32[1,3,5,5] = ConvInteger(%q, %v)\n  output %y\n"
POINT = {"v": some(3, 4, 1, 1)}


def test_channels_of_zero_weights_become_part_of_the_next_sums() -> None:
    graph = before_and_after(LAST, **POINT)
    assert [node.op.name for node in graph.nodes] == ["ConvInteger", "ShortRescale", "ConvInteger", "Add"]
    assert list(graph.assumptions) == ["s needs 2 of 4 channels"]
    (shifts,) = (value.constant for node in graph.nodes if node.op.name == "Add" for value in node.inputs[1:] if value)
    assert shifts is not None
    np.testing.assert_array_equal(shifts.array.reshape(-1), POINT["v"].reshape(3, 4).astype(int) @ CONSTANT)


def test_a_bias_behind_the_sums_takes_them() -> None:
    body = """
  %t: i32[1,4,5,5] = ConvInteger(%q, %v)
  %y: i8[1,4,5,5] = mccompile.ShortRescale(%t, %b, %m, %a, none, none, none) {shift=2, to=3}
  output %y
"""
    graph = before_and_after(body, v=some(4, 4, 1, 1))
    assert [node.op.name for node in graph.nodes] == ["ConvInteger", "ShortRescale"] * 2


def test_channels_that_only_meet_zeros_are_not_computed() -> None:
    last = some(3, 4, 1, 1)
    last[:, 3] = 0
    assert kept(LAST, v=last) == 1


def test_at_least_one_channel_is_kept() -> None:
    graph = before_and_after(LAST, v=np.zeros((3, 4, 1, 1), np.int8))
    assert [fact.split()[2] for fact in graph.assumptions] == ["1"]


PADDED = "  %y: i32[1,3,5,5] = ConvInteger(%q, %v, %z) {pads=(1,1,1,1)}\n  output %y\n"


def test_borders_keep_channels_that_are_not_the_zero_point() -> None:
    assert kept(PADDED, v=some(3, 4, 3, 3), z=np.int8(1)) == 3  # channel 0 is the zero point
    assert kept(PADDED, v=some(3, 4, 3, 3), z=np.int8(0)) == 4


def test_taps_that_never_hang_over_need_no_zero_point() -> None:
    middle = some(3, 4, 3, 3) * (np.arange(9).reshape(3, 3) == 4)
    assert kept(PADDED, v=middle.astype(np.int8), z=np.int8(0)) == 2


def test_depthwise_convolutions_keep_or_lose_both_sides() -> None:
    body = """
  %t: i32[1,4,5,5] = ConvInteger(%q, %d, %z) {pads=(1,1,1,1), group=4}
  %u: i8[1,4,5,5] = mccompile.ShortRescale(%t, %b, %m, %a, none, none, none) {shift=2, to=3}
  %y: i32[1,3,5,5] = ConvInteger(%u, %v)
  output %y
"""
    rows = some(4, 1, 3, 3)
    assert kept(body, d=rows, z=np.int8(1), **POINT) == 3
    rows = rows * (np.arange(4) != 3).reshape(4, 1, 1, 1)
    assert kept(body, d=rows.astype(np.int8), z=np.int8(1), **POINT) == 2


def test_groups_stay_whole() -> None:
    body = "  %t: i32[1,4,5,5] = ConvInteger(%q, %d) {group=2}\n  %y: i8[1,4,5,5] = Cast(%t) {to=3}\n"
    body += "  %r: i32[1,3,5,5] = ConvInteger(%y, %v)\n  output %r\n"
    rows = some(4, 2, 1, 1)
    assert kept(body, d=rows, **POINT) == 4
    rows = rows * (np.arange(4) > 1).reshape(4, 1, 1, 1)
    assert kept(body, d=rows.astype(np.int8), **POINT) == 2


def test_outputs_keep_all_channels() -> None:
    assert kept("  %y: i32[1,3,5,5] = ConvInteger(%q, %v)\n  output %y\n  output %q\n", **POINT) == 4


def test_what_is_added_to_something_that_varies_stays() -> None:
    body = "  %t: i32[1,4,5,5] = ConvInteger(%x, %w2)\n  %u: i8[1,4,5,5] = Cast(%t) {to=3}\n"
    body += "  %p: i8[1,4,5,5] = Add(%q, %u)\n  %y: i32[1,3,5,5] = ConvInteger(%p, %v)\n  output %y\n"
    other = np.array([1, 1, 0, 1], np.int8).reshape(4, 1, 1, 1) * np.ones((1, 2, 1, 1), np.int8)
    graph = before_and_after(body, w2=other, **POINT)
    assert sorted(graph.assumptions) == ["s needs 3 of 4 channels", "t needs 3 of 4 channels"]


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        ("%p: i8[1,4,5,5] = mccompile.Lookup(%q, %t)", {"t": np.arange(256).astype(np.uint8).view(np.int8)}),
        ("%p: i8[1,4,5,5] = MaxPool(%q) {kernel_shape=(3,3), pads=(1,1,1,1)}", {}),
        ("%p: i8[1,4,5,5] = Max(%q, %k)", {"k": np.arange(-2, 2, dtype=np.int8).reshape(4, 1, 1)}),
        ("%h: i8[1,5,5,4] = Transpose(%q) {perm=(0,2,3,1)}\n  %p: i8[1,4,5,5] = Transpose(%h) {perm=(0,3,1,2)}", {}),
        ("%h: i8[1,4,25] = Reshape(%q, %l)\n  %p: i8[1,4,5,5] = Reshape(%h, %k)",
         {"l": np.array([0, 4, -1]), "k": np.array([1, 4, 5, 5])}),
        ("%h: i8[1,8,5,5] = Concat(%q, %q) {axis=1}\n  %k: i32[1,4,5,5] = ConvInteger(%h, %o)\n"
         "  %p: i8[1,4,5,5] = Cast(%k) {to=3}", {"o": some(4, 8, 1, 1)}),
        ("%h: i8[1,4,5,10] = Concat(%q, %q) {axis=3}\n  %k: i32[1,4,5,5] = ConvInteger(%h, %o) {strides=(1,2)}\n"
         "  %p: i8[1,4,5,5] = Cast(%k) {to=3}", {"o": some(4, 4, 1, 1)}),
    ],
)  # fmt: skip
def test_channels_go_through(body: str, arrays: dict[str, np.ndarray]) -> None:
    assert kept(f"  {body}\n{LAST.replace('%q', '%p')}", **POINT, **arrays) == 2


@pytest.mark.parametrize(("number", "count"), [(np.int8(1), 3), (np.int8(-2), 3), (np.int8(0), 4)])
def test_padding_with_another_number_makes_a_channel_vary(number: np.ndarray, count: int) -> None:
    body = "  %p: i8[1,4,7,7] = Pad(%q, %e, %n)\n  %y: i32[1,3,7,7] = ConvInteger(%p, %v)\n  output %y\n"
    assert kept(body, e=np.array([0, 0, 1, 1, 0, 0, 1, 1]), n=number, **POINT) == count


def test_sums_over_windows_that_hang_over_vary() -> None:
    body = "  %p: i32[1,4,{n},{n}] = mccompile.SumPool(%q) {{kernel_shape=(3,3), strides=(1,1), dilations=(1,1), "
    body += "pads=({pad},{pad},{pad},{pad})}}\n  %k: i8[1,4,{n},{n}] = Cast(%p) {{to=3}}\n"
    body += "  %y: i32[1,3,{n},{n}] = ConvInteger(%k, %v)\n  output %y\n"
    assert kept(body.format(n=3, pad=0), **POINT) == 2
    assert kept(body.format(n=5, pad=1), **POINT) == 4


@pytest.mark.parametrize(
    ("body", "arrays", "count"),
    [
        # what is added is not the same everywhere
        ("%p: i8[1,4,5,5] = Max(%q, %k)", {"k": np.arange(25, dtype=np.int8).reshape(5, 5)}, 4),
        # channels between others, beside those of an operand without any
        ("%p: i8[1,8,5,5] = Pad(%q, %k)", {"k": np.array([0, 4, 0, 0, 0, 0, 0, 0])}, 4),
        ("%h: i8[1,6,5,5] = Concat(%q, %x) {axis=1}\n  %p: i8[1,6,5,5] = Relu(%h)", {}, 2),
        # joined with other numbers behind, along the width
        ("%k: i8[1,4,5,5] = Add(%q, %o)\n  %p: i8[1,4,5,10] = Concat(%q, %k) {axis=3}",
         {"o": np.array([1, 0, 0, 0], np.int8).reshape(4, 1, 1)}, 3),
    ],
)  # fmt: skip
def test_what_varies_from_place_to_place_stays(body: str, arrays: dict[str, np.ndarray], count: int) -> None:
    text = body.rpartition("i8")[2]
    _, channels, height, width = map(int, text[1 : text.index("]")].split(","))
    read = f"  %y: i32[1,3,{height},{width}] = ConvInteger(%p, %v)\n  output %y\n"
    assert kept(f"  {body}\n{read}", v=some(3, channels, 1, 1), **arrays) == count


def test_what_is_joined_with_an_input_stays_beside_it_unread() -> None:
    body = "  %p: i8[1,6,5,5] = Concat(%q, %x) {axis=1}\n  %y: i32[1,3,5,5] = ConvInteger(%p, %v)\n  output %y\n"
    assert kept(body, v=some(3, 6, 1, 1) * (np.arange(6) < 4).astype(np.int8).reshape(6, 1, 1)) == 2


def test_transposed_convolutions_take_only_the_zero_point() -> None:
    body = "  %y: i32[1,3,7,7] = mccompile.ConvTransposeInteger(%q, %v, %z)\n  output %y\n"
    assert kept(body, v=some(4, 3, 3, 3), z=np.int8(1)) == 3
    assert kept(body, v=some(4, 3, 3, 3), z=np.int8(0)) == 4


def test_products_read_what_is_flattened() -> None:
    body = "  %f: i8[1,100] = Flatten(%q)\n  %y: i32[1,3] = MatMulInteger(%f, %v, %z)\n  output %y\n"
    assert kept(body, v=some(100, 3), z=np.int8(3)) == 2


def test_sizes_may_be_free() -> None:
    text = """
  dim n in 1..4
  input %x: i8[n,2,5,5]
  const %w: i8[4,2,1,1] = #w
  const %v: i8[100,3] = #v
  const %l: i64[2] = #l
  %s: i32[n,4,5,5] = ConvInteger(%x, %w)
  %q: i8[n,4,5,5] = Cast(%s) {to=3}
  %f: i8[n,100] = Reshape(%q, %l)
  %y: i32[n,3] = MatMulInteger(%f, %v)
  output %y
"""
    graph = parse(text, {"w": W, "v": some(100, 3), "l": np.array([-1, 100])})
    drop_channels(graph, CONTEXT)
    verify(graph)
    assert [str(node.output.type) for node in graph.nodes] == [
        "i32[n,2,5,5]",
        "i8[n,2,5,5]",
        "i8[n,50]",
        "i32[n,3]",
    ]


def test_zero_points_of_weights_count() -> None:
    body = "  %t: i32[1,4,5,5] = ConvInteger(%q, %u, none, %z)\n  %k: i8[1,4,5,5] = Cast(%t) {to=3}\n"
    body += LAST.replace("%q", "%k")
    rows, zeros = some(4, 4, 1, 1), np.array([0, 5, 0, 6], np.int8)
    rows[1], rows[2] = 5, 0
    graph = before_and_after(body, u=rows, z=zeros, **POINT)
    assert list(graph.assumptions) == ["s needs 2 of 4 channels", "t needs 2 of 4 channels"]


# -- facts


def test_updatable_code_keeps_all() -> None:
    graph = parse(f"{HEAD}  const %v: i8[3,4,1,1] = #v\n{FIRST}{LAST}", {**NUMBERS, **POINT})
    graph.updatable = True
    drop_channels(graph, CONTEXT)
    assert not graph.assumptions and graph.nodes


@pytest.mark.parametrize(("facts", "count"), [([], 4), ([3], 3), ([2], 2), ([1], 4)])
def test_code_that_is_there_says_how_many_are_kept(facts: Sequence[int], count: int) -> None:
    known = frozenset(f"s needs {n} of 4 channels" for n in facts)
    graph = before_and_after(LAST, facts=known, **POINT)
    assert next(iter(graph.nodes)).output.type.static_shape[1] == count
    assert set(graph.assumptions) <= known


def test_counts_suit_the_kernels_of_a_target() -> None:
    def least(name: str, count: int) -> int:
        return next(n for n in range(count, 99) if suits(targets.load(name), n))

    assert [least("generic", n) for n in (1, 5)] == [1, 5]
    assert [least("cortex-m4", n) for n in (1, 5, 9)] == [4, 8, 12]
    assert [least("cortex-m55", n) for n in (1, 5, 9)] == [4, 8, 16]


def test_channels_are_added_until_a_count_suits() -> None:
    rows = np.zeros((8, 2, 1, 1), np.int8)
    rows[3] = 1
    text = """
  input %x: i8[1,2,5,5]
  const %w: i8[8,2,1,1] = #w
  const %v: i8[3,8,1,1] = #v
  %s: i32[1,8,5,5] = ConvInteger(%x, %w)
  %q: i8[1,8,5,5] = Cast(%s) {to=3}
  %y: i32[1,3,5,5] = ConvInteger(%q, %v)
  output %y
"""
    graph = parse(text, {"w": rows, "v": some(3, 8, 1, 1)})
    drop_channels(graph, replace(CONTEXT, target=targets.load("cortex-m4")))
    verify(graph)
    assert list(graph.assumptions) == ["s needs 4 of 8 channels"]
