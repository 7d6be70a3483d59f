"""A module is code and weights in one file that runs from any address: the same results as the linked form's, and
whatever is damaged or foreign is refused with a status."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile.base.errors import UnsupportedModel, WrongUse
from mccompile.driver import Options, arrange, compile, compile_jobs
from mccompile.emit.runtime import header_text
from mccompile.expr.functions import FUNCTIONS, Called
from mccompile.toolchain import loaded
from mccompile.toolchain.model_report import read_report
from mccompile.toolchain.run import Model
from tests import small_models
from tests.emit import module_cases
from tests.emit.test_generated_c import ALLOWED, COMPILERS, LIBM
from tests.small_models import compiled, model, node, random_inputs, save, written

MODULE = Options(module=True)
BOARD = Path(loaded.__file__).with_name("board")


def softmax() -> ModelProto:
    """It calls libm."""
    nodes = [node("MatMul", "x w", "h"), node("Softmax", "h", "y", axis=1)]
    return model("net", nodes, [("x", (3, 5))], [("y", (3, 7))], {"w": small_models.floats(1, 5, 7)})


def image_of(folder: Path, scratch: Path) -> Path:
    return loaded.built(folder, read_report(folder), "gcc", scratch)


def test_results_are_those_of_the_linked_form(tmp_path: Path) -> None:
    made = softmax()
    inputs = random_inputs(made)
    linked, module = (Model.build(written(made, tmp_path / n, o)) for n, o in (("a", Options()), ("b", MODULE)))
    np.testing.assert_array_equal(module.run(inputs)["y"], linked.run(inputs)["y"])


def test_code_and_blob_are_those_of_the_linked_form() -> None:
    plain, module = compiled(softmax()).files, compiled(softmax(), MODULE).files
    for name in ("net.c", "net.h", "net_kernels.c", "net.mcb", "net_weights.c"):
        assert module[name] == plain[name]
    assert json.loads(module["report.json"])["module"] == "net.mcm"


def test_it_runs_anywhere_and_nothing_damaged_is_opened(tmp_path: Path) -> None:
    folder = written(softmax(), tmp_path, MODULE)
    image = image_of(folder, tmp_path)
    program, includes = tmp_path / "program", [f"-I{BOARD}", f"-I{folder / 'runtime'}"]
    sources = [str(module_cases.SOURCE), str(BOARD / "hosted.c")]
    subprocess.run(["gcc", "-std=gnu99", *includes, *sources, "-o", str(program), "-lm"], check=True)
    inputs = random_inputs(softmax())
    results, ended = module_cases.run([str(program)], read_report(folder), image.read_bytes(), inputs, tmp_path)
    wanted = Model.build(written(softmax(), tmp_path / "linked")).run(inputs)
    for found in results:
        np.testing.assert_array_equal(found["y"], wanted["y"])
    assert ended == module_cases.wanted(image.read_bytes())


def test_the_program_beside_it_opens_it(tmp_path: Path) -> None:
    folder = written(softmax(), tmp_path, MODULE)
    subprocess.run(["make", "-s", "-C", str(folder), "CC=gcc"], check=True, capture_output=True)
    np.ones((3, 5), np.float32).tofile(tmp_path / "x.bin")
    command = [str(folder / "net"), str(folder / "net.mcm"), str(tmp_path / "x.bin")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wanted = Model.build(written(softmax(), tmp_path / "linked")).run({"x": np.ones((3, 5), np.float32)})["y"]
    assert printed.split()[0] == "y:"
    np.testing.assert_allclose([float(word) for word in printed.split()[1:]], wanted.ravel()[:4], rtol=1e-5)


FREE = """<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x, float[2] s) => (float[n,4] y, float[2] t) {
  e = Exp(x) y = Neg(e) t = Add(s, s)
}"""


@pytest.mark.parametrize(
    "options",
    [Options(slices=True), Options(external=("*",)), Options(blob="incbin"), Options(keep_inputs=True, updatable=True)],
    ids=["slices", "io external", "incbin", "kept"],
)
def test_what_else_a_model_has_is_reached(options: Options, tmp_path: Path) -> None:
    """Free sizes and a state, too."""
    made = parser.parse_model(FREE)
    both = replace(options, dims={"n": (1, 5)}, state={"t": "s"} if not options.external else {})
    compile(save(made, tmp_path), replace(both, module=True)).write(tmp_path / "out")
    module = Model.build(tmp_path / "out")
    inputs = {"x": np.arange(12, dtype=np.float32).reshape(3, 4) / 8, "s": np.ones(2, np.float32)}
    given = {name: array for name, array in inputs.items() if name in {t.name for t in module.report.inputs}}
    np.testing.assert_allclose(module.run(given)["y"], -np.exp(inputs["x"]), rtol=1e-6)


def test_two_functions_that_compilers_call_as_one_are_there(tmp_path: Path) -> None:
    nodes = [node("Sin", "x", "s"), node("Cos", "x", "c"), node("Mul", "s c", "y")]
    made = model("net", nodes, [("x", (9,))], [("y", (9,))])
    inputs = random_inputs(made)
    linked, module = (Model.build(written(made, tmp_path / n, o)) for n, o in (("a", Options()), ("b", MODULE)))
    np.testing.assert_array_equal(module.run(inputs)["y"], linked.run(inputs)["y"])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_its_c_compiles_without_a_warning(compiler: str, tmp_path: Path) -> None:
    folder = written(softmax(), tmp_path, MODULE)
    for source in ("net_entry.c", "main.c", "mcc_seal.c"):
        flags = [*COMPILERS[compiler], f"-I{folder}", f"-I{folder / 'runtime'}", "-o", str(tmp_path / "made.o")]
        command = [compiler, *flags, "-c", str(folder / source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


POINTER = """
__asm__(".section .rodata.net_pointer,\\"a\\"\\n.globl net_pointer\\nnet_pointer: .quad net_run\\n.text\\n");
extern const uintptr_t net_pointer __attribute__((visibility("hidden")));
int net_used(void) { return (int)net_pointer; }
"""
WRITTEN = """
int net_written = 1;
int net_used(void) { return ++net_written; }
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [(POINTER, "an address of .* is written down .relocation 1."), (WRITTEN, "section .written has 4 bytes")],
    ids=["pointer", "written"],
)
def test_what_would_be_right_in_one_place_only_is_not_sealed(code: str, said: str, tmp_path: Path) -> None:
    folder = written(softmax(), tmp_path, MODULE)
    with (folder / "net.c").open("a") as file:
        file.write(f"int net_used(void);\n{code}")
    entry = folder / "net_entry.c"
    changed = entry.read_text().replace("return (uint32_t)net_run(m);", "return (uint32_t)net_used();")
    entry.write_text(f"int net_used(void);\n{changed}")
    make = ["make", "-s", "-C", str(folder), "CC=gcc", "net.mcm"]
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert re.search(said, done.stderr)
    assert not (folder / "net.mcm").exists()


