"""Constants that nothing reads are not declared."""

from __future__ import annotations

from mccompile.emit.dead_constants import without_dead_constants
from mccompile.emit.layout import blocks, shown

A, B = "const long a = 1;", "const long *const b = a + 1;"


def kept(*lines: str) -> list[str]:
    top = blocks("\n".join(lines))
    without_dead_constants(top)
    return shown(top).split("\n")[:-1]


def test_what_is_read_behind_it_stays() -> None:
    assert kept(A, "y[0] = a;") == [A, "y[0] = a;"]
    assert kept(A, "for (;;) {", "y[0] = a;", "}")[0] == A
    assert kept(A, "do {", "f();", "} while (a);")[0] == A


def test_what_is_not_read_goes_with_what_only_that_reads() -> None:
    assert kept(A, B, "y[0] = p.a + p->b;") == ["y[0] = p.a + p->b;"]


def test_what_another_block_reads_does_not_count() -> None:
    assert kept("{", "f();", A, "}", "{", "y[0] = a;", "}") == ["f();", "y[0] = a;"]
    assert kept("if (x) {", A, "} else {", "y[0] = a;", "}")[1] == "} else {"


def test_what_another_block_declares_and_reads_is_its_own() -> None:
    assert kept(A, "{", "const long a = 2;", "y[0] = a;", "}", "f();")[0] == "{"
    assert kept(A, "{", "y[0] = a;", "const long a = 2;", "y[1] = a;", "}", "f();")[0] == A


def test_what_stands_before_it_does_not_count() -> None:
    assert kept("y[0] = a;", A) == ["y[0] = a;"]


def test_of_several_those_that_are_read_stay() -> None:
    several = "const long a = n / 2, b = a % f(a, 3), c = 1;"
    assert kept(several, "y[0] = b;") == ["const long a = n / 2, b = a % f(a, 3);", "y[0] = b;"]
    assert kept(several, "y[0] = c;") == ["const long c = 1;", "y[0] = c;"]
    assert kept(several, "y[0] = 1;") == ["y[0] = 1;"]


def test_a_declaration_may_take_several_lines() -> None:
    several = ["const struct pair p = {a * 2, /* two */", "b, (int)c};"]
    assert kept(*several, "f(&p);") == [several[0], "    " + several[1], "f(&p);"]
    assert kept("const long c = 1;", *several, "f(0);") == ["f(0);"]
    assert kept("const float t[2] = {a, b};", "/* t", "is not read */", "f(0);") == ["/* t", " is not read */", "f(0);"]


def test_pointers_are_constants_too() -> None:
    assert kept("const float *a = x, *b = y, *c = a;", "f(b);") == ["const float *b = y;", "f(b);"]


def test_what_its_value_changes_stays() -> None:
    for line in ("const long a = n++;", "const long a = f(n = 2);", "const long a = 1; f();"):
        assert kept(line, "f();") == [line, "f();"]
