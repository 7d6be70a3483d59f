"""Constants that only stand for another name are not declared, arrays of one element are variables."""

from __future__ import annotations

import pytest

from mccompile.base.marked import part, plain
from mccompile.emit.copies import without_copies
from mccompile.emit.layout import blocks, shown

OPERANDS = {
    "y": "float *MCC_RESTRICT y",
    "x": "const float *MCC_RESTRICT x",
    "begin": "mcc_index begin",
    "s": "int8_t s",
}
COPY = "const mcc_index at = begin;"


def without(*lines: str) -> list[str]:
    """The lines of the body of a function, each as it begins."""
    top = blocks("\n".join(["void f()", "{", *lines, "}"]))
    without_copies(top, OPERANDS)
    return [line.strip() for line in plain(shown(top)).splitlines()[2:-1]]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([COPY, "y[at] = p.at + q->at;"], ["y[begin] = p.at + q->at;"]),
        (
            [COPY, "for (mcc_index k = at; k < 4; ++k) {", "f(at);", "}"],
            ["for (mcc_index k = begin; k < 4; ++k) {", "f(begin);", "}"],
        ),
        (["const mcc_index n = begin, m = n * 2;", "f(n, m);"], ["const mcc_index m = begin * 2;", "f(begin, m);"]),
        (["const float *xp = x;", "f(xp);"], ["f(x);"]),
        (["const mcc_f32x8 v = g(x);", "const mcc_f32x8 w = v;", "f(w);"], ["const mcc_f32x8 v = g(x);", "f(v);"]),
        ([COPY, "y[n++] = x[0] + (begin * 4 + at * 8);"], ["y[n++] = x[0] + (begin * 4 + begin * 8);"]),
        ([COPY, "f(at); /* at */", '#define AT "at"'], ["f(begin); /* at */", '#define AT "at"']),
    ],
)
def test_a_copy_is_not_declared(lines: list[str], expected: list[str]) -> None:
    assert without(*lines) == expected


@pytest.mark.parametrize(
    "lines",
    [
        [COPY, "begin += 1;", "f(at);"],
        [COPY, "for (mcc_index begin = 0; begin < 4; ++begin) {", "f(at);", "}"],
        [COPY, "for (mcc_index n = 0; n < 4; ++n) {", "g(&begin);", "f(at);", "}"],
        [COPY, "#if defined(at)", "#endif", "f(at);"],
        ["const mcc_index at = s;", "f(at);"],
        ["const float at = unknown;", "f(at);"],
        ["const float *xp = x;", "xp += 8;"],
        ["const float *xp = x;", "MCC_NEXT(xp);"],
        ["const float *xp = y;", "f(xp);"],
        ["mcc_f32x8 v = g(x);", "const mcc_f32x8 w = v;", "v[0] = 1.0f;", "f(w);"],
    ],
)
def test_what_may_differ_stays(lines: list[str]) -> None:
    assert without(*lines) == lines


def test_a_part_is_handed_what_takes_the_place_of_a_copy() -> None:
    lines = ["const mcc_index n = g();", "const mcc_index at = n;", f"{part('rows', ['at'])} {{", "f(at);", "}"]
    top = blocks("\n".join(["void f()", "{", *lines, "}"]))
    without_copies(top, OPERANDS)
    assert part("rows", ["at", "mcc_index n"]) in shown(top)


def test_an_array_of_one_element_is_a_variable() -> None:
    lines = ["float acc[1] = {0};", "for (mcc_index k = 0; k < 4; ++k) {", "acc[0] += x[k];", "}", "y[0] = acc[0];"]
    assert without(*lines) == ["float acc = 0.0f;", *lines[1:2], "acc += x[k];", "}", "y[0] = acc;"]
    assert without("const mcc_f32x8 t[1] = {g(x, y)};", "f(t[0]);") == ["const mcc_f32x8 t = g(x, y);", "f(t);"]
    assert without("float t[1];", "t[0] = x[0];", "f(t[0]);") == ["float t;", "t = x[0];", "f(t);"]


def test_a_part_is_handed_a_pointer_to_the_variable() -> None:
    lines = ["mcc_f32x8 t[1] = {g(x)};", f"{part('rows', ['mcc_f32x8 *t'])} {{", "t[0] = f(t[0]);", "}"]
    top = blocks("\n".join(["void f()", "{", *lines, "}"]))
    without_copies(top, OPERANDS)
    assert part("rows", ["mcc_f32x8 *t", "mcc_f32x8 &t"]) in shown(top) and "t = f(t);" in shown(top)


@pytest.mark.parametrize("line", ["f(t);", "f(t[lane]);", "float t[2];"])
def test_an_array_that_is_more_stays(line: str) -> None:
    assert without("float t[1] = {0};", line)[0] == "float t[1] = {0};"
    assert without("mcc_f32x8 t[1] = {0};", "f(t[0]);")[0] == "mcc_f32x8 t[1] = {0};"
