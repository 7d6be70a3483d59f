"""The dearest call of each function of floats in software beside its bound, for operands of every kind."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mccompile.targets.api import load
from mccompile.toolchain.bounds.blocks import Code
from mccompile.toolchain.bounds.memory import Image
from mccompile.toolchain.bounds.paths import loops_of
from mccompile.toolchain.bounds.program import disassembled
from mccompile.toolchain.bounds.running import Run
from mccompile.toolchain.disassembly import functions
from mccompile.toolchain.emulate import _FOLDER as BOARD
from mccompile.toolchain.emulate import _Linking, run_command
from mccompile.toolchain.image import address

CALLS = 3000
NAMES = ("fadd", "fsub", "fmul", "fdiv", "fcmplt", "f2iz", "i2f")
INTEGERS = ("idiv", "uidiv", "idivmod", "uidivmod")
DOUBLES = ("dadd", "dsub", "dmul", "ddiv", "dcmplt", "d2iz", "d2f")
CODE = """
#include <stdint.h>
#include "board.h"
typedef uint32_t (*called)(uint32_t, uint32_t, uint32_t, uint32_t);
DECLARED
static uint32_t nothing(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { (void)b; (void)c; (void)d; return a; }
static const called all[] = { nothing, NAMED };
static uint32_t seed = 1;
static uint32_t drawn(void) { seed ^= seed << 13; seed ^= seed >> 17; seed ^= seed << 5; return seed; }
static uint32_t number(void)
{
    static const uint8_t exponents[] = {
        0, 0, 1, 2, 23, 25, 64, 96, 102, 103, 104, 105, 120, 125, 126, 127, 128, 129, 130, 150, 151, 152, 157, 158, 159,
        200, 230, 253, 254, 255
    };
    static const uint32_t mantissas[] = {
        0, 1, 2, 0x3fffff, 0x400000, 0x400001, 0x7fffff, 0x7ffffe, 0x555555, 0x2aaaaa
    };
    const uint32_t mantissa = drawn() % 4 ? mantissas[drawn() % 10] : drawn() & 0x7fffff;
    return (uint32_t)exponents[drawn() % 30] << 23 | mantissa | (drawn() & 0x80000000u);
}
static uint32_t high(void) /* of a double */
{
    static const uint16_t exponents[] = {
        0, 0, 0, 1, 2, 52, 54, 512, 875, 890, 970, 1000, 1020, 1022, 1023, 1024, 1053, 1055, 1074, 1076, 1500, 2045,
        2046, 2047
    };
    const uint32_t mantissa = drawn() % 4 ? 0 : drawn() & 0xfffff;
    return (uint32_t)exponents[drawn() % 24] << 20 | mantissa | (drawn() & 0x80000000u);
}
static uint32_t low(void)
{
    static const uint32_t some[] = { 0, 1, 2, 0xffffffff, 0x55555555, 0x80000000u };
    return drawn() % 4 ? some[drawn() % 6] : drawn();
}
__attribute__((noinline)) static void one(called f, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    board_count_begin();
    (void)f(a, b, c, d);
    board_count_end();
}
int main(void)
{
    unsigned k, i;
    for (k = 0; k < sizeof all / sizeof *all; k++)
        for (i = 0; i < CALLS; i++) {
#if DOUBLES
            const uint32_t a = low(), b = high();
            const uint32_t c = i % 4 ? low() : a, d = i % 4 ? high() : b ^ (drawn() & 0x80000007u);
            if (i % 8 == 1) /* the smallest numbers, whose quotients do not end */
                one(all[k], 1 + a % 7, b & 0x80000000u, 1 + c % 7, d & 0x80000000u);
            else
                one(all[k], a, b, c, d);
#elif INTEGERS
            one(all[k], drawn() >> drawn() % 8, (drawn() | 1) >> drawn() % 32, 0, 0);
#else
            const uint32_t a = number(), b = number();
            one(all[k], a, i % 4 ? b : a ^ (drawn() & 0x80000007u), 0, 0);
#endif
        }
    return 0;
}
"""


def built(core: str, names: Sequence[str], scratch: Path) -> tuple[Path, list[str]]:
    """The program, and the words that run it."""
    target = load(core)
    command = run_command(target)
    source = scratch / "calls.c"
    declared = "\n".join(f"uint32_t __aeabi_{name}(uint32_t, uint32_t, uint32_t, uint32_t);" for name in names)
    named = ", ".join(f"__aeabi_{name}" for name in names)
    source.write_text(CODE.replace("DECLARED", declared).replace("NAMED", named), encoding="utf-8")
    objects = []
    for each in (source, BOARD / "marks.c", BOARD / "bare.c"):
        objects.append(scratch / f"{each.stem}.o")
        options = [
            *target.cflags,
            f"-DCALLS={CALLS}",
            f"-DDOUBLES={names is DOUBLES:d}",
            f"-DINTEGERS={names is INTEGERS:d}",
            f"-I{BOARD}",
            "-c",
            str(each),
            "-o",
            str(objects[-1]),
        ]
        subprocess.run([target.compiler, *options], check=True, stderr=subprocess.DEVNULL)
    linking = _Linking([target.compiler], target.cflags, objects, "none.o", scratch)
    program, used = linking.bare(command[command.index("-M") + 1], target)
    command[command.index("-M") + 1] = used
    return program, command


def counts(program: Path, command: list[str], scratch: Path) -> list[int]:
    """Instructions of each call, and of what is around it."""
    plugin, out = scratch / "count.so", scratch / "counts.txt"
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", str(BOARD / "count.c"), "-o", str(plugin)], check=True)
    begin, end = (address(program, f"board_count_{name}") for name in ("begin", "end"))
    chosen = f"{plugin},begin={begin:#x},end={end:#x},out={out}"
    subprocess.run([command[0], "-plugin", chosen, *command[1:], str(program)], check=True, timeout=120)
    return [int(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("core", "names"),
    [
        ("cortex-m0", INTEGERS),
        ("cortex-m0", NAMES),
        ("cortex-m0", DOUBLES),
        ("cortex-m3", NAMES),
        ("cortex-m3", DOUBLES),
        ("cortex-m4", DOUBLES),
    ],
)
def test_no_call_takes_more_than_its_bound_nor_all_much_less(core: str, names: Sequence[str], tmp_path: Path) -> None:
    program, command = built(core, names, tmp_path)
    taken = np.array(counts(program, command, tmp_path)).reshape(len(names) + 1, CALLS)
    around = taken[0].max() - 1  # of a function that returns at once
    code = Code([*functions(disassembled(program, load(core).compiler).splitlines())], Image(program))
    for name, dearest in zip(names, taken[1:].max(axis=1) - around, strict=True):
        state = Run(code, 0).of(address(program, f"__aeabi_{name}"), {})
        far = 2 if core == "cortex-m0" and name == "ddiv" else 1.25  # it divides integers, none of which takes the most
        assert dearest <= state.cost <= far * dearest, (name, dearest, state.cost)


def test_loops_of_doubles_that_are_known_are_those_of_assembly(tmp_path: Path) -> None:
    """The library of Cortex-M0 has them in C, without loops."""
    program, _ = built("cortex-m0", DOUBLES, tmp_path)
    code = Code([*functions(disassembled(program, load("cortex-m0").compiler).splitlines())], Image(program))
    for name in ("dmul", "ddiv"):
        assert not any(loops_of(code.ways(address(program, f"__aeabi_{name}"))).values())
