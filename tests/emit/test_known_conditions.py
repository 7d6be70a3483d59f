"""Conditions that indexes decide are not printed, and all others are."""

from __future__ import annotations

import pytest

from mccompile.driver import Options
from mccompile.emit.known_conditions import without_known_conditions
from mccompile.emit.layout import blocks, shown
from tests.small_models import compiled, conv


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
