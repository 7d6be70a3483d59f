"""Packages for npm, built with clang for WebAssembly and used from Node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
from onnx import ModelProto

from mccompile.base.streaming import Stream
from mccompile.driver import Options, arrange, compile_graph
from mccompile.emit.folder import write_folder
from mccompile.frontend.load import load_proto
from tests import small_models
from tests.emit.wrappers.test_rust import FREE
from tests.passes.memory.test_state import STATES
from tests.passes.stream.pushed import model as stream_model


def package(folder: Path, made: ModelProto, options: Options, **dims: tuple[int, int]) -> Path:
    compiled = compile_graph(load_proto(made, dims=dims), options, "net")
    write_folder(folder, arrange(compiled.files, "npm", "net", options))
    node(folder, "build.mjs")
    return folder


def node(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["node", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def said_by(folder: Path, program: str) -> object:
    """The JSON that a program prints, which imports the package."""
    (folder / "user.mjs").write_text(f'import {{ load, ModelError }} from "./net.js";\n{program}')
    return json.loads(node(folder, "user.mjs"))


def options(**given: object) -> Options:
    return Options(target="wasm32", wrappers=("javascript",), **given)  # type: ignore[arg-type]


def test_results_are_those_of_the_reference(tmp_path: Path) -> None:
    made = small_models.conv()
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    x = (np.arange(np.prod(shape)) % 7 / 4 - 0.5).astype(np.float32)
    folder = package(tmp_path / "net", made, options())
    program = (
        "const net = await load();\n"
        "net.inputs.x.forEach((_, i, x) => { x[i] = (i % 7) / 4 - 0.5; });\n"
        "net.run();\nconsole.log(JSON.stringify([...net.outputs.y]));"
    )
    wanted = small_models.reference(made, {"x": x.reshape(shape)})["y"]
    np.testing.assert_allclose(said_by(folder, program), wanted.ravel(), rtol=1e-4, atol=1e-4)


def test_a_wrong_blob_is_an_error(tmp_path: Path) -> None:
    folder = package(tmp_path / "net", small_models.conv(), options(blob="external"))
    program = """
    import { readFile } from "node:fs/promises";
    const blob = await readFile("net.mcb"), said = [];
    const damaged = Uint8Array.from(blob);
    damaged[damaged.length - 1] ^= 1;
    for (const bytes of [blob, damaged, blob.subarray(1), blob.subarray(0, 9), new ArrayBuffer(0), [...blob, 0]]) {
      const why = (error) => (error instanceof ModelError ? error.status : -1);
      said.push(await load(bytes).then((net) => net.run() ?? 0, why));
    }
    console.log(JSON.stringify(said));
    """
    ok, *wrong = said_by(folder, program)  # type: ignore[misc]
    assert ok == 0 and wrong[0] == 11 and all(status in (6, 8) for status in wrong[1:])


def test_whatever_a_model_has(tmp_path: Path) -> None:
    made, states = STATES["causal"]
    stateful = package(tmp_path / "states", made, options(state=states, slices=True))
    program = (
        "const net = await load(); net.begin(); let steps = 1; while (!net.runSteps(1)) steps++;\n"
        "net.run(); net.reset();\n"
        "console.log(JSON.stringify([steps > 1, Object.values(net.states).every((s) => s.every((v) => v === 0))]));"
    )
    assert said_by(stateful, program) == [True, True]
    window = stream_model("(float[1,2,9] x) => (float[1,2,9] y) { y = Relu(x) }")
    streamed = package(tmp_path / "stream", window, options(stream=Stream({"x": 2})))
    assert said_by(streamed, "const net = await load(); console.log(JSON.stringify(typeof net.push()));") == "boolean"
    free = package(tmp_path / "free", FREE, options(), n=(1, 9))
    program = (
        "const net = await load(); net.resize(3); net.run(); let status = 0;\n"
        "try { net.resize(10); } catch (error) { status = error.status; }\n"
        "console.log(JSON.stringify([net.outputs.y.length, net.outputYShape(), status]));"
    )
    assert said_by(free, program) == [12, [3, 4], 3]
