"""The module for MicroPython, built by its own makefile with stand-ins for the headers of the interpreter, and called
as the interpreter calls modules."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.base.errors import UnsupportedModel
from mccompile.base.streaming import Stream
from mccompile.driver import Options, arrange, compile_graph
from mccompile.emit.folder import write_folder
from mccompile.frontend.load import load_proto
from mccompile.passes.api import ALL
from tests import small_models
from tests.emit.wrappers.test_rust import FREE
from tests.passes.memory.test_state import STATES
from tests.passes.stream.pushed import model as stream_model
from tests.small_models import PLAIN, compiled

FLAGS = "-std=gnu99 -Wall -Wextra -Wno-unused-parameter -Wpointer-arith -Wdouble-promotion -Wfloat-conversion -Werror"
RUNTIME = """
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct { int kind; long number; size_t count; void *items; bool may_write; } object;
typedef const object *mp_obj_t;
typedef struct { const void *type; } mp_obj_base_t;
typedef struct { int least; const void *call; } function;
typedef struct { const char *name; const void *value; } mp_rom_map_elem_t;
typedef struct { const mp_rom_map_elem_t *table; size_t count; } mp_obj_dict_t;
typedef struct { mp_obj_base_t base; mp_obj_dict_t *globals; } mp_obj_module_t;
static const int mp_type_module = 0, mp_type_ValueError = 0;
static const object none_object;
#define mp_const_none (&none_object)
#define MP_ROM_QSTR(word) #word
#define MP_ROM_PTR(pointer) (pointer)
#define MP_ERROR_TEXT(text) text
#define MP_DEFINE_CONST_FUN_OBJ_0(name, f) const function name = {0, (const void *)f}
#define MP_DEFINE_CONST_FUN_OBJ_1(name, f) const function name = {1, (const void *)f}
#define MP_DEFINE_CONST_FUN_OBJ_VAR_BETWEEN(name, least, most, f) const function name = {-(least), (const void *)f}
#define MP_DEFINE_CONST_DICT(name, rows) const mp_obj_dict_t name = {rows, sizeof rows / sizeof rows[0]}
#define MP_REGISTER_MODULE(word, module) const mp_obj_module_t *const registered = &module
#define mp_raise_msg_varg(type, text, what) ((void)(type), printf("ValueError: " text, what), exit(7))
static inline mp_obj_t made(object o) { object *p = malloc(sizeof o); *p = o; return p; }
static inline mp_obj_t mp_obj_new_int_from_uint(size_t n) { return made((object){1, (long)n, 0, NULL, false}); }
static inline mp_obj_t mp_obj_new_bool(bool b) { return made((object){2, b, 0, NULL, false}); }
static inline mp_obj_t mp_obj_new_tuple(size_t n, const mp_obj_t *o) {
  return made((object){3, o[0]->number, n, NULL, false});
}
static inline long mp_obj_get_int(mp_obj_t o) { return o->number; }
static inline mp_obj_t mp_obj_new_memoryview(int code, size_t n, void *p) {
  return made((object){code & 127, 0, n, p, (code & 128) != 0});
}
"""
DRIVER = """
#include <string.h>
#include "py/runtime.h"
extern const mp_obj_module_t *const registered;
static const function *named(const char *name) {
  const mp_obj_dict_t *all = registered->globals;
  for (size_t i = 0; i < all->count; i++) if (strcmp(all->table[i].name, name) == 0) return all->table[i].value;
  printf("no %s", name);
  exit(8);
}
static mp_obj_t call(const char *name) { return ((mp_obj_t (*)(void))named(name)->call)(); }
static mp_obj_t call1(const char *name, long n) {
  const function *f = named(name);
  mp_obj_t o = mp_obj_new_int_from_uint((size_t)n);
  if (f->least < 0) return ((mp_obj_t (*)(size_t, const mp_obj_t *))f->call)(1, &o);
  return ((mp_obj_t (*)(mp_obj_t))f->call)(o);
}
int main(void) {
  (void)call1;
  BODY
  return 0;
}
"""
MAKEFILE = """
USERMOD_DIR := made
include made/micropython.mk
user: driver.c $(SRC_USERMOD_C) $(SRC_USERMOD_LIB_C)
	gcc -g -fsanitize=address,undefined PORT_FLAGS $(CFLAGS_USERMOD) -I. $^ -lm -o $@
