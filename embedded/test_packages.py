"""Arrangements for ecosystems that do not install here: their build files run in CMake with stand-ins for the functions
of the ecosystem, and all C compiles with the compiler and flags that the ecosystem uses on a usual board."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from embedded.models import path_of
from mccompile.driver import Options, arrange, compile, compile_several
from mccompile.emit.package import write_folder
from tests.emit.test_layouts import run

SIZE = ["-Os", "-ffunction-sections", "-fdata-sections", "-fno-common"]
M4, M0 = (["-mthumb", f"-mcpu={core}"] for core in ("cortex-m4", "cortex-m0plus"))
ZEPHYR = ["-std=c99", "-fno-strict-aliasing", "-fno-pic", "-Wall", "-Wformat", "-Wno-pointer-sign", "-Werror"]
ESP_IDF = ["-std=gnu17", "-march=rv32imc", "-mabi=ilp32", "-Wall", "-Wextra", "-Werror", "-fstrict-volatile-bitfields"]
ARDUINO = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "--param", "max-inline-insns-single=500"]
PACK = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fshort-enums", "-fshort-wchar"]
BUILDS = {
    "zephyr": ("arm-none-eabi-gcc", [*M4, "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", *SIZE, *ZEPHYR]),
    "esp-idf": ("riscv64-unknown-elf-gcc", ["--specs=picolibc.specs", *SIZE, *ESP_IDF]),
    "arduino": ("arm-none-eabi-gcc", [*M0, *SIZE, *ARDUINO]),
    "cmsis-pack": ("arm-none-eabi-gcc", [*M4, *SIZE, *PACK]),
    "platformio": ("arm-none-eabi-gcc", [*M0, "-std=c99", *SIZE, "-Wall", "-Werror"]),
}
ZEPHYR_STANDS_IN = """
set(CONFIG_NET ON)
macro(zephyr_library_named name)
  set(library ${name})
  add_library(${name} STATIC)
endmacro()
macro(zephyr_include_directories)
  target_include_directories(${library} PUBLIC ${ARGN})
endmacro()
macro(zephyr_library_sources)
  target_sources(${library} PRIVATE ${ARGN})
endmacro()
add_subdirectory(made/zephyr)
"""
ESP_IDF_STANDS_IN = """
function(idf_component_register)
  cmake_parse_arguments(given "" "" "SRCS;INCLUDE_DIRS;PRIV_INCLUDE_DIRS" ${ARGN})
  if(given_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${given_UNPARSED_ARGUMENTS}")
  endif()
  add_library(net STATIC ${given_SRCS})
  target_include_directories(net PUBLIC ${given_INCLUDE_DIRS} PRIVATE ${given_PRIV_INCLUDE_DIRS})
endfunction()
add_subdirectory(made)
"""
SKETCH = """
#include <stddef.h>
struct Printer { void begin(long); void println(const char *); };
extern Printer Serial;
"""


TARGETS = {"zephyr": "cortex-m4", "esp-idf": "rv32imc", "arduino": "cortex-m0", "cmsis-pack": "cortex-m4"}


def folder_of(layout: str, folder: Path, target: str = "") -> Path:
    target = target or TARGETS.get(layout, "cortex-m0")
    package = compile(path_of("separable_int8", folder), Options(target=target, name="net"))
    write_folder(folder / "made", arrange(package.files, layout, "net", Options()))
    return folder / "made"


@pytest.mark.parametrize("layout", sorted(BUILDS))
def test_all_compiles_as_the_ecosystem_compiles_it(layout: str, tmp_path: Path) -> None:
    folder = folder_of(layout, tmp_path)
    compiler, flags = BUILDS[layout]
    sources = sorted(path for path in folder.rglob("*.c") if "main" not in path.name)
    assert len(sources) == 3
    for source in sources:
        places = [f"-I{folder / place}" for place in ("include", "src")]
        run(compiler, *flags, *places, "-c", source, "-o", tmp_path / f"{source.stem}.o")


def test_all_compiles_where_int_has_16_bits(tmp_path: Path) -> None:
    sources = sorted(folder_of("arduino", tmp_path, "generic").rglob("*.c"))
    assert len(sources) == 3
    for source in sources:
        run("avr-gcc", "-mmcu=atmega2560", *SIZE, *ARDUINO[:-2], "-c", source, "-o", tmp_path / f"{source.stem}.o")


@pytest.mark.parametrize(("layout", "functions"), [("zephyr", ZEPHYR_STANDS_IN), ("esp-idf", ESP_IDF_STANDS_IN)])
def test_its_build_file_makes_a_library(layout: str, functions: str, tmp_path: Path) -> None:
    """Whose public headers are all that a program needs."""
    folder_of(layout, tmp_path, "generic")
    program = '#include "net.h"\nint main(void) { return net_run(NULL) == MCC_ERR_NULL ? 0 : 1; }\n'
    (tmp_path / "program.c").write_text(program)
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.20)\nproject(user C)\n{functions}\n"
        "add_executable(program program.c)\ntarget_link_libraries(program net m)\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build" / "program")


def test_a_zephyr_module_names_what_is_there(tmp_path: Path) -> None:
    folder = folder_of("zephyr", tmp_path)
    lines = (folder / "zephyr" / "module.yml").read_text().splitlines()
    words = dict(line.strip().split(": ") for line in lines if ": " in line)
    assert set(words) == {"name", "cmake", "kconfig"}
    assert (folder / words["cmake"] / "CMakeLists.txt").is_file()
    option = (folder / words["kconfig"]).read_text().split()[1]
    assert f"if(CONFIG_{option})" in (folder / words["cmake"] / "CMakeLists.txt").read_text()


@pytest.mark.parametrize("several", [False, True])
def test_a_sketch_is_a_program(several: bool, tmp_path: Path) -> None:
    if several:
        models = [path_of(name, tmp_path) for name in ("conv", "separable_int8")]
        files = compile_several(models, Options(target="cortex-m0", name="net"))[1]
        write_folder(tmp_path / "made", arrange(files, "arduino", "net", Options()))
    else:
        folder_of("arduino", tmp_path)
    (tmp_path / "Arduino.h").write_text(SKETCH)
    sketch = tmp_path / "made" / "examples" / "net_once" / "net_once.ino"
    flags = [*M0, "-Os", "-std=gnu++11", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-Wall", "-Werror"]
    places = [f"-I{tmp_path}", f"-I{tmp_path / 'made' / 'src'}"]
    command = ["arm-none-eabi-g++", *flags, *places, "-include", "Arduino.h", "-x", "c++", "-c", str(sketch)]
    done = subprocess.run([*command, "-o", str(tmp_path / "sketch.o")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