def test_the_table_has_all_functions_that_code_calls() -> None:
    text = header_text("mcc_module_functions.h")
    there = dict(re.findall(r"EACH\((\d+), (\w+)\)", text))
    assert list(there) == [str(number) for number in range(len(there))]
    libm = {form.name for f in FUNCTIONS.values() if isinstance(form := f.c_float, Called) and form.header == "math.h"}
    wanted = {name.format(f=end) for name in libm for end in ("", "f")}
    assert ALLOWED | wanted | LIBM <= set(there.values())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"threads": 2}, "--threads"),
        ({"profile": True}, "--profile"),
        ({"dump_values": True}, "--dump-values"),
        ({"single_file": True}, "--single-file"),
        ({"wrappers": ("cpp",)}, "--wrapper"),
        ({"weights_section": ".qspi"}, "--weights-section"),
        ({"blob": "external"}, "--blob external"),
    ],
)
def test_what_cannot_be_a_module_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(WrongUse, match=f"a module does not go with {said}"):
        Options(module=True, **options)  # type: ignore[arg-type]


def test_models_of_which_there_is_no_module_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="strings"):
        compiled(small_models.text(), MODULE)
    with pytest.raises(UnsupportedModel, match="WebAssembly"):
        compiled(softmax(), Options(module=True, target="wasm32"))
    file = save(softmax(), tmp_path)
    with pytest.raises(WrongUse, match="one model for one target"):
        compile_jobs([(file, Options(module=True, target="x86-64-v3,generic"))], "net")
    with pytest.raises(WrongUse, match="one model for one target"):
        compile_jobs([(file, MODULE), (file, MODULE)], "both")
    with pytest.raises(WrongUse, match="--package"):
        arrange(compiled(softmax(), MODULE).files, "cmake", "net", MODULE)
