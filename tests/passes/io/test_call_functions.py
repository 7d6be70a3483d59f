"""`--external`: C functions of the user's own in place of operators, nodes and sub-graphs."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, parser

import mccompile
from mccompile.base.errors import MccError, UnsupportedModel, WrongUse
from mccompile.base.own_functions import OwnFunction, own_function
from mccompile.base.quantizing import Recipe
from mccompile.driver import Options, compile, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure import correctness
from mccompile.measure.quantization import quantize
from mccompile.ops.external import External, handed_attributes
from mccompile.passes.io.call_functions import OURS, call_functions

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "own_operators"
MODELS: dict[str, Callable[[], ModelProto]] = runpy.run_path(str(EXAMPLE / "make_models.py"))
SWISH = f"HardSwish8=hard_swish8,include={EXAMPLE}/hard_swish8.h,python={EXAMPLE}/hard_swish8.py"
CONV = f"x+x_scale+x_zero+w+w_scale+b+y_scale+y_zero..y=nn_conv_s8,nhwc,workspace=256,include={EXAMPLE}/nn_conv_s8.h"


def written(name: str, folder: Path, change: Callable[[ModelProto], None] = lambda made: None) -> Path:
    made = MODELS[name]()
    change(made)
    path = folder / f"{name}_net.onnx"
    onnx.save(made, path)
    return path


def asked(*texts: str, **more: object) -> Options:
    return replace(Options(functions=tuple(map(own_function, texts))), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "how",
    [
        asked(SWISH),
        asked(f"{SWISH},nhwc", optimize=False),
        asked(f"{SWISH},strided,align=32,workspace=5", target="native", threads=2),
        asked(SWISH, single_file=True),
        asked(SWISH, prefer="flash", slices=True, keep_inputs=True),
    ],
    ids=["plain", "nhwc", "strided", "single_file", "slices"],
)
def test_a_function_computes_an_operator_that_nothing_knows(how: Options, tmp_path: Path) -> None:
    assert correctness.check(written("swish", tmp_path), how).ok


def test_types_come_from_python_or_the_option_where_the_model_has_none(tmp_path: Path) -> None:
    bare = written("swish", tmp_path, lambda made: made.graph.ClearField("value_info"))
    assert correctness.check(bare, asked(SWISH)).ok
    without = SWISH.partition(",python")[0]
    with pytest.raises(UnsupportedModel, match=r"result 0 of HardSwish8[\s\S]*result=f32:1x8"):
        compile(bare, asked(without))
    assert compile(bare, asked(f"{without},result=f32:1x8x6x6")).files


def test_a_convolution_is_handed_to_a_library(tmp_path: Path) -> None:
    """With other rounding than ours: within one step, seldom apart."""
    path = written("conv", tmp_path)
    x = np.random.default_rng(1).integers(-128, 128, (1, 4, 9, 9)).astype(np.int8)
    mine = mccompile.load(path)(x=x)["y"].astype(int)
    theirs = mccompile.load(path, functions=[CONV])(x=x)["y"].astype(int)
    apart = np.abs(mine - theirs)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.05 and np.unique(mine).size > 50
    functions = compile(path, asked(CONV)).plan.functions
    assert {function.call.kind.name for function in functions} <= {"external", "map"}


def test_sizes_may_be_known_only_at_run_time(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n, 3] x) => (float[3, n] y) '
    text += "{ a = Identity (x) b = Transpose <perm = [1, 0]> (a) y = Relu (b) }"
    onnx.save(parser.parse_model(text), tmp_path / "free.onnx")
    for more in ("", ",strided"):
        how = asked(f"Identity=mcc_external_copy,include={OURS}{more}", dims={"n": (1, 7)})
        assert correctness.check(tmp_path / "free.onnx", how).ok


NET = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 4] x, float[1, 4] z) => (float[1, 4] y) {
    a = Relu (x) b = Add (a, z) c = Mul (b, b) d = Neg (b) e = Add (c, d) y = Abs (e) }"""


