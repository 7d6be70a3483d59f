"""The module for Rust: its struct is C's, its errors are C's, and what safe Rust cannot hold is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mccompile.base.errors import UnsupportedModel, WrongUse
from mccompile.base.streaming import Stream
from mccompile.driver import Options, arrange, compile_graph, compile_jobs, compile_several
from mccompile.frontend.load import load_proto
from mccompile.passes.api import ALL
from tests import small_models
from tests.emit.wrappers.test_cpp import POOLS
from tests.passes.memory.test_state import STATES
from tests.passes.stream.pushed import model as stream_model
from tests.small_models import compiled, node, save

RUST = Options(wrappers=("rust",))
WIDTHS = {"uint32_t": "u32", "uint64_t": "u64", "mcc_index": "isize", "mcc_parallel_for": "usize", "mcc_dump": "usize"}
FORMS = {
    "plain": {},
    "slices": {"slices": True},
    "threads": {"threads": 2},
    "inside": {"profile": True, "dump_values": True},
    "pools": {"mem": POOLS},
    "all": {"slices": True, "threads": 2, "profile": True, "dump_values": True, "mem": POOLS},
}
FREE = small_models.model("free", [node("Relu", "x", "y")], [("x", ("n", 4))], [("y", ("n", 4))])
RANDOM = small_models.model("random", [node("RandomNormalLike", "x", "y")], [("x", (1, 4))], [("y", (1, 4))])


def fields_of_c(header: str) -> list[tuple[str, str]]:
    body = re.search(r"typedef struct \w+_model \{\n(.*?)\n\}", re.sub(r"/\*.*?\*/", "", header), re.DOTALL)
    assert body is not None
    found = []
    for line in filter(None, (line.strip() for line in body[1].splitlines())):
        type, pointer, name, length = re.fullmatch(r"(?:const )?(\w+) (\*?)(\w+)(?:\[(\d+)\])?;", line).groups()  # type: ignore[union-attr]
        one = "pointer" if pointer else WIDTHS[type]
        found.append((name, f"[{one}; {length}]" if length else one))
    return found


def fields_of_rust(module: str) -> list[tuple[str, str]]:
    body = re.search(r"struct Raw \{\n(.*?)\n\}", module, re.DOTALL)
    assert body is not None
    pairs = re.findall(r"(\w+): ([^,]+),\n", f"{body[1]}\n")
    return [(name, "pointer" if type.startswith("*") or name in ("pool", "dump_to") else type) for name, type in pairs]


def same_structs(files: object, name: str) -> None:
    header, module = (files[f"{name}.{ending}"].decode() for ending in ("h", "rs"))  # type: ignore[index]
    assert fields_of_rust(module) == fields_of_c(header)


@pytest.mark.parametrize("form", FORMS)
def test_its_struct_has_the_fields_of_c(form: str) -> None:
    same_structs(compiled(small_models.conv(), Options(wrappers=("rust",), **FORMS[form])).files, "conv")  # type: ignore[arg-type]


def test_so_it_has_with_states_streams_sizes_and_random_numbers() -> None:
    made, states = STATES["causal"]
    same_structs(compile_graph(load_proto(made), Options(wrappers=("rust",), state=states), "net").files, "net")
    window = stream_model("(float[1,2,9] x) => (float[1,2,9] y) { y = Relu(x) }")
    streamed = Options(wrappers=("rust",), stream=Stream({"x": 2}))
    same_structs(compile_graph(load_proto(window), streamed, "net").files, "net")
    same_structs(compile_graph(load_proto(FREE, dims={"n": (1, 9)}), RUST, "free").files, "free")
    same_structs(compiled(RANDOM, RUST).files, "random")


def test_its_errors_are_those_of_c() -> None:
    shared = compiled(small_models.conv(), RUST).files["mcc.rs"].decode()
    header = (Path(__file__).parents[3] / "runtime_c" / "include" / "mcc.h").read_text()
    numbers = re.findall(r"MCC_ERR_(\w+) = (\d+)", header)
    assert len(numbers) > 15
    assert all(f"    {name.title().replace('_', '')} = {number}," in shared for name, number in numbers)
    assert '"the arena is too small"' in shared and "18 => Ok(false)" in shared


REFUSED = [("text", {}, "strings"), ("conv", {"external": (ALL,)}, "--io external")]


@pytest.mark.parametrize(("name", "given", "why"), REFUSED)
def test_what_safe_rust_cannot_hold_is_refused(name: str, given: dict[str, object], why: str) -> None:
    with pytest.raises(UnsupportedModel, match=why):
        compiled(small_models.ALL[name](), Options(wrappers=("rust",), **given))  # type: ignore[arg-type]


def test_a_crate_is_for_one_target(tmp_path: Path) -> None:
    path = save(small_models.conv(), tmp_path)
    with pytest.raises(UnsupportedModel, match="name one target"):
        compile_jobs([(path, Options(wrappers=("rust",), target="x86-64-v3,generic"))], "conv")
    files = compile_jobs([(path, Options(wrappers=("rust",), target="cortex-m4,generic"))], "conv")[1]
    with pytest.raises(WrongUse, match="name one target"):
        arrange(files, "cargo", "conv", Options())


def test_a_crate_needs_its_wrapper() -> None:
    with pytest.raises(WrongUse, match="--wrapper rust"):
        arrange(compiled(small_models.conv()).files, "cargo", "conv", Options())


def test_several_models_are_modules_of_one_crate(tmp_path: Path) -> None:
    models = [save(made, tmp_path) for made in (small_models.conv(), small_models.mlp())]
    files = arrange(compile_several(models, RUST)[1], "cargo", "match", RUST)
    assert {"src/conv.rs", "src/mlp.rs", "src/mcc.rs", "c/conv.h"} <= set(files)
    assert b'#[path = "conv.rs"]\npub mod conv;' in files["src/lib.rs"]
    assert b'name = "match_net"' in files["Cargo.toml"]
