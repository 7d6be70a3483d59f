"""Folders of evidence, and the checkers in them."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from onnx import ModelProto

from mccompile import cli
from mccompile.base.dtypes import u8
from mccompile.base.errors import MccWarning, WrongUse
from mccompile.driver import Options, compile_graph
from mccompile.evidence import check_calls, check_memory, check_trace, folder
from mccompile.frontend.listed import nodes_of
from mccompile.frontend.load import load_proto
from mccompile.passes.io.io_forms import InputForm, OutputForm
from mccompile.targets.api import Prefer
from tests import small_models
from tests.emit.test_alike_functions import separable
from tests.evidence import mutate

OWN = Path(check_memory.__file__).parent


@pytest.mark.parametrize("made", [small_models.conv, small_models.branches, small_models.unpooled])
def test_broken_certificates_are_rejected(made: Callable[[], ModelProto]) -> None:
    good, code = mutate.certificate(small_models.compiled(made()))
    assert mutate.problems(good, code) == []
    accepted = [name for name, bad in mutate.broken(good, 69) if not mutate.problems(bad, code)]
    assert accepted == []


def test_shared_steps_and_rows_are_accepted() -> None:
    for options in (Options(threads=3), Options(target="cortex-m4", slices=True)):
        folder.checked(small_models.compiled(small_models.conv(), options))


def test_plans_with_regions_of_accelerators_are_accepted() -> None:
    backend = str(Path(__file__).resolve().parents[1] / "fuzz" / "accelerator")
    folder.checked(small_models.compiled(small_models.conv(), Options(accelerator=backend)))


def test_init_that_calls_reset_of_states_is_traced() -> None:
    made = small_models.model("kept", [small_models.node("Neg", "x", "y")], [("x", [7])], [("y", [7])])
    package = small_models.compiled(made, Options(state={"y": "x"}))
    folder.checked_trace(package, nodes_of(made), folder.checked(package))


@pytest.mark.parametrize("made", [small_models.conv, small_models.branches])
def test_steps_that_advances_leave_out_are_traced(made: Callable[[], ModelProto]) -> None:
    package = small_models.compiled(made(), Options(advance=True))
    folder.checked_trace(package, nodes_of(made()), folder.checked(package))


def test_other_code_is_rejected() -> None:
    good, (code, header) = mutate.certificate(small_models.compiled(small_models.mlp()))
    call = next(mutate.calls_in(good["program"]))
    address = call["arguments"][0]["c"]
    other = code.replace(f"{call['function']}({address}", f"{call['function']}({address[:-1]} + 4)")
    assert mutate.problems(good, (code, header)) == [] != mutate.problems(good, (other, header))


def test_broken_traces_are_rejected() -> None:
    model = small_models.mlp()
    package = small_models.compiled(model)
    memory, _ = mutate.certificate(package)
    good = mutate.trace_of(package, nodes_of(model))
    assert check_trace.check(good, memory, package.files) == []
    bad = mutate.broken(good, 57, changes=mutate.OF_TRACES)
    assert [name for name, each in bad if not check_trace.check(each, memory, package.files)] == []


def test_a_body_that_functions_share_comes_from_the_nodes_of_all() -> None:
    package = small_models.compiled(separable(), Options(prefer=Prefer.TIME))
    memory = folder.checked(package)
    found = folder.checked_trace(package, nodes_of(separable()), memory)
    functions = [each for each in found["files"]["separable_kernels.c"] if each["what"] == "function"]
    shared = next(each for each in functions if "_of_sizes" in each["name"])
    assert len(shared["steps"]) > 1
    other = next(each for each in functions if each["steps"][0] not in shared["steps"])
    shared["steps"] += other["steps"]
    assert f"is not the function {shared['name']}" in check_trace.check(found, memory, package.files)[0]


def test_nodes_that_leave_no_code_say_why() -> None:
    nodes = [
        small_models.node("Constant", "", "two", value_float=2.0),
        small_models.node("Mul", "two two", "four"),
        small_models.node("Identity", "x", "same"),
        small_models.node("Transpose", "same", "t", perm=[1, 0]),
        small_models.node("Neg", "t", "unread"),
        small_models.node("Mul", "t four", "y"),
    ]
    model = small_models.model("small", nodes, [("x", [3, 5])], [("y", [5, 3])])
    found = mutate.trace_of(small_models.compiled(model), nodes_of(model))
    dispositions = [node["disposition"] for node in found["nodes"]]
    assert dispositions == ["read", "folded", "replaced", "viewed", "unread", "computed"]
    assert [node["position"] for node in found["nodes"]] == list("012345") and not any(found["untraced"].values())


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(external=("*",)),  # a copy behind a constant, which no node makes
        Options(inputs={"x": InputForm(u8, mean=(1.0,))}, outputs={"y": OutputForm(argmax=True)}),
    ],
    ids=["a constant output", "outside of the arena", "forms of inputs and outputs"],
)
def test_steps_that_no_node_asked_for_are_traced(options: Options) -> None:
    nodes = [small_models.node("Neg", "x", "y"), small_models.node("Identity", "c", "z")]
    weights = {"c": small_models.floats(0, 3)}
    model = small_models.model("given", nodes, [("x", [3])], [("y", [3]), ("z", [3])], weights)
    package = small_models.compiled(model, options)
    folder.checked_trace(package, nodes_of(model), folder.checked(package))


def test_what_alone_made_an_output_without_elements_is_traced() -> None:
    """The strings and numbers of the mapper are constants of its own, which are not read either."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>
        none (string[1] x) => (int64[0] y) <bool[1] c = {0}> {
        m = ai.onnx.ml.CategoryMapper <cats_int64s = [0, 1], cats_strings = ["a", "b"]> (x)
        y = Compress(m, c) }""")
    with pytest.warns(MccWarning, match="computes nothing"):
        package = small_models.compiled(model)
    folder.checked_trace(package, nodes_of(model), folder.checked(package))


def test_an_operand_without_elements_reads_nothing_of_the_constant_behind_it() -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21]>
        behind (float[3,8] x) => (float[3,5] y, float s)
        <float[3,0] none = {}, float[8,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,
                         1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20}> {
        s = ReduceSum <keepdims: int = 0> (none)
        y = MatMul (x, w) }""")
    package = small_models.compiled(model, Options(optimize=False))
    assert any(entry.packing for entry in package.plan.entries)
    folder.checked_trace(package, nodes_of(model), folder.checked(package))


