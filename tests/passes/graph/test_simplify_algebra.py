from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mccompile.frontend.load import load_proto
from mccompile.graph.verify import verify
from mccompile.passes.api import Context
from mccompile.passes.graph.simplify_algebra import simplify_algebra
from tests.passes.conftest import parse
from tests.small_models import floats


def around(*lines: str, type: str = "f32[2,3]") -> str:
    """Lines that make %b out of %a, between operators that no rule touches."""
    middle = "\n".join(lines)
    return f'input %x: {type}\n%a: {type} = Tanh(%x) from "a"\n{middle}\noutput %y'


LAST = '%y: f32[2,3] = Exp(%b) from "y"'
WITHOUT = around('%y: f32[2,3] = Exp(%a) from "y"')


@pytest.mark.parametrize(
    "lines",
    [
        ['%b: f32[2,3] = Identity(%a) from "b"'],
        ['%b: f32[2,3] = Dropout(%a) from "b"'],
        ['%b: f32[2,3] = Transpose(%a) {perm=(0, 1)} from "b"'],
        ['%t: f32[3,2] = Transpose(%a) {perm=(1, 0)} from "t"', '%b: f32[2,3] = Transpose(%t) {perm=(1, 0)} from "b"'],
        ['%t: f32[3,2] = Transpose(%a) from "t"', '%b: f32[2,3] = Transpose(%t) from "b"'],
        ['%t: f32[1,6] = Flatten(%a) {axis=0} from "t"', '%b: f32[2,3] = Reshape(%t, %s) from "b"'],
        ['%b: f32[2,3] = Reshape(%a, %s) from "b"'],
        ['%b: f32[2,3] = Expand(%a, %s) from "b"'],
        ['%b: f32[2,3] = Slice(%a, %from, %to) from "b"'],
        ['%b: f32[2,3] = Pad(%a, %none) from "b"'],
        ['%b: f32[2,3] = Concat(%a) {axis=0} from "b"'],
        ['%b: f32[2,3] = Max(%a) from "b"'],
        ['%b: f32[2,3] = Cast(%a) {to=1} from "b"'],
        ['%t: f64[2,3] = Cast(%a) {to=11} from "t"', '%b: f32[2,3] = Cast(%t) {to=1} from "b"'],
    ],
    ids=lambda lines: lines[-1].split("=")[1].split("(")[0].strip() + str(len(lines)),
)
def test_what_changes_nothing_goes_away(check: Any, lines: list[str]) -> None:
    constants = {"s": np.array([2, 3]), "from": np.array([0, 0]), "to": np.array([9, 9]), "none": np.zeros(4, np.int64)}
    declared = [f"const %{n}: i64[{len(a)}] = #{n}" for n, a in constants.items() if f"%{n}" in " ".join(lines)]
    check(simplify_algebra, around(*declared, *lines, LAST), WITHOUT, **constants)


@pytest.mark.parametrize("operator", ["Relu", "Abs", "Floor", "Ceil", "Round", "Sign"])
def test_what_is_done_twice_is_done_once(check: Any, operator: str) -> None:
    check(
        simplify_algebra,
        around(f'%t: f32[2,3] = {operator}(%a) from "t"', f'%b: f32[2,3] = {operator}(%t) from "b"', LAST),
        around(f'%t: f32[2,3] = {operator}(%a) from "t"', '%y: f32[2,3] = Exp(%t) from "y"'),
    )


@pytest.mark.parametrize("operator", ["Neg", "Not"])
def test_what_is_undone_goes_away(check: Any, operator: str) -> None:
    type = "bool[4]" if operator == "Not" else "f32[4]"
    check(
        simplify_algebra,
        f"""
        input %x: {type}
        input %z: {type}
        %a: {type} = {operator}(%x) from "a"
        %b: {type} = {operator}(%a) from "b"
        %y: bool[4] = Equal(%b, %z) from "y"
        output %y
        """,
        f"""
        input %x: {type}
        input %z: {type}
        %y: bool[4] = Equal(%x, %z) from "y"
        output %y
        """,
    )