def test_what_lies_between_tensors_becomes_one_node() -> None:
    graph = load_proto(parser.parse_model(NET))
    call_functions(graph, [own_function("a+z..e=f,workspace=8")])
    (node,) = [node for node in graph.nodes if isinstance(node.op, External)]
    assert [v.name for v in node.present_inputs] == ["a", "z"] and node.output.name == "e" and len(graph) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a..e=f", r"'e' needs input 'z' as well\n  fix    --external a\+z\.\.e=f"),
        ("b..c=f", r"there is nothing|ok"),
        ("a+z..c=f", r"'b' is read elsewhere, too\n  fix    --external a\+z\.\.c\+b=f"),
        ("a+c..e=f", r"'e' needs input 'z'"),
        ("b+d..c=f", r"ok"),
        ("a+z+c..b+e=f", r"it needs 'b' before it begins"),
        ("a..q=f", r"there is no tensor 'q'"),
        ("a..a=f", r"nothing between"),
        ("Rel=f", r"nothing in the model is called 'Rel'\n  where .*\n  why .*\n  fix    did you mean Relu\?"),
        ("Relu=f,include=nowhere.h", r"cannot read nowhere.h"),
        ("Relu=f,include=mcc_quant.h", r"cannot be included"),
    ],
)
def test_what_cannot_be_handed_over_is_refused(text: str, why: str) -> None:
    graph = load_proto(parser.parse_model(NET))
    if why.endswith("ok"):
        call_functions(graph, [own_function(text)])
        return
    with pytest.raises(WrongUse, match=why):
        call_functions(graph, [own_function(text)])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Relu", "is not OPERATOR=FUNCTION"),
        ("Relu=2f", "is not OPERATOR=FUNCTION"),
        ("Relu=f,includ=a.h", "did you mean include="),
        ("Relu=f,align=3", "not a power of two"),
        ("Relu=f,result=g32:1", "such as f32:1x8x8x3"),
    ],
)
def test_what_is_no_function_of_ones_own_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        own_function(text)


def test_attributes_are_numbers_or_text() -> None:
    given = handed_attributes({"b": 2, "a": (1.0, 2), "c": b"same", "d": (), "e": None})
    assert given == (("a", (1.0, 2.0)), ("b", (2,)), ("c", "same"), ("d", ()))
    with pytest.raises(Exception, match="attribute 'names' is no number"):
        handed_attributes({"names": ("a", "b")})


def test_who_cannot_run_the_function_says_so(tmp_path: Path) -> None:
    path = written("swish", tmp_path)
    with pytest.raises(WrongUse, match="the code of function hard_swish8 is missing"):
        correctness.check(path, asked("HardSwish8=hard_swish8"))
    with pytest.raises(MccError, match="say what HardSwish8 computes"):
        correctness.check(path, asked(SWISH.partition(",python")[0]))
    with pytest.raises(WrongUse, match="ranges cannot be found with --external HardSwish8=hard_swish8"):
        quantize(path, tmp_path / "q.onnx", None, asked(SWISH), Recipe())


def test_a_header_does_not_hide_that_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="--name hard_swish8_model"):
        compile(written("swish", tmp_path), asked(SWISH, name="hard_swish8"))


def test_a_function_of_the_model_is_handed_over_as_it_is_called(tmp_path: Path) -> None:
    """Not as the operators of its body."""

    def with_body(made: ModelProto) -> None:
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
        opsets = [helper.make_opsetid("", 17)]
        made.functions.append(helper.make_function("com.acme", "HardSwish8", ["x"], ["y"], nodes, opsets, ["top"]))

    files = compile(written("swish", tmp_path, with_body), asked(SWISH)).files
    assert b"hard_swish8(&call)" in files["swish_net_kernels.c"]


def test_a_loop_whose_condition_is_called_still_checks_how_often_it_runs() -> None:
    made = parser.parse_model("""<ir_version: 10, opset_import: ["": 19]>
    g (float a, float[n] x) => (float last, float[o] all) {
        sizes = Shape(x) trips = Squeeze(sizes) yes = Constant<value=bool {1}>()
        last, all = Loop(trips, yes, a)
        <body = b (int64 i, bool go, float before) => (bool on, float after, float out) {
            on = Identity(go) after = Add(before, before) out = Identity(after)
        }>
    }""")
    options = Options(functions=(OwnFunction("Identity", "mcc_external_copy", OURS),))
    files = compile_graph(load_proto(made, dims={"n": (2, 6)}), options, "g").files
    assert files["g.h"].decode().count("mcc_index n_n;") == 1  # as the program says, not as many trips as there were
    assert "the loop does not run n_n times" in files["g.c"].decode()