"""
CMAKE = """
cmake_minimum_required(VERSION 3.12)
project(port C)
add_library(usermod INTERFACE)
include(${CMAKE_CURRENT_SOURCE_DIR}/made/micropython.cmake)
add_executable(user driver.c)
target_include_directories(user PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(user usermod m)
"""
CONV = """
  mp_obj_t x = call("MP_QSTR_input_x");
  if (x->kind != 'f' || !x->may_write) return 1;
  for (size_t i = 0; i < x->count; i++) ((float *)x->items)[i] = (float)(i % 7) / 4.0f - 0.5f;
  if (call("MP_QSTR_run")->kind != 0) return 2;
  mp_obj_t y = call("MP_QSTR_output_y");
  if (y->may_write) return 3;
  for (size_t i = 0; i < y->count; i++) printf("%.9g ", (double)((float *)y->items)[i]);
"""
SIZES = """
  call1("MP_QSTR_resize", 3);
  call("MP_QSTR_run");
  printf("%d ", (int)call("MP_QSTR_output_y")->count);
  printf("%d ", (int)call("MP_QSTR_output_y_shape")->count);
  call1("MP_QSTR_resize", 10);
"""
SLICES = """
  call("MP_QSTR_begin");
  while (!call1("MP_QSTR_run_steps", 1)->number) {}
  call("MP_QSTR_reset");
  printf("done");
"""
REFUSED = [
    ("text", {}, "strings are pointers"),
    ("conv", {"external": (ALL,)}, "--io external"),
    ("conv", {"blob": "external"}, "--blob"),
]


def folder_of(made: ModelProto, folder: Path, options: Options = PLAIN, **dims: tuple[int, int]) -> Path:
    options = replace(options, wrappers=("micropython",))
    package = compile_graph(load_proto(made, dims=dims), options, "net")
    write_folder(folder / "made", arrange(package.files, "micropython", "net", options))
    return folder


def write_driver(folder: Path, body: str) -> None:
    (folder / "py").mkdir()
    (folder / "py" / "runtime.h").write_text(f"#ifndef R\n#define R\n{RUNTIME}\n#endif\n")
    (folder / "py" / "objarray.h").write_text("#define MP_OBJ_ARRAY_TYPECODE_FLAG_RW 128\n")
    (folder / "driver.c").write_text(DRIVER.replace("BODY", body))


def said_by(folder: Path, body: str, code: int = 0) -> str:
    write_driver(folder, body)
    (folder / "Makefile").write_text(MAKEFILE.replace("PORT_FLAGS", FLAGS))
    built = subprocess.run(["make", "-s", "-C", folder], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    environment = {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([folder / "user"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_results_are_those_of_the_reference(tmp_path: Path) -> None:
    made = small_models.conv()
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    x = (np.arange(np.prod(shape)) % 7 / 4 - 0.5).astype(np.float32).reshape(shape)
    got = np.array(said_by(folder_of(made, tmp_path), CONV).split(), np.float32)
    np.testing.assert_allclose(got, small_models.reference(made, {"x": x})["y"].ravel(), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake is not installed")
def test_its_file_for_cmake_brings_all_sources(tmp_path: Path) -> None:
    folder = folder_of(small_models.conv(), tmp_path)
    write_driver(folder, 'call("MP_QSTR_run");')
    (folder / "CMakeLists.txt").write_text(CMAKE)
    for command in (["-S", folder, "-B", folder / "build"], ["--build", folder / "build"]):
        subprocess.run(["cmake", *command], capture_output=True, check=True)
    subprocess.run([folder / "build" / "user"], check=True)


def test_a_damaged_blob_is_a_value_error(tmp_path: Path) -> None:
    folder = folder_of(small_models.conv(), tmp_path)
    weights = folder / "made" / "src" / "net_weights.c"
    first, last, rest = weights.read_text().rpartition("0x")
    weights.write_text(f"{first}{last}{'1' if rest[0] != '1' else '2'}{rest[1:]}")
    assert said_by(folder, 'call("MP_QSTR_input_x");', 7).startswith("ValueError: the blob")


def test_sizes_states_and_streams(tmp_path: Path) -> None:
    (tmp_path / "free").mkdir()
    said = said_by(folder_of(FREE, tmp_path / "free", n=(1, 9)), SIZES, 7)
    assert said.startswith("12 2 ValueError: a size is outside")
    made, states = STATES["causal"]
    (tmp_path / "states").mkdir()
    assert said_by(folder_of(made, tmp_path / "states", Options(state=states, slices=True)), SLICES) == "done"
    window = stream_model("(float[1,2,9] x) => (float[1,2,9] y) { y = Relu(x) }")
    (tmp_path / "stream").mkdir()
    streamed = folder_of(window, tmp_path / "stream", Options(stream=Stream({"x": 2})))
    assert said_by(streamed, 'printf("%d", call("MP_QSTR_push")->kind);') == "2"


@pytest.mark.parametrize(("name", "given", "why"), REFUSED)
def test_what_it_cannot_hold_is_refused(name: str, given: dict[str, object], why: str) -> None:
    with pytest.raises(UnsupportedModel, match=why):
        compiled(small_models.ALL[name](), Options(wrappers=("micropython",), **given))  # type: ignore[arg-type]