def test_an_output_without_elements_has_memory_of_its_own() -> None:
    nodes = [small_models.node("Split", "x four_none", "y z", axis=0)]
    split = {"four_none": np.array([4, 0], np.int64)}
    model = small_models.model("given", nodes, [("x", [4])], [("y", [4]), ("z", [0])], split)
    memory = folder.checked(small_models.compiled(model, Options(external=("z",))))
    assert memory["rooms"]["output_z"] == 0


def test_outputs_whose_bound_no_sizes_reach_are_accepted() -> None:
    """`n * (3 * t - 2)` is bounded term by term."""
    nodes = [small_models.node("ConvTranspose", "x w", "y", strides=[3])]
    weights = {"w": np.ones((1, 1, 1), np.float32)}
    model = small_models.model("free", nodes, [("x", ["n", 1, "t"])], [("y", ["n", 1, None])], weights)
    options = Options(dims={"n": (1, 8), "t": (1, 4)})
    package = compile_graph(load_proto(model, dims=options.dims), options, "free")
    assert "#define FREE_OUTPUT_Y_COUNT 94u" in package.files["free.h"].decode()
    memory, code, header = folder.checked(package), *(package.files[f"free.{end}"].decode() for end in "ch")
    small = header.replace("_OUTPUT_Y_BYTES 376u", "_OUTPUT_Y_BYTES 316u")
    assert [*check_calls.rooms_of(memory, code, small)] == ["an output of 316 bytes is read in part"]


def test_an_input_that_is_fetched_and_not_read_is_listed() -> None:
    nodes = [small_models.node("Neg", "x", "y")]
    model = small_models.model("given", nodes, [("x", [3]), ("z", [4, 5])], [("y", [3])])
    package = small_models.compiled(model, Options(inputs={"z": InputForm(rows=True)}))
    memory = folder.checked(package)
    found = folder.checked_trace(package, nodes_of(model), memory)
    assert found["unread_inputs"] == ["z"] and [step["nodes"] for step in found["steps"]] == [[], ["0"]]
    found["unread_inputs"] = []
    assert "comes from no node" in check_trace.check(found, memory, package.files)[0]


def test_rows_that_nothing_reads_are_fetched_by_the_same_step() -> None:
    weights = {"w": small_models.floats(0, 4, 3, 1, 3)}
    nodes = [small_models.node("Conv", "x w", "y", strides=[3, 1])]
    model = small_models.model("given", nodes, [("x", [1, 3, 5, 9])], [("y", [1, 4, 2, 7])], weights)
    package = small_models.compiled(model, Options(inputs={"x": InputForm(rows=True)}, prefer=Prefer.RAM))
    memory = folder.checked(package)
    found = folder.checked_trace(package, nodes_of(model), memory)
    assert [segment["steps"] for segment in found["files"]["given.c"] if segment["what"] == "step"] == [[0], [1], [0]]


