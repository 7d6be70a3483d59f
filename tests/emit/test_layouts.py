"""Each arrangement holds what its ecosystem asks for, and all of its C compiles from the places it names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options, arrange, compile_several
from mccompile.emit.layouts import layouts
from mccompile.emit.package import write_folder
from mccompile.targets.api import Build, load, names
from tests import small_models
from tests.small_models import compiled, save
from tests.thorough import some

EVERY = sorted(layouts())
# What is for another machine, or includes what its ecosystem brings, is built by tests of its wrapper.
OF_ANY_COMPILER = [name for name in EVERY if layouts()[name].holds(Build()) and name != "micropython"]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]


def folder_of(layout: str, folder: Path) -> Path:
    found = layouts()[layout]
    target = "generic" if found.holds(Build()) else found.target
    options = Options(wrappers=tuple(filter(None, [found.wrapper])), target=target)
    write_folder(folder / "made", arrange(compiled(small_models.conv(), options).files, layout, "conv", Options()))
    return folder / "made"


@pytest.mark.parametrize("layout", OF_ANY_COMPILER)
def test_all_sources_find_their_headers(layout: str, tmp_path: Path) -> None:
    folder = folder_of(layout, tmp_path)
    places = {layouts()[layout].sources, layouts()[layout].headers}
    sources = [str(path) for path in folder.rglob("*.c")]
    includes = [f"-I{folder / place}" for place in places]
    assert sources
    done = subprocess.run(["gcc", *STRICT, *includes, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("layout", EVERY)
def test_what_the_build_names_is_there(layout: str, tmp_path: Path) -> None:
    folder = folder_of(layout, tmp_path)
    build = {
        path: path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in (".mcb", ".c")
    }
    named = {
        (path.parent / word).resolve()
        for path, text in build.items()
        if path.suffix not in (".h", ".json", ".ino") and path.name != "layout.toml"
        for word in re.findall(r"[\w./-]+\.c\b", text)
    }
    sources = {path.resolve() for path in folder.rglob("*.c") if not path.name.endswith("main.c")}
    assert not named or sources <= named
    assert all(path.is_file() for path in named)


@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_an_installed_cmake_package_is_found(tmp_path: Path) -> None:
    folder = folder_of("cmake", tmp_path)
    run("cmake", "-S", folder, "-B", tmp_path / "build", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'there'}")
    run("cmake", "--build", tmp_path / "build", "--target", "install")
    user = tmp_path / "user"
    user.mkdir()
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(user C)\nfind_package(conv REQUIRED)\n"
        "add_executable(user user.c)\ntarget_link_libraries(user conv::conv)\n"
    )
    (user / "user.c").write_text('#include "conv.h"\nint main(void) { return conv_run(NULL) == MCC_OK; }\n')
    run("cmake", "-S", user, "-B", tmp_path / "user-build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'there'}")
    run("cmake", "--build", tmp_path / "user-build")
    run(tmp_path / "user-build" / "user")


def test_make_builds_library_and_example(tmp_path: Path) -> None:
    folder = folder_of("make", tmp_path)
    run("make", "-C", folder)
    assert "y" in run(folder / "conv_main")


def test_several_models_are_one_library(tmp_path: Path) -> None:
    models = [save(made, tmp_path) for made in (small_models.conv(), small_models.mlp())]
    _, files = compile_several(models, Options(name="both"))
    write_folder(tmp_path / "made", arrange(files, "make", "both", Options()))
    run("make", "-C", tmp_path / "made")
    assert (tmp_path / "made" / "libboth.a").is_file()
    run(tmp_path / "made" / "mlp_main")


def test_descriptions_parse(tmp_path: Path) -> None:
    library = json.loads((folder_of("platformio", tmp_path / "p") / "library.json").read_text("utf-8"))
    assert {"name", "version", "description"} <= set(library) and library["build"]["srcDir"] == "src"
    arduino = properties((folder_of("arduino", tmp_path / "a") / "library.properties").read_text("utf-8"))
    needed = "name version author maintainer sentence paragraph category url architectures"
    assert all(arduino[name] for name in needed.split())
    pack = ElementTree.parse(folder_of("cmsis-pack", tmp_path / "c") / "mccompile.conv.pdsc").getroot()
    listed = [file.attrib["name"] for file in pack.iter("file")]
    assert all((tmp_path / "c" / "made" / name).exists() for name in listed)


@pytest.mark.skipif(find_spec("platformio") is None, reason="platformio is not installed")
@pytest.mark.parametrize(("layout", "manifest"), [("platformio", "library.json"), ("arduino", "library.properties")])
def test_platformio_packs_the_library(layout: str, manifest: str, tmp_path: Path) -> None:
    """It refuses descriptions that are not as it wants them."""
    folder = folder_of(layout, tmp_path)
    home = {"PLATFORMIO_CORE_DIR": str(tmp_path / "home"), "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no"}
    packed = tmp_path / "conv.tar.gz"
    command = [sys.executable, "-m", "platformio", "pkg", "pack", str(folder), "-o", str(packed)]
    done = subprocess.run(command, env=os.environ | home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(packed) as files:
        assert {manifest, "src/conv.c", "src/conv_weights.c"} <= set(files.getnames())


@some(2, ("layout", "other", "own"),
    [("esp-idf", "cortex-m4", "rv32imc"), ("arduino", "x86-64-v3", "cortex-m0"), ("cmsis-pack", "rv32imc", "armv7a"),
     ("npm", "generic", "wasm32-relaxed"), ("zephyr", "wasm32", "riscv64"), ("platformio", "wasm32", "x86-64-v3")],
)  # fmt: skip
def test_code_for_cores_of_another_ecosystem_is_refused(layout: str, other: str, own: str) -> None:
    wrappers = tuple(filter(None, [layouts()[layout].wrapper]))
    files = {target: compiled(small_models.conv(), Options(target=target)).files for target in (other, own)}
    with pytest.raises(WrongUse, match=f"{layout} cannot package code for other processors(.|\n)*--target") as refused:
        arrange(files[other], layout, "conv", Options())
    (problem,) = refused.value.problems
    named = problem.fix.removeprefix("did you mean --target ").removesuffix("?")
    assert layouts()[layout].holds(load(named).build)
    options = Options(target=own, wrappers=wrappers)
    assert arrange(compiled(small_models.conv(), options).files, layout, "conv", options)


def test_own_targets_are_known_by_flags_and_compiler() -> None:
    idf = layouts()["esp-idf"]
    held = {name for name in names() if idf.holds(load(name).build)}
    assert held == {"generic", "rv32imc"}
    xtensa = Build("mine", "xtensa-esp32-elf-gcc", ("-mlongcalls",))
    assert idf.holds(xtensa) and idf.holds(Build("mine", flags=("-funroll-loops",)))
    assert not idf.holds(Build("mine", "clang", ("-mcpu=cortex-m85",)))


def test_an_unknown_ecosystem_is_refused() -> None:
    with pytest.raises(WrongUse, match="zephyr"):
        arrange({}, "cobol", "x", Options())


def properties(text: str) -> Mapping[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
