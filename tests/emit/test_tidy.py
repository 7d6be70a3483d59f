"""What templates leave of brackets, braces and blank lines goes; what means something stays."""

from __future__ import annotations

import pytest

from mccompile.emit.tidy import tidied

FUNCTION = """void f(float *y)
{
for (int i = 0; i < 4; ++i) {
{

const float *const p = y + (i);
{ const int j = 0;
{
p[(i + j)] = g((-1.0f), (i, j));
}
}
}
}
}
"""


def test_a_block_that_ends_with_the_one_around_it_is_part_of_that() -> None:
    assert (
        tidied(FUNCTION)
        == """void f(float *y)
{
for (int i = 0; i < 4; ++i) {
const float *const p = y + i;
const int j = 0;
p[i + j] = g(-1.0f, (i, j));
}
}
"""
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["f();", "{", "int a;", "}", "{", "int a;", "}", "}"],  # blocks side by side
        ["{", "int a;", "}", "f();"],  # something follows
        ["case 1:", "{", "int a;", "}", "}"],  # a label may not stand in front of a declaration
        ["if (a) {", "/* {", "*/", "{", "int a;", "}", "b();"],
    ],
)
def test_blocks_that_are_needed_stay(lines: list[str]) -> None:
    assert tidied("\n".join(lines)).splitlines() == lines


@pytest.mark.parametrize(
    "line",
    [
        "y = (a + b) * c;",
        "y = a == (b & c);",
        "y = (float)x, z = (int32_t) - x, w = (mcc_index) * p;",
        "uint32_t *const words = (uint32_t *)(void *)scratch;",
        "if (a) f(sizeof (x));",
        'f("((a))", x /* ((b)) */);',
        "y = x + (a + b);",
        "return (a) ? b : c;",
    ],
)
def test_brackets_that_are_needed_stay(line: str) -> None:
    assert tidied(line) == line + "\n"


def test_a_position_that_nothing_reads_goes_with_what_only_it_read() -> None:
    text = """void f(float *y)
{
for (mcc_index s = 0; s < 4; ++s) {
const mcc_index t = s;
const mcc_index at = t * 3;
y[s] = 0.0f;
}
for (mcc_index t = 0; t < 4; ++t) {
const mcc_index at = t;
y[at] = 1.0f;
}
}
"""
    gone = "const mcc_index t = s;\nconst mcc_index at = t * 3;\n"
    assert tidied(text) == text.replace(gone, "")


def test_a_position_that_is_read_stays_beside_one_that_is_not() -> None:
    line = "const mcc_index below = top + 1, row = below < 8 ? below : 7;"
    assert line in tidied(f"{{\n{line}\ny[row] = 0;\n}}")
