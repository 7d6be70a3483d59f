"""Generated C has no faults that a reviewer would mark (tests/emit/c_faults.py)."""

from __future__ import annotations

import pytest

from mccompile.driver import Options
from tests import small_models
from tests.emit.c_faults import (
    COPY,
    FAULTS,
    MOST_COPIED,
    MOST_COPIES,
    NOT_LISTED,
    NOT_PASSED,
    RUN,
    TOO_DEEP,
    TOO_LONG,
    copied,
    faults,
    listed,
    of_model,
)
from tests.small_models import compiled, floats, model, node
from tests.small_quantized import convolutions
from tests.thorough import some

TARGETS = ("generic", "cortex-m4", "cortex-m55", "x86-64-v3")
NODES = [
    node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
    node("Elu", "c", "r"),
    node("Conv", "r v", "d", pads=[1, 1, 1, 1], group=8),
    node("GlobalAveragePool", "d", "p"),
    node("Flatten", "p", "f"),
    node("Gemm", "f u", "g"),
    node("Softmax", "g", "y"),
]
MODELS = {
    "branches": small_models.branches(),
    "layers": model(
        "layers",
        NODES,
        [("x", (1, 3, 12, 9))],
        [("y", (1, 5))],
        {"w": floats(0, 8, 3, 3, 3), "v": floats(1, 8, 1, 3, 3), "u": floats(2, 8, 5)},
    ),
    "quantized": convolutions(9, [(8, 3, 1), (8, 1, 1)]),
    "rows": convolutions(24, [(8, 3, 1)] * 6),
    "rows_of_one": convolutions(24, [(8, 3, 1), (0, 3, 1), (16, 1, 1), (0, 3, 1), (16, 1, 1)]),
}


@some(1, "target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_generated_c_has_no_faults(name: str, target: str) -> None:
    made = MODELS[name]
    files = compiled(made, Options(target=target)).files
    texts = {file: files[file].decode() for file in sorted(of_model(made.graph.name))}
    found = {file: [*faults(text), *listed(text)] for file, text in texts.items()}
    assert not {file: several for file, several in found.items() if several}
    assert target != "generic" or copied(texts.values()) <= MOST_COPIED


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("const mcc_index k = 0;", "an index that is 0"),
        ("y = x + 0;", "a term of 0"),
        ("y = 0 * 16 + x;", "a product with 0"),
        ("y = x % 1;", "a factor of 1"),
        ("for (mcc_index n = 0; n < 1; ++n) {", "a loop that runs once"),
        ("if (a) {\n}", "an empty block"),
        ("y = 1.0f * x;", "a factor of 1.0"),
        ("    const mcc_index x_row[1] = {p * 8};", "an array of one"),
        ("    float acc[1] = {0};", "an array of one"),
        ("y[3 * 8 + k] = x;", "a product of literals"),
        ("void f(mcc_index k)\n{\n    const mcc_index at = k;\n    g(at);\n}", COPY),
        ("    y[p * 8\n        + lane] = x;", "a fold within an index"),
        ("f();\n\n\ng();", "two blank lines"),
        (f"y = {'x' * 120};", TOO_LONG),
        ("if (a) {\n" * 8 + "f();" + "\n}" * 8, TOO_DEEP),
    ],
)
def test_faults_are_found(line: str, fault: str) -> None:
    assert {found for found, _ in faults(f"{line}\n")} == {fault}
    assert not list(faults(f"/* {next(iter(FAULTS))} + 0 * 1 */ y = x + 0.5f * 10 + 0x1;\n"))


def test_operands_that_a_comment_lists_are_parameters() -> None:
    head, code = (
        "/* map/f32_x__c\n * y f32[4], x f32[4]\n * for a node */\n",
        "void f(float *MCC_RESTRICT y, const float *x)\n{\n}\n",
    )
    assert not list(listed(head + code))
    assert list(listed(head.replace("x f32[4]", "t f32[4]") + code)) == [(NOT_PASSED, "t"), (NOT_LISTED, "x")]
    assert list(listed(head.replace("x f32", "x i8") + code)) == [(NOT_PASSED, "x")]


def test_copies_are_runs_of_lines_that_occur_often() -> None:
    run = "".join(f"    y[{place}] = x;\n" for place in range(RUN))
    texts = ["void f(void)\n{\n    g();\n" + run * count + "}\n" for count in (MOST_COPIES, MOST_COPIES + 1)]
    assert [copied([text]) for text in texts] == [
        0,
        (len(texts[1].splitlines()) - 4) / (len(texts[1].splitlines()) - 3),
    ]