@pytest.mark.parametrize(
    ("call", "element"),
    [("Mul(%a, %c)", 1), ("Mul(%c, %a)", 1), ("Div(%a, %c)", 1), ("Add(%a, %c)", 0), ("Sub(%a, %c)", 0)],
)
def test_a_neutral_constant_goes_away_and_is_recorded(check: Any, call: str, element: int) -> None:
    check(
        simplify_algebra,
        around("const %c: f32[3] = #c", f'%b: f32[2,3] = {call} from "b"', LAST),
        f'fact "every element of c is {element}"\n{WITHOUT}',
        c=np.full(3, element, np.float32),
    )


@pytest.mark.parametrize(
    ("call", "elements"),
    [
        ("Mul(%a, %c)", [1, 1, 2]),
        ("Div(%c, %a)", [1, 1, 1]),
        ("Sub(%c, %a)", [0, 0, 0]),
        ("Slice(%a, %last, %first, %axis, %back)", [0, 0, 0]),
    ],
)
def test_what_only_looks_neutral_stays(check: Any, call: str, elements: list[float]) -> None:
    constants = {
        "c": np.array(elements, np.float32),
        "last": np.array([-1]),
        "first": np.array([-9]),
        "axis": np.array([1]),
        "back": np.array([-1]),
    }
    declared = [
        f"const %{n}: {'f32' if n == 'c' else 'i64'}[{len(a)}] = #{n}" for n, a in constants.items() if f"%{n}" in call
    ]
    text = around(*declared, f'%b: f32[2,3] = {call} from "b"', LAST)
    check(simplify_algebra, text, text, **constants)


def test_a_neutral_constant_that_stretches_its_operand_is_an_expansion(check: Any) -> None:
    check(
        simplify_algebra,
        """
        input %x: f32[1,3]
        const %one: f32[2,3] = #one
        %y: f32[2,3] = Mul(%x, %one) from "y"
        output %y
        """,
        """
        fact "every element of one is 1"
        input %x: f32[1,3]
        const %"y/shape": i64[2] = #shape
        %y: f32[2,3] = Expand(%x, %"y/shape") from "y"
        output %y
        """,
        one=np.ones((2, 3), np.float32),
        shape=np.array([2, 3]),
    )


def test_whole_numbers_times_nothing_are_nothing(check: Any) -> None:
    check(
        simplify_algebra,
        """
        input %x: i32[2,3]
        const %c: i32[3] = #c
        %a: i32[2,3] = Mul(%c, %x) from "a"
        %y: i32[2,3] = Neg(%a) from "y"
        output %y
        """,
        """
        fact "every element of c is 0"
        const %c: i32[3] = #c
        input %x: i32[2,3]
        const %"a/shape": i64[2] = #shape
        %a: i32[2,3] = Expand(%c, %"a/shape") from "a"
        %y: i32[2,3] = Neg(%a) from "y"
        output %y
        """,
        c=np.zeros(3, np.int32),
        shape=np.array([2, 3]),
    )


def test_floats_times_nothing_may_be_no_numbers(check: Any) -> None:
    text = around("const %c: f32[3] = #c", '%b: f32[2,3] = Mul(%a, %c) from "b"', LAST)
    check(simplify_algebra, text, text, c=np.zeros(3, np.float32))


@pytest.mark.parametrize("inner", ["Relu", "Sigmoid", "Abs", "Exp", "Softmax"])
@pytest.mark.parametrize("outer", ["Relu", "Abs"])
def test_what_is_never_negative_stays_as_it_is(check: Any, inner: str, outer: str) -> None:
    check(
        simplify_algebra,
        around(f'%t: f32[2,3] = {inner}(%a) from "t"', f'%b: f32[2,3] = {outer}(%t) from "b"', LAST),
        around(f'%t: f32[2,3] = {inner}(%a) from "t"', '%y: f32[2,3] = Exp(%t) from "y"'),
    )


