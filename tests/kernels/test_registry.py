"""Kernels of the user's own: found by folder, chosen by cost, and given all that they ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.dtypes import f16, f32
from mccompile.base.errors import MccError
from mccompile.driver import Options
from mccompile.expr.ir import operand
from mccompile.frontend.load import load_proto
from mccompile.kernels.api import Cost
from mccompile.kernels.registry import KernelFiles, Registry
from mccompile.kinds.gemm import Gemm
from mccompile.kinds.map import Map
from mccompile.passes.lower import lower
from mccompile.program.ir import Buffer, Call
from mccompile.targets import api as targets
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import compiled, random_inputs, reference, written

KERNEL = '''
"""A matrix product that wants everything the contract offers: dense operands, packed weights, workspace, alignment."""
import numpy as np

from mccompile.kernels.api import Cost, Kernel, Needs, No
from mccompile.kinds.gemm import Gemm


class Column(Kernel):
    kind = Gemm

    def cases(self):
        return []

    def match(self, call, target):
        if call.ins[0].buffer.dtype.name != "f32" or len(call.ins[0].shape) != 2 or call.kind.epilogue:
            return No("only plain products of two matrices")
        columns = call.ins[1].shape[0]
        return Needs(
            dense=frozenset({0}), dense_outs=frozenset({0}), align={0: 32, 1: 32}, align_outs={0: 32}, slack={0: 16},
            constant=frozenset({1}), scratch=4 * columns, scratch_align=64,
        )

    def cost(self, call, target):
        return Cost(0.0)

    def pack(self, call, constants):
        return {1: np.ascontiguousarray(constants[1].array.T)}

    def packing(self, call):
        return {1: "transposed"}

    def label(self, call):
        return "product"

    def context(self, call):
        (m, k), n = call.ins[0].shape, call.outs[0].shape[1]
        return {"m": m, "k": k, "n": n}
'''
TEMPLATE = """${signature}
{
    float *const column = (float *)(void *)scratch;
    for (mcc_index j = 0; j < ${n}; ++j) {
        for (mcc_index i = 0; i < ${k}; ++i) column[i] = b[j * ${k} + i];
        for (mcc_index i = 0; i < ${m}; ++i) {
            float sum = 0.0f;
            for (mcc_index c = 0; c < ${k}; ++c) sum += a[i * ${k} + c] * column[c];
            y[i * ${n} + j] = sum;
        }
    }
}
"""

STRANGE = """typedef struct { short low; long high; } range_of_${function};
/* (n) { is not a block, nor is */ enum { FEW_${function} = (int) -3 };
${signature}
{
    static const char *const where = "http://a.b/(c) { /* d */ }";
    const char open = '{', quote = '\"', slash = '/';
    const range_of_${function} all = { (short) -3, (long) - 3 };
    const long k = (long) -3;
    const int64_t two = INT64_C(2) + (int64_t)(k) * (int64_t) (all.high + 3);
    const unsigned short mask = (unsigned short)(0xFFu << 8) >> 8;
    const int right = where[5] == slash && where[15] == open && where[4] != quote && mask == 255 && two == INT64_C(2)
        && all.low == FEW_${function};
    (void)scratch;
    for (mcc_index j = 0; right && j < ${n}; ++j) {
        for (mcc_index i = 0; i < ${m}; ++i) {
            float sum = 0.0f; // a sum
            { int c; for (c = 0; c < ${k}; ++c) sum += a[i * ${k} + c] * b[j * ${k} + c]; }
            y[i * ${n} + j] = right ? sum : (float)(-1);
        }
    }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pair = tmp_path / "kernels" / "gemm"
    pair.mkdir(parents=True)
    (pair / "f32_dense_column__c.py").write_text(KERNEL)
    (pair / "f32_dense_column__c.c.j2").write_text(TEMPLATE)
    return tmp_path / "kernels"


def test_a_kernel_of_ones_own_gets_what_it_needs(folder: Path, tmp_path: Path) -> None:
    made = small_models.mlp()
    options = Options(kernels=(folder,), optimize=False)  # without fusing: products without epilogues
    plan = compiled(made, options).plan
    steps = [step for step in plan.steps() if step.function.name.startswith("mlp_product")]
    assert len(steps) == 2
    aligned = {"y": 32, "a": 32, "b": 32, "scratch": 64}
    for step in steps:
        for argument in step.arguments:
            assert isinstance(argument.address.offset, int)
            assert argument.address.offset % aligned[argument.role] == 0
    assert plan.arena_align >= 64
    assert [entry.packing for entry in plan.entries].count("transposed") == 2
    inputs = random_inputs(made)
    results = Model.build(written(made, tmp_path, options)).run(inputs)
    np.testing.assert_allclose(results["out.put"], reference(made, inputs)["out.put"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("prefer", ["time", "flash"])
def test_what_c_a_template_has_is_its_own_affair(prefer: str, folder: Path, tmp_path: Path) -> None:
    (folder / "gemm" / "f32_dense_column__c.c.j2").write_text(STRANGE)
    made, options = small_models.mlp(), Options(kernels=(folder,), optimize=False, prefer=prefer)
    inputs = random_inputs(made)
    results = Model.build(written(made, tmp_path, options)).run(inputs)
    np.testing.assert_allclose(results["out.put"], reference(made, inputs)["out.put"], rtol=1e-4, atol=1e-5)


def test_the_packing_is_part_of_the_identity(folder: Path) -> None:
    options = Options(kernels=(folder,), optimize=False)
    before = compiled(small_models.mlp(), options).files["mlp.mcb"]
    kernel = folder / "gemm" / "f32_dense_column__c.py"
    kernel.write_text(kernel.read_text().replace('"transposed"', '"transposed, again"'))
    moved = folder.rename(folder.with_name("moved"))
    after = compiled(small_models.mlp(), Options(kernels=(moved,), optimize=False)).files["mlp.mcb"]
    assert before[16:32] != after[16:32]  # the identity; see runtime_c/SPEC.md
    assert before[-64:] == after[-64:]


@pytest.mark.parametrize(
    ("file", "contents", "complaint"),
    [
        ("f32_dense_column__c.c.j2", None, "is missing beside it"),
        ("f32_dense_column__c.py", "", "defines 0 kernels"),
        ("f32_dense_column__c.py", "def (", "cannot import"),
        ("f32_dense_column__c.py", KERNEL.replace("kind = Gemm", "kind = Gemm\n    isa = 'avx2'"), "does not fit"),
    ],
)
def test_a_broken_kernel_is_named(folder: Path, file: str, contents: str | None, complaint: str) -> None:
    path = folder / "gemm" / file
    path.unlink() if contents is None else path.write_text(contents)
    with pytest.raises(MccError, match=complaint) as caught:
        compiled(small_models.mlp(), Options(kernels=(folder,)))
    assert str(folder) in str(caught.value)


COSTED = """
from mccompile.kernels.api import Cost, Kernel, Needs
from mccompile.kinds.map import Map


class Costed(Kernel):
    kind = Map

    def match(self, call, target):
        return Needs()

    def cost(self, call, target):
        return {cost}
"""


def _best(folder: Path, prefer: str, **costs: Cost) -> str:
    """Which of the kernels with these costs is chosen."""
    (folder / "map").mkdir()
    for name, cost in costs.items():
        (folder / "map" / f"{name}__c.py").write_text(COSTED.format(cost=cost))
        (folder / "map" / f"{name}__c.c.j2").write_text("")
    x, y = Buffer("x", f32, (4,)), Buffer("y", f32, (4,))
    call = Call(Map(operand(0, f32)), (x.whole(),), (y.whole(),))
    registry = Registry(KernelFiles({f"map/{name}__c": folder / "map" / f"{name}__c.py" for name in costs}))
    return registry.choose(call, replace(targets.load("generic"), prefer=prefer)).candidates[0].kernel.stem


def test_of_equal_kernels_the_first_by_name_is_chosen(tmp_path: Path) -> None:
    assert _best(tmp_path, "time", b=Cost(1e-6), c=Cost(1e-6), a=Cost(1e-6)) == "a__c"


def test_a_quicker_kernel_is_chosen_whatever_its_name(tmp_path: Path) -> None:
    assert _best(tmp_path, "time", a=Cost(2e-6), b=Cost(1e-6), c=Cost(3e-6)) == "b__c"


@pytest.mark.parametrize("code", [0, 50, 100])  # per cent of the bytes; the others are in the blob
@pytest.mark.parametrize(("prefer", "cycles"), [("time", 0.003), ("ram", 0.3), ("flash", 300)])
def test_a_byte_of_flash_counts_as_so_much_time(tmp_path: Path, prefer: str, cycles: float, code: int) -> None:
    small, quick = Cost(1e6), Cost(1e6 - 1000 * cycles)
    larger, smaller = (replace(quick, code=each * code, blob=each * (100 - code)) for each in (11, 9))
    assert _best(tmp_path, prefer, a=larger, b=small) == "b__c"
    (tmp_path / "more").mkdir()
    assert _best(tmp_path / "more", prefer, b=small, c=smaller) == "c__c"


def test_the_reasons_of_all_that_refuse_are_kept(folder: Path) -> None:
    a, b, y = (Buffer(name, f16, shape).whole() for name, shape in (("a", (2, 3)), ("b", (3, 4)), ("y", (2, 4))))
    choice = Registry.load((folder,)).choose(Call(Gemm(f32), (a, b), (y,)), targets.load("generic"))
    assert ("f32_dense_column__c", "only plain products of two matrices") in choice.refusals
    assert not {stem for stem, _ in choice.refusals} & {found.kernel.stem for found in choice.candidates}


def test_a_kernel_that_needs_a_size_is_not_chosen_where_that_is_free(folder: Path) -> None:
    kernel = folder / "gemm" / "f32_dense_column__c.py"
    text = KERNEL.replace("class Column", "from mccompile.base.dims import static\n\n\nclass Column")
    text = text.replace("columns = call.ins[1].shape[0]", "return Needs(symbols=True)")
    kernel.write_text(text.replace('{"m": m,', '{"m": static(m),'))
    product = [small_models.node("MatMul", "x w", "y")]
    weights = {"w": small_models.floats(1, 8, 3)}
    made = small_models.model("product", product, [("x", ("batch", 8))], [("y", ("batch", 3))], weights)
    free = load_proto(made, dims={"batch": (1, 5)})
    registry = Registry.load((folder,))
    (call,) = (call for call in lower(free).calls() if call.kind.name == "gemm")
    choice = registry.choose(call, targets.load("generic"))
    assert ("f32_dense_column__c", "the size n_batch is known only at run time") in choice.refusals
    assert [candidate.kernel.stem for candidate in choice.candidates] == ["any_strided__c"]
