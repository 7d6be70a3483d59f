"""No function needs more than 512 bytes of stack, whatever the shapes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from onnx import ModelProto

from mccompile.driver import Options
from tests import small_models
from tests.small_models import compiled, floats, model, node
from tests.stack import LIMIT, stack_bytes
from tests.thorough import some


def tall_product() -> ModelProto:
    """Eight rows by two columns at a time: what gcc would make vectors of, along the sum."""
    weights = {"w": floats(0, 128, 2)}
    return model("tall", [node("MatMul", "x w", "y")], [("x", [64, 128])], [("y", [64, 2])], weights)


@some(1, "target", ["generic", "cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", [*small_models.ALL, "tall"])
def test_no_function_needs_much_stack(name: str, target: str, tmp_path: Path) -> None:
    options = Options(target=target)
    if not shutil.which(options.resolved_target().compiler):
        pytest.skip(f"{options.resolved_target().compiler} is not installed")
    made = tall_product() if name == "tall" else small_models.ALL[name]()
    uses = stack_bytes(compiled(made, options), options.resolved_target(), tmp_path / "out")
    assert uses
    assert not {function: size for function, size in uses.items() if size > LIMIT}
