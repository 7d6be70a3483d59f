"""Functions of the run-time whose loops end by data, but take a turn for each bit of a result at most.

The first word on the stack of __udivmoddi4 says where it stores a remainder of 8 bytes; they write nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..disassembly import Instruction
from .blocks import Code
from .paths import Loop, loops_of

TURNS = {
    "__udivmoddi4": 64,
    "__aeabi_fdiv": 27,  # of soft floats: 24 bits, and those it rounds by
    "__divsi3": 5,  # of Cortex-M0: 6 bits each time, or 8
    "__udivsi3": 3,  # 8 bits, of the highest 24
    "__aeabi_ddiv": 13,  # four bits of 20 and of 32 each time
    "__aeabi_dmul": 52,  # subnormal factors are shifted bit by bit, in a part that divisions jump to
    "__aeabi_fmul": 23,  # on cores whose library has it in assembly: subnormal factors are shifted bit by bit
    "__ieee754_sqrtf": 25,  # 24 bits, and one it rounds by; subnormal numbers are shifted bit by bit
    "__ieee754_fmodf": 277,  # exponents are from -149 to 127
}
FOLLOWED = ("__divsi3", "__udivsi3")  # where both operands are known, so that the result is
STORING = ("__udivmoddi4",)
OWN = ("__errno",)  # whose result points to what no program has

_PLAIN = re.compile(r"(cmp|sub|orr|adc|add|lsl|lsr|mov|tst|teq|it|b(?!l|x))")  # they write their first operand alone
_RIGHT = re.compile(r"(\w+), \1, (?:lsr )?#(\d+)$")
_LEFT = re.compile(r"(\w+), (?:\1, )?#1$")
_CONSTANT = re.compile(r"(\w+), #(\d+)")


def has_turns(code: Code, entry: int) -> bool:
    """Whether a function is named above and has loops."""
    return code.function(entry) in TURNS and any(loops_of(code.ways(entry)).values())


def turns(code: Code, loop: Loop) -> int:
    """How often a loop of such a function goes round at most."""
    body = [each for block in sorted(loop) for each in _instructions(code, block)]
    function = code.function(min(loop))
    entry = code.starts[min(loop)].start
    before = [at for at in code.ways(entry) if at not in loop and loop.intersection(code.block(at).ways)]
    starts = [_instructions(code, block) for block in before] + [[]] * (entry in loop)
    rest = [each for block in code.ways(entry) if block not in loop for each in _instructions(code, block)]
    found = [_to_the_right(body, starts), _to_a_bit(body), _back(body, rest) if function in FOLLOWED else 0]
    return min([TURNS[function], *(each for each in found if each)])


def _to_the_right(body: Sequence[Instruction], starts: Sequence[Sequence[Instruction]]) -> int:
    """The most turns of a loop that goes on while a number is not 0 which it shifts to the right; 0: it is none."""
    if len(body) < 2 or not body[-1].name.startswith("bne") or not _is_shift(body[-2].name):
        return 0
    found = _RIGHT.match(body[-2].operands)
    if found is None or int(found[2]) == 0:
        return 0
    others = [*body[:-2], body[-1]]
    if not all(_PLAIN.match(each.name) for each in others) or any(_writes(each, found[1]) for each in others):
        return 0
    return -(-max(_bits(start, found[1]) for start in starts) // int(found[2]))


def _to_a_bit(body: Sequence[Instruction]) -> int:
    """The most turns of a loop that shifts a number, which is not 0, to the left until a bit is set; 0: it is none."""
    tests = [m for each in body if each.name.startswith("tst") and (m := _CONSTANT.match(each.operands))]
    shifts = [m[1] for each in body if each.name.startswith("lsl") and (m := _LEFT.match(each.operands))]
    if len(tests) != 1 or shifts != [tests[0][1]] or not body[-1].name.startswith("beq"):
        return 0
    bit = int(tests[0][2])
    written = [each for each in body if _writes(each, shifts[0])]
    plain = all(_PLAIN.match(each.name) for each in body) and len(written) == 1
    return bit.bit_length() - 1 if plain and bit & (bit - 1) == 0 else 0


def _back(body: Sequence[Instruction], rest: Sequence[Instruction]) -> int:
    """The most turns of a loop of a division, each but the first of which shifts the divisor back to the right by as
    many bits as instructions outside of it have shifted it to the left; 0: it is none."""
    shifts = [m for each in body if each.name == "lsrs" and (m := _RIGHT.match(each.operands))]
    if len(shifts) != 1:
        return 0
    to_the_left = f"{shifts[0][1]}, {shifts[0][1]}, #{shifts[0][2]}"
    return 1 + sum(each.name == "lsls" and each.operands == to_the_left for each in rest)


def _bits(code: Sequence[Instruction], register: str) -> int:
    """Of the constant that a register has behind these instructions."""
    for each in reversed(code):
        found = _CONSTANT.match(each.operands)
        if found and found[1] == register and each.name.partition(".")[0] in ("mov", "movs"):
            return int(found[2]).bit_length()
        if not _PLAIN.match(each.name) or _writes(each, register):
            break
    return 32


def _writes(each: Instruction, register: str) -> bool:
    return each.operands.split(",")[0] == register and not each.name.startswith(("cmp", "tst", "teq"))


def _is_shift(name: str) -> bool:
    """Whose flags a branch behind it sees: if it is skipped, bne does not branch either."""
    return name.partition(".")[0] in ("lsrs", "movs", "movsne", "lsrsne")


def _instructions(code: Code, block: int) -> list[Instruction]:
    found, last = [block], code.block(block).last
    while found[-1] != last:
        found.append(code.follows[found[-1]])
    return [code.at[at] for at in found]
