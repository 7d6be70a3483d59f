"""Conditions that indexes decide are not printed, and all others are."""

from __future__ import annotations

import pytest

from mccompile.driver import Options
from mccompile.emit.index_values import called_for
from mccompile.emit.known_conditions import without_known_conditions
from mccompile.emit.layout import blocks, shown
from tests.small_models import compiled, conv, floats, model, node


def folded(text: str) -> str:
    top = blocks(text)
    without_known_conditions(top)
    return shown(top)


def tiles(condition: str, most: int = 15) -> str:
    return f"""
        for (mcc_index p = 0; p < {most};) {{
        const mcc_index at = p * 2 - 1;
        if ({condition}) {{
        tile(p);
        p += 2;
        }} else {{
        const mcc_index first = at < 0 ? -at : 0;
        one(p, first);
        p += 1;
        }}
        }}"""


@pytest.mark.parametrize(
    ("condition", "left", "first"),
    [
        ("p >= 0 && p <= 13", "if (p <= 13) {", "0"),  # the last one alone
        ("p >= 1 && p <= 12", "if (p >= 1 && p <= 12) {", "at < 0 ? -at : 0"),
        ("p >= 1 && p <= 14", "if (p >= 1) {", "-at"),
        ("begin == 0 && p >= 0", "if (begin == 0) {", "at < 0 ? -at : 0"),
        ("p < 0 || p >= n", "if (p >= n) {", "at < 0 ? -at : 0"),
    ],
)
def test_loops_over_tiles(condition: str, left: str, first: str) -> None:
    text = folded(tiles(condition))
    assert left in text
    assert f"first = {first};" in text


def test_what_always_or_never_holds() -> None:
    assert "if" not in folded(tiles("p >= 0")) and "one(" not in folded(tiles("p >= 0"))
    assert "tile(" not in folded(tiles("p > 14")) and "one(" in folded(tiles("p > 14"))
    assert folded("{\nconst mcc_index n = 4;\nif (n > 4) f(n);\nif (n > 3) g(n);\n}").count("(n") == 1


def test_chains_keep_what_may_be_reached() -> None:
    text = "for (mcc_index i = 0; i < 4; ++i) {\nif (i > 3) {\na();\n} else if (i == 2) {\nb();\n} else {\nc();\n}\n}"
    left = folded(text).splitlines()[1:-1]
    assert [line.strip() for line in left] == ["if (i == 2) {", "b();", "} else {", "c();", "}"]


@pytest.mark.parametrize(
    "line",
    [
        "y = x[i] < 0 ? 0 : 1;",  # of data
        "y = (uint8_t)(i < 9) ? 0 : 1;",  # not understood
        "y = i < n ? 0 : 1;",
        "y = i < 3 ? 0 : 1;",
    ],
)
def test_what_is_not_known_stays(line: str) -> None:
    assert line in folded(f"for (mcc_index i = 0; i < 4; ++i) {{\n{line}\n}}")


@pytest.mark.parametrize(
    "inside",
    [
        "i += step;\nif (i < 4) f();",
        "set(&i);\nif (i < 4) f();",
        "for (mcc_index j = 0; j < 2; ++j) {\nif (i < 4) f();\ni += 2;\n}",
        "{\nint32_t i = x[0];\nif (i < 4) f();\n}",
        "while (more()) {\nif (i < 4) f();\n++i;\n}",
    ],
)
def test_counters_that_change_are_not_known(inside: str) -> None:
    assert "if (i < 4) f();" in folded(f"for (mcc_index i = 0; i < 4;) {{\n{inside}\n}}")


def test_numbers_are_those_of_c() -> None:
    text = "for (mcc_index i = 0; i < 3; ++i) {\ny = (i - 4) / 3 <= 0 && (i - 4) % 3 <= 0 ? 1 : 2;\n}"
    assert "y = 1;" in folded(text)
    assert "y = -1;" in folded("{\nconst mcc_index i = -7 / 2;\ny = i == -3 ? -1 : 2;\n}")
    assert "y = 5;" in folded("{\nconst mcc_index i = -7 % 4;\ny = 2 * (i == -3 ? 1 : i) != 2 ? 2 : 5;\n}")


