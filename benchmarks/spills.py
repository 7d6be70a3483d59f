"""Do compilers keep the sums of hot loops in registers? Innermost loops with many multiply-adds of vectors that load or
store vectors on the stack, of kernels of all kinds, as gcc and clang build them for x86-64 with AVX2 and AVX-512.

python -m benchmarks.spills             list them; fail where there are more than benchmarks/spills.json has
python -m benchmarks.spills --update    write that file anew
... --only "conv_3d x86-64-v4"          builds with this in their names

Registers differ from version to version of a compiler, so only the versions that are recorded are compared with.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from benchmarks.own_models import missing, run
from mccompile.driver import Options, compile
from mccompile.emit.summary import table
from mccompile.measure.workers import LostJob, results
from mccompile.targets import api
from tests.executors import add_arguments, opened

FIGURES = Path(__file__).with_name("spills.json")
TARGETS, COMPILERS = ("x86-64-v3", "x86-64-v4"), ("gcc", "clang")
HOT = 6  # multiply-adds of vectors make a loop hot
LONG = 400  # instructions: a longer loop is none that runs often
PRODUCTS = ("vfmadd", "vfnmadd", "vpdp", "vpmadd", "vpmull", "vmulp")
HEAD = ("kernel", "build", "loop", "products", "of the stack")


@dataclass(frozen=True)
class Case:
    """A network of one operator: its shape of input and weights, as ONNX has them."""

    name: str
    op: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    attributes: tuple[tuple[str, tuple[int, ...] | int], ...] = ()
    int8: bool = False


def conv(name: str, x: Sequence[int], w: Sequence[int], stride: int = 1, group: int = 1, int8: bool = False) -> Case:
    """Padded so that it keeps the size, but for its stride."""
    pads = tuple(size // 2 for size in w[2:]) * 2
    attributes = (("strides", (stride,) * len(w[2:])), ("pads", pads), ("group", group))
    return Case(name, "Conv", tuple(x), tuple(w), attributes, int8)


CASES = (
    conv("conv", (1, 32, 28, 28), (64, 32, 3, 3)),
    conv("conv_halving", (1, 32, 28, 28), (64, 32, 3, 3), stride=2),
    conv("conv_few_channels", (1, 3, 64, 64), (32, 3, 5, 5), stride=2),
    conv("conv_odd", (1, 20, 17, 17), (44, 20, 3, 3)),
    conv("conv_1x1", (1, 64, 28, 28), (96, 64, 1, 1)),
    conv("conv_1d", (1, 32, 128), (48, 32, 5)),
    conv("conv_3d", (1, 16, 8, 16, 16), (32, 16, 3, 3, 3)),
    conv("conv_grouped", (1, 32, 28, 28), (64, 8, 3, 3), group=4),
    conv("depthwise", (1, 64, 28, 28), (64, 1, 3, 3), group=64),
    conv("depthwise_halving", (1, 64, 28, 28), (64, 1, 5, 5), stride=2, group=64),
    Case("transposed", "ConvTranspose", (1, 32, 14, 14), (32, 24, 4, 4), (("strides", (2, 2)), ("pads", (1, 1, 1, 1)))),
    Case("gemm", "MatMul", (64, 96), (96, 128)),
    Case("gemm_odd", "MatMul", (13, 100), (100, 37)),
    Case("gemm_one_row", "MatMul", (1, 256), (256, 200)),
    Case("attention", "Attention", (1, 4, 64, 32), (1, 4, 64, 32)),
    Case("gru", "GRU", (12, 1, 40), (1, 96, 40)),
    conv("int8_conv", (1, 32, 28, 28), (64, 32, 3, 3), int8=True),
    conv("int8_conv_1x1", (1, 64, 28, 28), (96, 64, 1, 1), int8=True),
    conv("int8_depthwise", (1, 64, 28, 28), (64, 1, 3, 3), group=64, int8=True),
    Case("int8_gemm", "MatMul", (64, 96), (96, 128), (), True),
)


def model(case: Case) -> ModelProto:
    chance = np.random.default_rng(8)
    weights: list[TensorProto] = []

    def constant(name: str, array: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(array, name))
        return name

    nodes, inputs, x, w = [], [helper.make_tensor_value_info("x", TensorProto.FLOAT, case.x)], "x", "w"
    attributes: dict[str, Any] = dict(case.attributes)
    if case.op == "Attention":
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, case.w) for name in ("k", "v")]
        nodes.append(helper.make_node("Attention", ["x", "k", "v"], ["y"]))
    elif case.op == "GRU":
        constant("w", chance.standard_normal(case.w).astype(np.float32) / 8)
        constant("r", chance.standard_normal((1, case.w[1], case.w[1] // 3)).astype(np.float32) / 8)
        nodes.append(helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=case.w[1] // 3))
    elif case.int8:
        scale, zero = constant("scale", np.array(0.05, np.float32)), constant("zero", np.array(0, np.int8))
        constant("w8", chance.integers(-127, 128, case.w).astype(np.int8))
        pairs = [("QuantizeLinear", "x", "x8"), ("DequantizeLinear", "x8", "xf"), ("DequantizeLinear", "w8", "wf")]
        nodes += [helper.make_node(op, [a, scale, zero], [b]) for op, a, b in pairs]
        nodes.append(helper.make_node(case.op, ["xf", "wf"], ["yf"], **attributes))
        nodes += [helper.make_node("QuantizeLinear", ["yf", scale, zero], ["y"])]
    else:
        constant("w", chance.standard_normal(case.w).astype(np.float32) / 8)
        nodes.append(helper.make_node(case.op, [x, w], ["made"], **attributes))
        nodes.append(helper.make_node("Relu", ["made"], ["y"]))
    kind = TensorProto.INT8 if case.int8 else TensorProto.FLOAT
    outputs = [helper.make_tensor_value_info("y", kind, None)]
    graph = helper.make_graph(nodes, case.name, inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


@dataclass(frozen=True)
class Job:
    """A case, compiled for a target, and built by all compilers."""

    case: Case
    target: str
    compilers: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.case.name} {self.target}"


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str
    operands: str


@dataclass(frozen=True)
class Loop:
    """An innermost one that is hot."""

    function: str
    length: int
    products: int
    stack: int  # instructions that load or store a vector on the stack


def loops_of(job: Job) -> dict[str, list[Loop]]:
    """By compiler."""
    target = api.load(job.target)
    with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
        path, folder = Path(scratch, f"{job.case.name}.onnx"), Path(scratch, "out")
        onnx.save(model(job.case), path)
        compile(path, Options(target=job.target)).write(folder)
        found = {}
        for compiler in job.compilers:
            built = Path(scratch, f"{compiler}.o")
            source = folder / f"{job.case.name}_kernels.c"
            run([compiler, *target.cflags, f"-I{folder / 'runtime'}", "-c", str(source), "-o", str(built)])
            found[compiler] = hot(run(["objdump", "-d", "--no-show-raw-insn", str(built)]))
    return found


def hot(listing: str) -> list[Loop]:
    return [loop for name, body in functions(listing) for loop in loops(name, body)]


def functions(listing: str) -> Iterator[tuple[str, list[Instruction]]]:
    name, body = "", list[Instruction]()
    for line in listing.splitlines():
        if line.endswith(">:"):
            yield name, body
            name, body = line.partition("<")[2][:-2], []
        address, colon, text = line.partition(":\t")
        if colon and text.strip():
            words = text.split(None, 1)
            body.append(Instruction(int(address, 16), words[0], words[1] if len(words) > 1 else ""))
    yield name, body


def loops(function: str, body: Sequence[Instruction]) -> Iterator[Loop]:
    """Of one function: from a jump backwards to where it goes, without another such loop inside."""
    places = {each.address: number for number, each in enumerate(body)}
    ends = []
    for number, each in enumerate(body):
        target = _jump(each)
        if target is not None and places.get(target, number + 1) <= number:
            ends.append((places[target], number))
    frame = ("(%rsp", "(%rbp") if any(_is_frame(each) for each in body) else ("(%rsp",)
    for begin, end in ends:
        if end - begin >= LONG or any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in ends):
            continue
        inside = body[begin : end + 1]
        products = sum(each.name.startswith(PRODUCTS) for each in inside)
        if products >= HOT:
            stack = sum("mm" in each.operands and any(base in each.operands for base in frame) for each in inside)
            yield Loop(function, len(inside), products, stack)


def _jump(each: Instruction) -> int | None:
    word = each.operands.split(None, 1)[0] if each.name.startswith("j") and each.operands else ""
    return int(word, 16) if word and not word.startswith("*") else None


def _is_frame(each: Instruction) -> bool:
    """Does %rbp show the stack from here on?"""
    return each.name == "mov" and each.operands == "%rsp,%rbp"


def version(compiler: str) -> str:
    return f"{compiler} {run([compiler, '-dumpversion']).strip().partition('.')[0]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="")
    add_arguments(parser)
    given = parser.parse_args()
    compilers = tuple(compiler for compiler in COMPILERS if not missing(compiler))
    if missing("objdump") or not compilers:
        print("skipped: there is no objdump, gcc or clang")
        return 0
    versions = {compiler: version(compiler) for compiler in compilers}
    jobs = [Job(case, target, compilers) for case in CASES for target in TARGETS]
    jobs = [job for job in jobs if given.only in job.name]
    recorded: dict[str, dict[str, int]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    found: dict[str, dict[str, int]] = {name: {} for name in versions.values()}
    lines = []
    count = 0
    for job, by_compiler in zip(jobs, results(jobs, loops_of, opened(given), _lost), strict=True):
        for compiler, hot_loops in by_compiler.items():
            count += len(hot_loops)
            found[versions[compiler]][job.name] = sum(loop.stack for loop in hot_loops)
            lines += [
                [
                    loop.function,
                    f"{job.target} {versions[compiler]}",
                    *map(str, (loop.length, loop.products, loop.stack)),
                ]
                for loop in hot_loops
                if loop.stack
            ]
    print("\n".join([*table(HEAD, lines, frozenset({0, 1})), f"{count} hot loops, {len(lines)} of them use the stack"]))
    if given.update:
        kept = {name: recorded.get(name, {}) | rows for name, rows in found.items()}
        FIGURES.write_text(json.dumps({**recorded, **kept}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    more = [
        f"{name}, {compiler}: {stack} vectors of hot loops on the stack, recorded are {recorded[compiler].get(name, 0)}"
        for compiler, rows in found.items()
        for name, stack in rows.items()
        if compiler in recorded and stack > recorded[compiler].get(name, 0)
    ]
    print(
        "\n".join([*more, *(f"{name} is not recorded" for name in found if name not in recorded)]) or "nothing is new"
    )
    return int(any(compiler in recorded for compiler in found) and bool(more))


def _lost(lost: LostJob[Job]) -> dict[str, list[Loop]]:
    sys.exit(str(lost))


if __name__ == "__main__":
    sys.exit(main())
