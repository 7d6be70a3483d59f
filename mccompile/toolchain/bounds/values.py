"""What is known of a register or a word of memory: a number, an address in an object, or nothing (None).

A number is an int of 32 bits. An address is an offset of 32 bits in an object whose own address nobody knows: the
number of the object stands above bit 72, and the bits between are zero, so that sums and differences carry into them
and `KEEP` clears them. Invariant: an operation whose result is not certain gives None.
"""

from __future__ import annotations

from collections.abc import Callable

Value = int | None
Flags = tuple[str, Value, Value] | None  # of a difference ("sub"), a sum ("add") or a result ("is")
OBJECT = 72
WORD = 0xFFFFFFFF
KEEP = ~(((1 << 40) - 1) << 32)


def add(a: Value, b: Value) -> Value:
    if a is None or b is None or (a >> 32 and b >> 32):
        return None
    return (a + b) & KEEP


def sub(a: Value, b: Value) -> Value:
    if a is None or b is None:
        return None
    if b >> 32:
        return (a - b) & WORD if a >> OBJECT == b >> OBJECT else None
    return (a - b + (1 << 64)) & KEEP


def meet(a: Value, b: Value) -> Value:
    """Of two paths."""
    return a if a == b else None


def of_numbers(operation: Callable[[int, int], int]) -> Callable[[Value, Value], Value]:
    def known(a: Value, b: Value) -> Value:
        if a is None or b is None or a >> 32 or b >> 32:
            return None
        return operation(a, b) & WORD

    return known


def signed(a: int) -> int:
    a &= WORD
    return a - (1 << 32) if a >> 31 else a


def _divided(a: int, b: int) -> int:
    return a // b if b else 0


def _divided_signed(a: int, b: int) -> int:
    a, b = signed(a), signed(b)
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rotated(a: int, b: int) -> int:
    b &= 31
    return a >> b | a << (32 - b)


def _and(a: Value, b: Value) -> Value:
    """Zeros are known whatever the other bits are; the lowest bits of addresses are not."""
    if 0 in (a, b):
        return 0
    return both(a, b)


both = of_numbers(lambda a, b: a & b)
BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "add": add,
    "sub": sub,
    "rsb": lambda a, b: sub(b, a),
    "and": _and,
    "bic": of_numbers(lambda a, b: a & ~b),
    "orr": of_numbers(lambda a, b: a | b),
    "orn": of_numbers(lambda a, b: a | ~b),
    "eor": of_numbers(lambda a, b: a ^ b),
    "mul": of_numbers(lambda a, b: a * b),
    "udiv": of_numbers(_divided),
    "sdiv": of_numbers(_divided_signed),
    "lsl": of_numbers(lambda a, b: a << (b & 255) if b & 255 < 32 else 0),
    "lsr": of_numbers(lambda a, b: a >> (b & 255)),
    "asr": of_numbers(lambda a, b: signed(a) >> min(b & 255, 31)),
    "ror": of_numbers(_rotated),
}
UNARY: dict[str, Callable[[int], int]] = {
    "mvn": lambda a: ~a,
    "neg": lambda a: -a,
    "uxtb": lambda a: a & 0xFF,
    "uxth": lambda a: a & 0xFFFF,
    "sxtb": lambda a: (a & 0xFF ^ 0x80) - 0x80,
    "sxth": lambda a: (a & 0xFFFF ^ 0x8000) - 0x8000,
    "clz": lambda a: 32 - a.bit_length(),
}


def unary(name: str, a: Value) -> Value:
    return None if a is None or a >> 32 else UNARY[name](a) & WORD


def field(a: Value, low: int, width: int, with_sign: bool) -> Value:
    if a is None or a >> 32:
        return None
    found = a >> low & ((1 << width) - 1)
    return (found - (1 << width)) & WORD if with_sign and found >> (width - 1) else found


def product(a: Value, b: Value, with_sign: bool) -> tuple[Value, Value]:
    """The lower and the upper word."""
    if a is None or b is None or a >> 32 or b >> 32:
        return None, None
    found = signed(a) * signed(b) if with_sign else a * b
    return found & WORD, found >> 32 & WORD


def holds(condition: str, flags: Flags) -> bool | None:
    """Whether a condition of Arm does; None: that is not known."""
    if flags is None:
        return None
    kind, a, b = flags
    if a is None or (b is None and kind != "is"):
        return None
    negated = condition in OPPOSITE
    found = _holds(OPPOSITE.get(condition, condition), kind, a, b or 0)
    return None if found is None else found != negated


OPPOSITE = {"ne": "eq", "cc": "cs", "lo": "cs", "pl": "mi", "vc": "vs", "ls": "hi", "lt": "ge", "le": "gt"}


def _holds(condition: str, kind: str, a: int, b: int) -> bool | None:
    """Of one of eq, cs, hs, mi, vs, hi, ge and gt."""
    if a >> 32 or b >> 32:
        return _of_addresses(condition, a, b) if kind == "sub" and a >> OBJECT == b >> OBJECT else None
    if kind == "is":
        return {"eq": a == 0, "mi": bool(a >> 31)}.get(condition)
    exact = signed(a) - signed(b) if kind == "sub" else signed(a) + signed(b)
    carry = a >= b if kind == "sub" else a + b > WORD
    zero = exact & WORD == 0
    known = {"eq": zero, "cs": carry, "hs": carry, "hi": carry and not zero, "ge": exact >= 0, "gt": exact > 0}
    known |= {"mi": bool(exact & 1 << 31), "vs": not -(1 << 31) <= exact < 1 << 31}
    return known[condition]


def _of_addresses(condition: str, a: int, b: int) -> bool | None:
    """Of two in one object, which does not wrap around the end of memory."""
    a, b = signed(a), signed(b)
    return {"eq": a == b, "cs": a >= b, "hs": a >= b, "hi": a > b, "mi": a < b}.get(condition)