def test_nested_choices() -> None:
    line = "y[i] = 2 * (i > 5 ? 1 : i < 9 ? x[i] : 3) + (n < 0 ? i < 9 ? 7 : 8 : i);"
    text = f"for (mcc_index i = 0; i < 4; ++i) {{\n{line}\n}}"
    assert "y[i] = 2 * (x[i]) + (n < 0 ? 7 : i);" in folded(text)


def test_the_preprocessor_may_choose() -> None:
    text = "{\n#if A\nconst mcc_index n = 4;\n#else\nconst mcc_index n = 5;\n#endif\nif (n > 4) f(n);\n}"
    assert "if (n > 4) f(n);" in folded(text)


def test_generated_code_has_no_condition_that_always_holds() -> None:
    """No position is in front of the first one."""
    package = compiled(conv(), Options(target="generic"))
    code = "".join(text.decode() for name, text in package.files.items() if name.endswith("_kernels.c"))
    assert ">= 0 &&" not in code


ROWS = """{
const mcc_index some = 1, rows = end - begin;
for (mcc_index i = 0; i < rows; i += some) {
if (i > 0) again();
for (mcc_index k = i > 0; k <= some; ++k) {
const mcc_index row = begin + i + k - 1;
const mcc_bool upper = row >= 0 && row < 9, lower = row >= -1 && row < 8;
f(upper ? x : blank, lower ? y : blank);
}
}
}"""


@pytest.mark.parametrize(
    ("pieces", "upper", "lower"),
    [
        ([(0, 1), (1, 2)], "row >= 0", "1"),
        ([(1, 2), (2, 3)], "1", "1"),
        ([(8, 9)], "1", "row < 8"),
        ([(9, 10)], "row < 9", "0"),
        ([(0, 1), (9, 10)], "row >= 0 && row < 9", "row < 8"),
    ],
)
def test_rows_for_which_a_function_is_called(pieces: list[tuple[int, int]], upper: str, lower: str) -> None:
    top = blocks(ROWS)
    without_known_conditions(top, called_for(frozenset(pieces)))
    text = shown(top)
    assert f"upper = {upper}, lower = {lower};" in text and "again" not in text
    chosen = {"0": "blank", "1": "y"}.get(lower, "lower ? y : blank")
    assert f"f({'x' if upper == '1' else 'upper ? x : blank'}, {chosen});" in text


def test_nothing_is_known_of_rows_that_several_pieces_end_differently() -> None:
    top = blocks(ROWS)
    without_known_conditions(top, called_for(frozenset([(0, 1), (0, 2)])))
    assert "again" in shown(top) and "upper = row >= 0, lower = 1;" in shown(top)


def test_a_field_is_no_index() -> None:
    text = "{\nconst mcc_index rows = 4;\nband.rows = 7;\nif (rows > 4) f(rows);\n}"
    assert "f(" not in folded(text)


@pytest.mark.parametrize("target", ["generic", "cortex-m4"])
def test_rows_that_a_pool_never_asks_for_are_no_condition(target: str) -> None:
    """Of 14 rows of a convolution a pool reads 12: the window never reaches the lower edge."""
    made = [node("Conv", "x w", "h", pads=[1, 1, 1, 1]), node("MaxPool", "h", "y", kernel_shape=[3, 3], strides=[3, 3])]
    weights = {"w": floats(0, 4, 1, 3, 3)}
    network = model("edge", made, [("x", (1, 1, 14, 14))], [("y", (1, 4, 4, 4))], weights)
    package = compiled(network, Options(target=target))
    text = package.files["edge_kernels.c"].decode()
    assert "mcc_index begin" in text and "end0 = 3;" in text
