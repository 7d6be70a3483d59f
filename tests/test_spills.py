"""The reader of machine code: which loops are hot, and what of them lies on the stack."""

from __future__ import annotations

from benchmarks.spills import HOT, Loop, hot

FMA = "vfmadd231ps %zmm5,%zmm30,%zmm1"


def listing(*bodies: list[str]) -> str:
    """As objdump writes it, each instruction one byte long; `jne N` jumps to instruction N."""
    lines = ["", "kernels.o:     file format elf64-x86-64", ""]
    for number, body in enumerate(bodies):
        begin = 0x100 * (number + 1)
        lines.append(f"{begin:016x} <f{number}>:")
        for place, text in enumerate(body):
            words = text.split()
            if words[0].startswith("j"):
                text = f"{words[0]} {begin + int(words[1]):x} <f{number}+{int(words[1]):#x}>"
            lines.append(f"{begin + place:8x}:\t{text}")
        lines.append("")
    return "\n".join(lines)


def test_a_loop_with_a_sum_on_the_stack() -> None:
    body = [
        "sub $0x48,%rsp",
        *[FMA] * HOT,
        "vfmadd213ps 0x8(%rsp),%zmm2,%zmm30",
        "vmovaps %zmm30,0x8(%rsp)",
        "jne 1",
        "ret",
    ]
    assert hot(listing(body)) == [Loop("f0", HOT + 3, HOT + 1, 2)]


def test_other_words_on_the_stack_do_not_count() -> None:
    body = ["mov 0x8(%rsp),%rax", "vmovups 0x8(%rbp),%ymm1", *[FMA] * HOT, "jne 0"]
    assert [loop.stack for loop in hot(listing(body))] == [0]
    assert [loop.stack for loop in hot(listing(["mov %rsp,%rbp", *body]))] == [1]


def test_only_innermost_loops_with_products_are_hot() -> None:
    inner = [*[FMA] * HOT, "jne 2"]
    assert [loop.length for loop in hot(listing(["nop", "nop", *inner, "jne 0"]))] == [HOT + 1]
    assert hot(listing([*[FMA] * (HOT - 1), "jne 0"])) == []
    assert hot(listing([*[FMA] * HOT, "jmp 9"])) == []  # forwards


def test_functions_are_apart() -> None:
    body = [*[FMA] * HOT, "jne 0"]
    assert [loop.function for loop in hot(listing(body, body))] == ["f0", "f1"]
