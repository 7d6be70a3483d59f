"""The module for JavaScript: typed arrays for every element type, and refusals of what it cannot hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import parser

from mccompile.base.errors import UnsupportedModel, WrongUse
from mccompile.driver import Options, arrange, compile_graph, compile_jobs, compile_several
from mccompile.frontend.load import load_proto
from mccompile.passes.api import ALL
from tests import small_models
from tests.small_models import compiled, save

JAVASCRIPT = Options(wrappers=("javascript",), target="wasm32")
ARRAYS = {
    "float": "Float32Array",
    "double": "Float64Array",
    "float16": "Uint16Array",
    "int8": "Int8Array",
    "uint8": "Uint8Array",
    "int16": "Int16Array",
    "uint16": "Uint16Array",
    "int32": "Int32Array",
    "uint32": "Uint32Array",
    "int64": "BigInt64Array",
    "uint64": "BigUint64Array",
    "bool": "Uint8Array",
}
REFUSED = [("text", {}, "strings are pointers"), ("conv", {"external": (ALL,)}, "leave out --io external")]


@pytest.mark.parametrize("dtype", ARRAYS)
def test_each_element_type_has_an_array(dtype: str) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]>'
    made = parser.parse_model(f"{head} net ({dtype}[2,3] x) => ({dtype}[3,2] y) {{ y = Transpose(x) }}")
    files = compile_graph(load_proto(made), JAVASCRIPT, "net").files
    assert f"readonly x: {ARRAYS[dtype]};" in files["javascript/net.d.ts"].decode()
    assert f"new {ARRAYS[dtype]}(c.memory.buffer, c.output_y(), 6)" in files["javascript/net.js"].decode()


@pytest.mark.parametrize(("name", "given", "why"), REFUSED)
def test_what_it_cannot_hold_is_refused(name: str, given: dict[str, object], why: str) -> None:
    with pytest.raises(UnsupportedModel, match=why):
        compiled(small_models.ALL[name](), Options(wrappers=("javascript",), **given))  # type: ignore[arg-type]


def test_a_package_is_for_webassembly(tmp_path: Path) -> None:
    files = compiled(small_models.conv(), Options(wrappers=("javascript",))).files
    with pytest.raises(WrongUse, match="--target wasm32"):
        arrange(files, "npm", "conv", Options())
    path = save(small_models.conv(), tmp_path)
    with pytest.raises(UnsupportedModel, match="name one target"):
        compile_jobs([(path, Options(wrappers=("javascript",), target="x86-64-v3,generic"))], "conv")


def test_several_models_are_modules_of_one_package(tmp_path: Path) -> None:
    models = [save(made, tmp_path) for made in (small_models.conv(), small_models.mlp())]
    files = arrange(compile_several(models, JAVASCRIPT)[1], "npm", "both", JAVASCRIPT)
    exports = json.loads(files["package.json"])["exports"]
    assert exports["./conv"] == {"types": "./conv.d.ts", "default": "./conv.js"} and "./mlp.wasm" in exports
    built = files["build.mjs"].decode()
    assert 'build("conv", [' in built and built.count("src/conv_module.c") == built.count("src/mlp_module.c") == 1


def test_the_c_of_a_model_is_the_same_with_it() -> None:
    with_it = compiled(small_models.conv(), JAVASCRIPT).files
    without = compiled(small_models.conv(), Options(target="wasm32")).files
    assert all(with_it[path] == without[path] for path in without if path != "report.json")
