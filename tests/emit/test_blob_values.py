"""Init refuses a blob of right checksum whose numbers would have a run read or write outside, divide by 0 or never end.

One number of the blob is written over at a time: (program of the fuzzer, kind, operand, element, number).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import CheckFailed
from mccompile.driver import compile_graph
from mccompile.frontend.load import load_proto
from mccompile.plan.ir import Plan
from mccompile.toolchain.build import find_compiler, load
from mccompile.toolchain.host_library import HOST_CDEF, build_shared
from mccompile.toolchain.model_report import Report, read_report
from mccompile.toolchain.run import Model
from tests.fuzz.blobs.models import all_programs

LARGEST = 2**32 - 1
WRONG = [
    ("trees", "tree_ensemble", "roots", 0, (-1, 8)),
    ("trees", "tree_ensemble", "feature", 0, (-2, 3)),
    ("trees", "tree_ensemble", "target", 0, (-1, 3)),
    ("trees", "tree_ensemble", "yes", 0, (-1, 0, 8)),  # 0: the walk would not end
    ("trees", "tree_ensemble", "no", 0, (-1, 0, 8)),
    ("trees", "tree_ensemble", "feature", -1, (0,)),  # no node comes after the last one: it is a leaf
    ("trees", "tree_ensemble", "yes", -1, (-1, 6)),
    ("trees", "tree_ensemble", "no", -1, (-1, 6)),
    ("resized", "gather", "e0", 0, (-1, 4)),
    ("resized", "gather", "e1", -1, (-1, 5)),
    ("resized", "resize", "e0", 0, (-1, 4)),
    ("resized", "resize", "e2", -1, (-1, 5)),
    ("tables", "gather", "x", 0, (-1, 5)),
    ("tables", "gather", "x", -1, (-1, 5)),
    ("texts", "string_table", "ends", 0, (LARGEST,)),
    ("texts", "string_table", "ends", -1, (0, LARGEST)),
    ("texts", "match_strings", "classes", 0, (255,)),
    ("texts", "match_strings", "next", -1, (65535,)),
    ("texts", "ngram", "places", 0, (-1, 4)),
    ("texts", "change_case", "cases", 0, (-1, 0x110000)),
    ("texts", "change_case", "cases", 2, (0,)),
    ("texts", "change_case", "cases", 3, (-0x110000,)),
    ("filters", "band_gemm", "first", 0, (-1, 25)),
    ("shares", "byte_softmax", "table", 0, (0,)),
    ("shares", "byte_softmax", "factor", 0, (-1, 1 << 62)),
    ("shares", "byte_softmax", "shift", 0, (0, 31, 61)),
    ("shares", "byte_norm", "epsilon", 0, (-1, 0, 1 << 60)),
]


@dataclass(frozen=True)
class Built:
    plan: Plan
    report: Report
    library: Any
    blob: bytes


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def build(name: str) -> Built:
        make, options = all_programs()[name]
        graph = load_proto(make(), dims=options.dims, bounds=options.bounds)
        package = compile_graph(graph, options, name)
        out: Path = tmp_path_factory.mktemp(name) / "out"
        package.write(out)
        report = read_report(out)
        shared = build_shared(out, report, out / "model.so", find_compiler(), ("-std=c99", "-O0"))
        return Built(package.plan, report, load(shared, HOST_CDEF), package.files[f"{name}.mcb"])

    return build


def with_number(built: Built, kind: str, role: str, element: int, number: int) -> bytes:
    """The blob with one element of an operand of the first such step written over, and its checksums right."""
    steps = [step for step in built.plan.steps() if step.op == kind]
    operand = next(a for step in steps for a in step.arguments if a.role == role and a.address.base == "blob")
    made, begin = bytearray(built.blob), int.from_bytes(built.blob[32:40], "little")
    size = operand.type.dtype.bits // 8
    place = begin + (operand.low if element >= 0 else operand.high) + element * size
    made[place : place + size] = np.array(number % (1 << 8 * size), np.uint64).tobytes()[:size]
    made[56:60] = zlib.crc32(made[begin:]).to_bytes(4, "little")
    made[60:64] = zlib.crc32(made[64:begin], zlib.crc32(made[:60])).to_bytes(4, "little")
    return bytes(made)


@pytest.mark.parametrize(("name", "kind", "role", "element", "numbers"), WRONG)
def test_a_number_that_steers_a_run_outside_is_refused(
    name: str, kind: str, role: str, element: int, numbers: tuple[int, ...], built: Any
) -> None:
    model = built(name)
    for number in numbers:
        with pytest.raises(CheckFailed, match="a number in the blob would have a run read or write outside"):
            Model(model.library, model.report, with_number(model, kind, role, element, number))


@pytest.mark.parametrize("name", sorted({name for name, *_ in WRONG}))
def test_the_blob_that_was_compiled_is_taken(name: str, built: Any) -> None:
    model = built(name)
    Model(model.library, model.report, model.blob)