BOUNDS = [
    ('%t: f32[2,3] = Relu(%a) from "t"', '%b: f32[2,3] = Clip(%t, %m, %p) from "b"', 0.0, 6.0),
    ('%t: f32[2,3] = Clip(%a, %m, %p) from "t"', '%b: f32[2,3] = Relu(%t) from "b"', 0.0, 6.0),
    ('%t: f32[2,3] = Clip(%a, %m, %p) from "t"', '%b: f32[2,3] = Clip(%t, %n, %q) from "b"', -1.0, 3.0),
    ('%t: f32[2,3] = Clip(%a, %m, %n) from "t"', '%b: f32[2,3] = Clip(%t, %q, %p) from "b"', 3.0, 3.0),
]


@pytest.mark.parametrize(("first", "second", "low", "high"), BOUNDS)
def test_bounds_of_bounds_are_bounds(context: Context, first: str, second: str, low: float, high: float) -> None:
    numbers = {"m": -2.0, "n": -1.0, "p": 6.0, "q": 3.0}
    used = [name for name in numbers if f"%{name}" in first + second]
    declared = [f"const %{name}: f32[] = #{name}" for name in used]
    graph = parse(around(*declared, first, second, LAST), {name: np.float32(numbers[name]) for name in used})
    simplify_algebra(graph, context)
    verify(graph)
    clip = next(node for node in graph.nodes if node.op.name == "Clip")
    assert [node.op.name for node in graph.nodes] == ["Tanh", "Clip", "Exp"]
    assert [value.constant.array.item() for value in clip.inputs[1:] if value and value.constant] == [low, high]
    assert graph.assumptions


def test_bounds_in_the_wrong_order_stay(check: Any) -> None:
    text = around(
        "const %p: f32[] = #p",
        "const %m: f32[] = #m",
        '%t: f32[2,3] = Clip(%a, %p, %m) from "t"',
        '%b: f32[2,3] = Relu(%t) from "b"',
        LAST,
    )
    check(simplify_algebra, text, text, m=np.float32(-1), p=np.float32(1))


@pytest.mark.parametrize(("operator", "result"), [("Add", "Sub"), ("Sub", "Add")])
def test_signs_are_joined(check: Any, operator: str, result: str) -> None:
    def graph(line: str) -> str:
        return f"input %x: f32[4]\ninput %z: f32[4]\n{line}\noutput %y"

    check(
        simplify_algebra,
        graph(f'%n: f32[4] = Neg(%z) from "n"\n%y: f32[4] = {operator}(%x, %n) from "y"'),
        graph(f'%y: f32[4] = {result}(%x, %z) from "n", "y"'),
    )


def test_transposes_are_joined(check: Any) -> None:
    check(
        simplify_algebra,
        """
        input %x: f32[2,3,4]
        %a: f32[3,4,2] = Transpose(%x) {perm=(1, 2, 0)} from "a"
        %b: f32[4,3,2] = Transpose(%a) {perm=(1, 0, 2)} from "b"
        %y: f32[4,3,2] = Exp(%b) from "y"
        output %y
        """,
        """
        input %x: f32[2,3,4]
        %b: f32[4,3,2] = Transpose(%x) {perm=(2, 1, 0)} from "a", "b"
        %y: f32[4,3,2] = Exp(%b) from "y"
        output %y
        """,
    )


def test_reshapes_are_joined(check: Any) -> None:
    check(
        simplify_algebra,
        """
        input %x: f32[2,3,4]
        const %s: i64[2] = #s
        %a: f32[2,12] = Flatten(%x) from "a"
        %b: f32[4,6] = Reshape(%a, %s) from "b"
        %y: f32[4,6] = Exp(%b) from "y"
        output %y
        """,
        """
        input %x: f32[2,3,4]
        const %"b/shape": i64[2] = #s
        %b: f32[4,6] = Reshape(%x, %"b/shape") from "a", "b"
        %y: f32[4,6] = Exp(%b) from "y"
        output %y
        """,
        s=np.array([4, 6]),
    )


