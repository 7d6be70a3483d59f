"""Where flash is preferred, one function serves many sizes; elsewhere each has its own."""

from __future__ import annotations

import re

import pytest
from onnx import ModelProto

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from tests.passes.qdq_graphs import chain_of_convolutions


def code(model: ModelProto, prefer: str) -> tuple[str, str]:
    options = Options(target="cortex-m4", prefer=prefer, name="n", io_layout="nhwc")
    files = compile_graph(load_proto(model), options, "n").files
    return files["n.c"].decode(), files["n_kernels.c"].decode()


@pytest.mark.parametrize(("prefer", "functions"), [("flash", 1), ("time", 3)])
def test_functions_that_differ_in_sizes_only_are_one(prefer: str, functions: int) -> None:
    steps, kernels = code(chain_of_convolutions(4, 8, 16, 12), prefer)
    assert len(re.findall(r"^void n_conv\w*\(", kernels, re.MULTILINE)) == functions
    assert len(re.findall(r"^static const int16_t sizes\d+\[\]", steps, re.MULTILINE)) == (3 if functions == 1 else 0)


def test_a_function_that_is_used_with_one_size_has_constants() -> None:
    steps, kernels = code(chain_of_convolutions(4, 8), "flash")
    assert "sizes0" not in steps
    assert "const mcc_index outs = 8;" in kernels


def test_steps_of_one_size_share_their_table() -> None:
    steps, _ = code(chain_of_convolutions(8, 8, 8, 4), "flash")
    tables = [line for line in steps.splitlines() if line.startswith("static const int16_t sizes")]
    assert len(tables) == 2
    assert len(re.findall(r", sizes0\)", steps)) == 2
