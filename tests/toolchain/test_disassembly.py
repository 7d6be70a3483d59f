"""The stack of functions, from disassembly as binutils prints it."""

from __future__ import annotations

import pytest

from mccompile.toolchain.disassembly import Arm, RiscV, frame_of, functions
from mccompile.toolchain.stack import Bound, CallGraph, Frame


def arm(*lines: str) -> Frame:
    return frames(Arm(), *lines)["f"]


def frames(machine: Arm | RiscV, *lines: str) -> dict[str, Frame]:
    """Of a function f, one instruction of two bytes after the other from address 0x100."""
    numbered = [line if line.endswith(">:") else f" {0x100 + 2 * n:x}:\t{line}" for n, line in enumerate(lines)]
    return {name: frame_of(code, machine) for name, code in functions(["00000100 <f>:", *numbered])}


@pytest.mark.parametrize(
    ("instruction", "taken"),
    [
        ("push\t{r4, r5, lr}", 12),
        ("push\t{r4-r11, lr}", 36),
        ("stmdb\tsp!, {r4, r5, r6, r7, r8, r9, sl, fp, lr}", 36),
        ("str.w\tlr, [sp, #-4]!", 4),
        ("strd\tr4, r5, [sp, #-16]!", 16),
        ("vpush\t{d8-d9}", 16),
        ("sub\tsp, #28", 28),
        ("sub.w\tsp, sp, #1024\t@ 0x400", 1024),
        ("subw\tsp, sp, #1028", 1028),
        ("str\tr0, [sp, #4]", 0),
        ("ldmia.w\tsp, {r1, r2, ip}", 0),
        ("cmp\tsp, r3", 0),
        ("ldc2\t15, cr0, [sp], #16", 0),  # vldrh.u32 q0, [r5], #8, as objdump reads it
        ("mov\tr7, sp", 0),
    ],
)
def test_what_instructions_of_arm_take(instruction: str, taken: int) -> None:
    assert arm(instruction, "bx\tlr") == Frame(taken, {})


@pytest.mark.parametrize("instruction", ["sub\tsp, r3", "mov\tsp, r7", "blx\tr3", "bx\tr3"])
def test_what_cannot_be_followed_has_no_bound(instruction: str) -> None:
    assert arm(instruction, "bx\tlr").deepest is None


def test_a_depth_that_grows_in_a_loop_has_no_bound() -> None:
    assert arm("push\t{r4}", "bne.n\t100 <f>", "bx\tlr").deepest is None


def test_a_call_counts_where_it_stands() -> None:
    deep = arm("push\t{r4, lr}", "bl\t200 <g>", "sub\tsp, #100", "bl\t300 <h>", "add\tsp, #100", "pop\t{r4, pc}")
    assert deep == Frame(108, {"g": 8, "h": 108})


def test_a_conditional_return_goes_on() -> None:
    assert arm("push\t{r4}", "popne\t{r4}", "bxne\tlr", "sub\tsp, #8", "b.n\t200 <g>").calls == {"g": 12}


def test_jumps_by_a_table_are_followed_from_the_deepest_place() -> None:
    table = arm("push\t{r4, lr}", "tbb\t[pc, r0]", ".short\t0x0402", "bl\t200 <g>", "pop\t{r4, pc}")
    assert table.calls == {"g": 8}


def test_a_far_jump_within_a_function_is_no_call() -> None:
    assert arm("push\t{r4, lr}", "nop", "bl\t102 <f+0x2>", "pop\t{r4, pc}") == Frame(8, {})


def test_recursion_is_a_call_of_oneself() -> None:
    graph = CallGraph(frames(Arm(), "push\t{lr}", "bl\t100 <f>", "pop\t{pc}"))
    assert graph.bound("f") == Bound(None, ())


def test_riscv_with_saving_by_a_library_function() -> None:
    code = ("jal\tt0,400 <__riscv_save_4>", "addi\tsp,sp,-48", "jalr\t-12(ra) # 200 <g>", "addi\tsp,sp,48")
    assert frames(RiscV(4), *code, "j\t500 <__riscv_restore_4>")["f"] == Frame(80, {"g": 80, "__riscv_restore_4": 32})
    assert frames(RiscV(8), *code, "j\t500 <__riscv_restore_4>")["f"].deepest == 96


def test_a_switch_of_riscv_is_no_call_by_pointer() -> None:
    assert frames(RiscV(4), "add\tsp,sp,-32", "jr\ta5", "jal\t200 <g>", "ret")["f"] == Frame(32, {"g": 32})
    assert frames(RiscV(4), "jr\ta5")["f"].deepest is None


def test_functions_end_where_the_next_one_begins() -> None:
    found = frames(Arm(), "push\t{lr}", "pop\t{pc}", "00000200 <g>:", "bx\tlr")
    assert found == {"f": Frame(4, {}), "g": Frame(0, {})}
