"""A module (`--module`) as programs of this package call any model: behind the functions of the model's header.

Invariant: what runs is the module alone, opened anew by every init, so all of its checks are made; it lies among the
program's code, at an address that nothing in it knows.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from mccompile.base.errors import Problem, WrongUse

from .model_report import Report, Tensor
from .tools import require

_TOP = """#include "@.h"
#include "mcc_module_functions.h"

__asm__(".section .text.@_module,\\"ax\\",%progbits\\n"
        ".balign 4096\\n"
        ".globl @_module\\n"
        "@_module:\\n"
        ".incbin \\"PATH_OF_IMAGE\\"\\n"
        ".globl @_module_end\\n"
        "@_module_end:\\n"
        ".balign 8\\n"
        ".text\\n");
extern const uint8_t @_module[] __attribute__((visibility("hidden")));
extern const uint8_t @_module_end[] __attribute__((visibility("hidden")));
extern const uint64_t @_weights[];
extern const size_t @_weights_bytes;
const uint64_t @_weights[1] = {0u};
const size_t @_weights_bytes = sizeof @_weights;
static const mcc_module_functions functions = MCC_MODULE_GIVEN;
static mcc_module module; /* its head and its code: what each call sets is the instance */

static mcc_module of(const void *m)
{
    mcc_module found = module;
    found.model = (void *)(uintptr_t)m;
    return found;
}
"""
_INIT = """mcc_status status = mcc_module_open(&module, @_module, (size_t)(@_module_end - @_module), &functions);
    mcc_module opened;
    (void)weights;
    (void)weights_bytes;
    if (m == NULL) return MCC_ERR_NULL;
    if (status != MCC_OK) return status;
    opened = module;
    return mcc_module_init_at(&opened, m, ARENA, ARENA_bytes);"""


def built(folder: Path, report: Report, compiler: str, scratch: Path, flags: Sequence[str] = ()) -> Path:
    """The module of an output folder, made as its Makefile makes it. `flags` are the compiler's own, the last of which
    say how much to optimize."""
    require(["make"], "--module")
    copy = scratch / "module"
    shutil.copytree(folder, copy)
    options = [f"CC={compiler}", *([f"CFLAGS={' '.join(flags)}"] if flags else [])]
    command = ["make", "-s", "-C", str(copy), *options, report.module]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[:40])
        fix = "leave out --module where the compiler's library cannot be part of one"
        raise WrongUse(Problem(f"the module {report.module} cannot be built", " ".join(command), said, fix))
    return copy / report.module


def loaded(report: Report, image: Path) -> str:
    """C that has the functions of the model's header, and the module in the program."""
    functions = "\n".join(f"\n{declared}\n{{\n    {body}\n}}" for declared, body in _functions(report))
    text = f"{_TOP}{functions}\n".replace("@", report.prefix)
    return text.replace("PATH_OF_IMAGE", str(image))


def _functions(report: Report) -> Iterator[tuple[str, str]]:
    arena = "arena"
    parameters = f"@_model *m, void *{arena}, size_t {arena}_bytes, const void *weights, size_t weights_bytes"
    yield f"mcc_status @_init({parameters})", _INIT.replace("ARENA", arena)

    def asked(name: str, what: str, more: str = "", number: str = "0u", memory: str = "NULL") -> tuple[str, str]:
        body = f"const mcc_module found = of(m);\n    return mcc_module_ask(&found, MCC_MODULE_DO_{what}, "
        return f"mcc_status @_{name}(@_model *m{more})", f"{body}{number}, {memory}, 0u);"

    yield asked("run", "RUN")
    if report.sliced:
        yield asked("begin", "BEGIN")
        yield asked("run_steps", "STEPS", ", uint32_t steps", "steps")
    if report.states or report.warm_up:
        yield asked("reset", "RESET")
        yield asked("load_state", "LOAD", ", const void *from", memory="(void *)(uintptr_t)from")
        declared, body = asked("save_state", "SAVE", ", void *to", memory="to")
        yield declared.replace("@_model *m", "const @_model *m"), body
    if report.warm_up:
        yield asked("push", "PUSH")
    if report.given:
        sizes = ", ".join(report.given)
        parameters = "".join(f", mcc_index {size}" for size in report.given)
        declared, body = asked("resize", "RESIZE", parameters, memory="sizes")
        yield declared, f"ptrdiff_t sizes[] = {{{sizes}}};\n    {body}"
    number = 0
    for way, tensors in (("input", report.inputs), ("output", report.outputs), ("state", report.states)):
        for tensor in tensors:
            yield from _of_tensor(f"{way}_{tensor.symbol}", way, tensor, number)
            number += 1


def _of_tensor(name: str, way: str, tensor: Tensor, number: int) -> Iterator[tuple[str, str]]:
    const = "const " if way == "output" else ""
    found = "const mcc_module found = of(m);\n    "
    if tensor.room:
        given = "const " if way == "input" else ""
        place = f"return mcc_module_place(&found, {number}u, (void *)(uintptr_t)to);"
        yield f"mcc_status @_set_{name}(@_model *m, {given}{tensor.dtype.storage_c} *to)", found + place
    else:
        data = f"return ({const}{tensor.dtype.storage_c} *)mcc_module_data(&found, {number}u);"
        yield f"{const}{tensor.dtype.storage_c} *@_{name}({const}@_model *m)", found + data
    if not tensor.is_static and way != "state":
        shape = f"(void)mcc_module_shape(&found, {number}u, shape);"
        yield f"void @_{name}_shape(const @_model *m, size_t shape[{len(tensor.shape)}])", found + shape
