"""The header for C++: strict compilers take it with every option, results are those of C, mistakes have a status."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import WrongUse
from mccompile.base.streaming import Stream
from mccompile.driver import Options, arrange, compile_graph, compile_jobs, compile_several
from mccompile.emit.package import write_folder
from mccompile.frontend.load import load_proto
from mccompile.passes.api import ALL
from mccompile.targets.api import Pool
from tests import small_models
from tests.passes.memory.test_state import STATES
from tests.passes.stream.pushed import model as stream_model
from tests.small_models import compiled, node, save

CPP = Options(wrappers=("cpp",))
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow"]
STRICT += ["-Wundef", "-Werror", "-fno-exceptions", "-fno-rtti"]
POOLS = (Pool("dtcm", 512, 0), Pool("sram", 1 << 20, 1))
FORMS = {
    "plain": {},
    "slices": {"slices": True},
    "threads": {"threads": 2},
    "inside": {"profile": True, "dump_values": True},
    "external": {"external": (ALL,)},
    "own blob": {"blob": "external"},
    "pools": {"mem": POOLS},
    "one file": {"single_file": True},
}


def accepted(folder: Path, name: str, compiler: str = "g++", standard: str = "c++11") -> None:
    (folder / "user.cpp").write_text(f'#include "{name}.hpp"\n#include "{name}.hpp"\n')
    places = [f"-I{folder}", f"-I{folder / 'runtime'}"]
    command = [compiler, f"-std={standard}", *STRICT, *places, "-fsyntax-only", str(folder / "user.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["conv", "text"])
def test_strict_compilers_take_it(name: str, form: str, tmp_path: Path) -> None:
    made = small_models.ALL[name]()
    compiled(made, Options(wrappers=("cpp",), **FORMS[form])).write(tmp_path / "out")  # type: ignore[arg-type]
    accepted(tmp_path / "out", name)


@pytest.mark.parametrize("name", small_models.ALL)
def test_of_every_model(name: str, tmp_path: Path) -> None:
    compiled(small_models.ALL[name](), CPP).write(tmp_path / "out")
    accepted(tmp_path / "out", name, "clang++", "c++20")


@pytest.mark.parametrize("name", ["causal", "shifted"])
def test_of_models_with_states(name: str, tmp_path: Path) -> None:
    made, states = STATES[name]
    compile_graph(load_proto(made), Options(wrappers=("cpp",), state=states), "net").write(tmp_path / "out")
    accepted(tmp_path / "out", "net")


def test_of_streams_and_sizes_that_are_not_fixed(tmp_path: Path) -> None:
    window = stream_model("(float[1,2,9] x) => (float[1,2,9] y) { y = Relu(x) }")
    streamed = Options(wrappers=("cpp",), stream=Stream({"x": 2}))
    compile_graph(load_proto(window), streamed, "net").write(tmp_path / "streamed")
    accepted(tmp_path / "streamed", "net")
    free = small_models.model("free", [node("Relu", "x", "y")], [("x", ("n", 4))], [("y", ("n", 4))])
    compile_graph(load_proto(free, dims={"n": (1, 9)}), CPP, "free").write(tmp_path / "free")
    accepted(tmp_path / "free", "free")
    assert run(tmp_path / "free", "free", FREE) == b"0 12 12 3 0\n"


@pytest.mark.parametrize("targets", ["x86-64-v3,generic", "cortex-m4,generic"])
def test_of_several_targets(targets: str, tmp_path: Path) -> None:
    path = save(small_models.conv(), tmp_path)
    write_folder(tmp_path / "out", compile_jobs([(path, Options(wrappers=("cpp",), target=targets))], "conv")[1])
    assert len(list((tmp_path / "out").glob("*.hpp"))) == 1
    accepted(tmp_path / "out", "conv")


def test_of_several_models(tmp_path: Path) -> None:
    models = [save(made, tmp_path) for made in (small_models.conv(), small_models.mlp())]
    write_folder(tmp_path / "out", compile_several(models, Options(wrappers=("cpp",)))[1])
    accepted(tmp_path / "out", "conv")
    accepted(tmp_path / "out", "mlp")


def test_code_and_blob_are_those_without_it() -> None:
    with_it, without = (compiled(small_models.conv(), options).files for options in (CPP, Options()))
    assert set(with_it) - set(without) == {"conv.hpp", "runtime/mcc_span.hpp"}
    assert all(with_it[path] == without[path] for path in without if path != "report.json")


def test_words_of_the_language_are_no_namespaces() -> None:
    made = compile_graph(load_proto(small_models.conv()), CPP, "concept").files["concept.hpp"]
    assert b"namespace concept_ {" in made


def test_it_lies_with_the_other_headers() -> None:
    files = compiled(small_models.conv(), CPP).files
    arranged = arrange(files, "cmake", "conv", CPP)
    assert {"include/conv.hpp", "include/mcc_span.hpp"} <= set(arranged)
    assert "include/conv.hpp" in json.loads(arranged["report.json"])["files"]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(WrongUse, match="did you mean --wrapper cpp"):
        compiled(small_models.conv(), Options(wrappers=("cppp",)))


def run(folder: Path, name: str, program: str) -> bytes:
    (folder / "user.cpp").write_text(f'#include "{name}.hpp"\n#include <cstdio>\n{program}')
    places = [f"-I{folder}", f"-I{folder / 'runtime'}"]
    check = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    for source in folder.glob(f"{name}*.c"):
        subprocess.run(["gcc", "-O1", *check, *places, "-c", source, "-o", folder / f"{source.stem}.o"], check=True)
    objects = [str(path) for path in folder.glob("*.o")]
    command = ["g++", "-std=c++11", *check, *places, str(folder / "user.cpp"), *objects, "-o", str(folder / "user")]
    subprocess.run(command, check=True)
    return subprocess.run([folder / "user"], capture_output=True, check=True).stdout


PROGRAM = """
static mcc::conv::arena arena;
alignas(8) static unsigned char raw[sizeof(mcc::conv::arena) + 64];
int main()
{
    mcc::conv::model m(arena);
    float next = -1.0f;
    for (float &x : m.input_x()) x = next += 1.0f / 16.0f;
    const mcc_status status = m.run();
    mcc_span<const float> y = m.output_y();
    std::fwrite(y.data(), 1, y.size_bytes(), stdout);
    std::fprintf(stderr, "%d", status);
    if (status != MCC_OK || m.status() != MCC_OK) return 1;

    mcc::conv::model damaged(arena, conv_weights, conv_weights_bytes - 1u);
    if (damaged.status() != MCC_ERR_BLOB_SIZE || damaged.run() != MCC_ERR_NOT_INIT) return 2;
    for (const float y : damaged.output_y())
        if (y < 0.0f || y > 0.0f) return 9;
    damaged.input_x()[0] = 3.0f;
    static uint64_t other[CONV_WEIGHTS_BYTES / 8u + 1u];
    if (mcc::conv::model(arena, other, CONV_WEIGHTS_BYTES).status() != MCC_ERR_BLOB_MAGIC) return 3;
    if (mcc::conv::model(arena, nullptr, 0u).run() != MCC_ERR_NOT_INIT) return 4;

    unsigned char *p = raw;
    while (reinterpret_cast<uintptr_t>(p) % CONV_ARENA_ALIGN != 0u) ++p;
    if (mcc::conv::arena::at(p, CONV_ARENA_BYTES - 1u) != nullptr) return 5;
    if (mcc::conv::arena::at(p + 1, CONV_ARENA_BYTES) != nullptr) return 6;
    if (mcc::conv::arena::at(nullptr, 0u) != nullptr) return 7;
    mcc::conv::arena *there = mcc::conv::arena::at(p, CONV_ARENA_BYTES);
    return there != nullptr && mcc::conv::model(*there).run() == MCC_OK ? 0 : 8;
}
"""
FREE = """
static mcc::free::arena arena;
int main()
{
    mcc::free::model m(arena), none(arena, nullptr, 0u);
    m.resize(3);
    size_t shape[2];
    m.input_x_shape(shape);
    std::printf("%d %zu %zu ", m.run(), m.input_x().size(), m.output_y().size());
    std::printf("%zu %zu\\n", shape[0], none.input_x().size());
}
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
def test_results_are_those_of_c_and_mistakes_have_a_status(tmp_path: Path) -> None:
    made = small_models.conv()
    compiled(made, CPP).write(tmp_path / "out")
    got = run(tmp_path / "out", "conv", PROGRAM)
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    x = (-1 + (np.arange(np.prod(shape)) + 1) / 16).astype(np.float32).reshape(shape)
    wanted = small_models.reference(made, {"x": x})["y"]
    np.testing.assert_allclose(np.frombuffer(got, np.float32).reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