def test_a_cast_that_loses_something_stays(check: Any) -> None:
    text = """
        input %x: f32[4]
        %a: f16[4] = Cast(%x) {to=10} from "a"
        %b: f32[4] = Cast(%a) {to=1} from "b"
        %y: f32[4] = Exp(%b) from "y"
        output %y
        """
    check(simplify_algebra, text, text)


def test_a_cast_between_that_holds_everything_is_passed_over(check: Any) -> None:
    check(
        simplify_algebra,
        """
        input %x: u8[4]
        %a: i32[4] = Cast(%x) {to=6} from "a"
        %y: f32[4] = Cast(%a) {to=1} from "y"
        output %y
        """,
        """
        input %x: u8[4]
        %y: f32[4] = Cast(%x) {to=1} from "a", "y"
        output %y
        """,
    )


def test_an_output_takes_the_place_of_what_it_repeats(check: Any) -> None:
    check(
        simplify_algebra,
        """
        input %x: f32[4]
        %a: f32[4] = Exp(%x) from "a"
        %y: f32[4] = Identity(%a) from "y"
        output %y
        """,
        """
        input %x: f32[4]
        %y: f32[4] = Exp(%x) from "a"
        output %y
        """,
    )


@pytest.mark.parametrize(
    "text",
    [
        'input %x: f32[4]\n%y: f32[4] = Identity(%x) from "y"\noutput %y',
        'input %x: f32[4]\n%a: f32[4] = Exp(%x) from "a"\n%y: f32[4] = Identity(%a) from "y"\noutput %a\noutput %y',
    ],
    ids=["of an input", "of another output"],
)
def test_an_output_that_repeats_what_has_a_name_of_its_own_stays(check: Any, text: str) -> None:
    check(simplify_algebra, text, text)


@pytest.mark.parametrize(
    ("scale", "is_moved"), [(0.5, True), (-0.5, False)], ids=["rises with the element", "falls with the element"]
)
def test_the_largest_of_quantized_elements_is_taken(check: Any, scale: float, is_moved: bool) -> None:
    def around(*lines: str) -> str:
        head = "input %x: f32[1,2,4,4]\nconst %s: f32[] = #s\nconst %z: u8[] = #z\nconst %flat: i64[2] = #flat"
        return "\n".join([head, *lines, "output %q"])

    window = "{ceil_mode=0, kernel_shape=(2, 2), strides=(2, 2)}"
    before = around(
        f'%p: f32[1,2,2,2] = MaxPool(%x) {window} from "p"',
        '%r: f32[1,8] = Reshape(%p, %flat) from "r"',
        '%q: u8[1,8] = QuantizeLinear(%r, %s, %z) from "q"',
    )
    moved = around(
        'fact "s is positive"',
        '%q_2: u8[1,2,4,4] = QuantizeLinear(%x, %s, %z) from "p", "r", "q"',
        f'%q_3: u8[1,2,2,2] = MaxPool(%q_2) {window} from "p", "r", "q"',
        '%q: u8[1,8] = Reshape(%q_3, %flat) from "p", "r", "q"',
    )
    constants = {"s": np.array(scale, np.float32), "z": np.array(3, np.uint8), "flat": np.array([1, 8])}
    check(simplify_algebra, before, moved if is_moved else before, **constants)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((3, 1, 1), "Conv"), ((1, 3, 1, 1), "Conv"), ((1, 3, 1, 4), "Conv Add"), ((4,), "Conv Add"), ((1,), "Conv Add")],
)
def test_a_constant_per_channel_is_the_bias_of_a_convolution(
    shape: tuple[int, ...], expected: str, context: Context
) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1,2,6,6] x) => (float[1,3,4,4] y) {
    c = Conv(x, w) y = Add(b, c) }"""
    made = onnx.parser.parse_model(text)
    arrays = {"w": floats(0, 3, 2, 3, 3), "b": floats(1, *shape)}
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    graph = load_proto(made)
    simplify_algebra(graph, context)
    assert " ".join(node.op.name for node in graph.nodes) == expected
