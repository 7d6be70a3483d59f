"""Buffers have names in C that say which tensor they hold: the end of its own, short, and each once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mccompile.base.dims import symbol
from mccompile.base.marked import plain
from mccompile.driver import Options
from mccompile.emit.addresses import pointer
from mccompile.plan.ir import Address, Place
from mccompile.plan.places import addresses, place_names
from tests import small_models
from tests.small_models import compiled, written

NAMES = {
    "stem/Relu/last": "NET_AT_STEM_RELU",
    "stem/Relu": "NET_AT_STEM_RELU_2",
    "StatefulPartitionedCall/model/conv2d_1/BiasAdd;model": "NET_AT_MODEL_CONV2D_1_BIASADD",
    "functional_1/activation_7/Relu;functional_1/conv/ReadVariableOp/resource1": "NET_AT_ACTIVATION_7_RELU",
    "/b/b.0/n1/LayerNormalization_output_0": "NET_AT_0_N1_LAYERNORMALIZATION",
    "a" * 40: "NET_AT_" + "A" * 24,
    "x:0": "NET_AT_X",
    "::": "NET_AT_X_2",
    "int": "NET_AT_INT",
}


def test_names_are_short_and_unique() -> None:
    assert dict(zip(NAMES, place_names("net", NAMES), strict=True)) == NAMES


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        (64, "A(float, NET_AT_X)"),
        (80, "A(float, NET_AT_X + 16)"),
        (60, "A(float, NET_AT_X - 4)"),
        (64 + 8 * symbol("i", 0, 9), "A(float, NET_AT_X + i * 8)"),
    ],
)
def test_an_offset_counts_from_where_its_buffer_begins(offset: int, text: str) -> None:
    address = Address("arena", offset, Place("NET_AT_X", 64, "x", 400))
    assert plain(pointer(address, "float", const=False)) == text


@pytest.mark.parametrize("name", ["branches", "conv"])
def test_each_name_is_the_number_that_it_stands_for(name: str, tmp_path: Path) -> None:
    """As the compiler sees it, and with no offset left that has none."""
    made = small_models.ALL[name]()
    plan = compiled(made).plan
    wanted = {a.place.symbol: a.place.begin for a in addresses(plan) if a.place is not None}
    folder = written(made, tmp_path, Options())
    text = (folder / f"{name}.c").read_text()
    checks = "".join(f"typedef char check_{n}[{s} == {at} ? 1 : -1];\n" for n, (s, at) in enumerate(wanted.items()))
    (folder / "checked.c").write_text(f'#include "{name}.c"\n{checks}')
    flags = ["-std=c99", f"-I{folder}", f"-I{folder}/runtime"]
    subprocess.run(["gcc", *flags, "-c", str(folder / "checked.c"), "-o", f"{folder}/checked.o"], check=True)
    assert wanted and all(f"{symbol}" in text for symbol in wanted)
    assert all(a.place is not None for a in addresses(plan) if a.base == "arena")