def test_lines_lead_back_to_nodes(written: Path) -> None:
    found = json.loads((written / "out" / "trace.json").read_text())
    chance = random.Random(0)
    code = {path: (written / "out" / "code" / path).read_text().split("\n") for path in ("mlp.c", "mlp_kernels.c")}
    for _ in range(200):
        path = chance.choice(sorted(code))
        line = chance.randrange(1, len(code[path]))
        told = check_trace.back(found, path, line)
        (segment,) = (s for s in found["files"][path] if s["lines"][0] <= line <= s["lines"][1])
        assert segment["what"] in ("interface", "table", "frame") or any("node " in each for each in told)
        if segment["what"] == "step":
            (step,) = segment["steps"]
            text = "\n".join(code[path][segment["lines"][0] - 1 : segment["lines"][1]])
            assert found["steps"][step]["provenance"][0] in text and found["steps"][step]["function"] in text


@pytest.mark.parametrize(("op", "options"), [("Neg", Options(slices=True)), ("Identity", Options())])
def test_a_run_that_calls_no_step_itself_is_of_the_interface(op: str, options: Options) -> None:
    """Control flow is that of nodes."""
    made = small_models.model("idle", [small_models.node(op, "x", "y")], [("x", [7])], [("y", [7])])
    package = small_models.compiled(made, options)
    memory = folder.checked(package)
    found = folder.checked_trace(package, nodes_of(made), memory)
    (run,) = (each for each in found["files"]["idle.c"] if each.get("name") == "idle_run")
    assert run["what"] == "interface"
    bad = found | {
        "files": found["files"]
        | {"idle.c": [each | {"what": "control"} if each is run else each for each in found["files"]["idle.c"]]}
    }
    assert check_trace.check(bad, memory, package.files) != []


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("evidence")
    made = small_models.mlp()
    given = made.graph.input[0].name
    nodes = [small_models.node("Identity", given, "same"), small_models.node("Constant", "", "two", value_float=2.0)]
    made.graph.node.extend(nodes)
    model = small_models.save(made, where)
    assert cli.run(["evidence", str(model), "-o", str(where / "out"), "--target", "cortex-m4"]) == 0
    assert cli.run(["evidence", str(model), "-o", str(where / "again"), "--target", "cortex-m4"]) == 0
    return where


def test_a_folder_is_reproducible(written: Path) -> None:
    first, second = (
        {path.relative_to(top): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}
        for top in (written / "out", written / "again")
    )
    assert first == second and Path("code/mlp.c") in first and Path("index.html") in first


def test_what_a_folder_has_as_json_is_what_its_schemas_say(written: Path) -> None:
    schemas = {path.name.removesuffix(".schema.json"): path for path in (written / "out" / "schemas").iterdir()}
    there = {path.stem: path for path in (written / "out").glob("*.json")}
    assert there.keys() - {"report", "sbom.spdx"} == schemas.keys()
    for name, schema in schemas.items():
        jsonschema.validate(json.loads(there[name].read_text()), json.loads(schema.read_text()))


def test_a_folder_is_checked_without_mccompile(written: Path) -> None:
    check = [sys.executable, "-I", "-S", str(written / "out" / "check.py")]
    done = subprocess.run(check, capture_output=True, text=True, check=True)
    parts = ["files", "calls", "memory", "owners", "ranges", "schema", "stack", "trace"]
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == parts
    code = written / "out" / "code" / "mlp.c"
    code.write_text(code.read_text() + "\n")
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "code/mlp.c is not the file" in done.stdout


def test_checkers_are_small_and_import_nothing_but_python() -> None:
    for path in OWN.glob("check*.py"):
        text = path.read_text()
        modules = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
        modules |= {a.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for a in node.names}
        assert {str(module).split(".")[0] for module in modules} <= set(sys.stdlib_module_names), path
        assert len(text.splitlines()) <= 300, path


@pytest.mark.parametrize("more", [["--single-file"], ["--target", "generic,cortex-m4"]])
def test_what_it_is_not_about_is_refused(written: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    model = written / "mlp.onnx"
    assert cli.run(["evidence", str(model), "-o", str(written / "no"), *more]) == WrongUse.exit_code
    assert more[0] in capsys.readouterr().err and not (written / "no").exists()
