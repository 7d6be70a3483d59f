"""Functions are indented by the blocks that their lines show; blocks that mean nothing go, and all else stays."""

from __future__ import annotations

import pytest

from mccompile.base.errors import WrongUse
from mccompile.base.marked import part
from mccompile.emit.layout import laid_out

LAID_OUT = """void f(float *y)
{
    for (int i = 0; i < 4; ++i) { /* rows */
        const float *const p = y + i;
        const int j = 0;
        p[i + j] = g(-1.0f,
            (i, j));
        /* two
         * lines { */
    } else {
        static const int t[2] = {
            1,
            2
        };
        g("}", '{');
    }
#pragma once
}
"""


def test_blocks_are_indented() -> None:
    assert laid_out("\n".join(line.strip() for line in LAID_OUT.splitlines())) == LAID_OUT


def test_a_block_in_a_part_stays_where_the_brackets_of_that_may_go() -> None:
    text = f"void f(float *y)\n{{\n{part('rows')} {{\n{{\nconst int i = 0;\ny[i] = 0.0f;\n}}\n}}\ng(y);\n}}"
    assert laid_out(text).count("{") == 3


def test_a_block_that_ends_with_the_one_around_it_is_part_of_that() -> None:
    first, second = "const float *const p", "const int j"
    text = LAID_OUT.replace(first, f"{{\n\n{first}").replace(second, f"{{\n{second}")
    assert laid_out(text.replace("p[i + j]", "{\np[i + j]").replace("} else", "}\n}\n}\n} else")) == LAID_OUT


@pytest.mark.parametrize(
    "lines",
    [
        ["f();", "{", "int a;", "}", "{", "int a;", "}"],  # blocks side by side
        ["{", "int a;", "}", "f();"],  # something follows
        ["case 1:", "{", "int a;", "}"],  # a label may not stand in front of a declaration
    ],
)
def test_blocks_that_are_needed_stay(lines: list[str]) -> None:
    text = "\n".join(["void f(void)", "{", *lines, "}"])
    assert [line.strip() for line in laid_out(text).splitlines()][2:-1] == lines


@pytest.mark.parametrize(
    "lines",
    [
        ["{", "a[i + 1] = b;", "g(a);", "}", "f();"],
        ["{", "for (;;) {", "int a;", "}", "}", "f();"],  # what is named stays in its own block
    ],
)
def test_a_block_that_declares_nothing_goes(lines: list[str]) -> None:
    text = "\n".join(["void f(void)", "{", *lines, "}"])
    kept = [line.strip() for line in laid_out(text).splitlines()][2:-1]
    assert kept == [*lines[1:-2], "f();"]


@pytest.mark.parametrize("line", ["float a = 1;", "T a;", "SUMS(a);", "const int b[2] = {0};", "f(a,\nb);"])
def test_a_block_that_may_declare_something_stays(line: str) -> None:
    assert laid_out(f"void f(void)\n{{\n{{\n{line}\n}}\nf();\n}}").splitlines()[2] == "    {"


@pytest.mark.parametrize("text", ["{\nf();", "f();\n}\n", "{\nif (a) { f();\n}\n}\n"])
def test_blocks_that_lines_do_not_show_are_refused(text: str) -> None:
    with pytest.raises(WrongUse, match=r"end every line that opens a block with \{"):
        laid_out(text)


def test_a_macro_in_front_of_a_loop_has_its_own_line_and_stays_with_it() -> None:
    text = "f();\nMCC_ROLLED for (;;) {\ng();\n}\n"
    shown = "f();\nMCC_ROLLED\nfor (;;) {\n    g();\n}\n"
    assert laid_out(text) == laid_out(shown) == shown
