"""What is known of a register or a word of memory: a number, an address in an object, or nothing (None).

A number is an int of 32 bits. An address is an offset of 32 bits in an object whose own address nobody knows, whose
number stands from bit 72 on. Where the offset is not known, `SOMEWHERE` is set: a pointer plus anything but a pointer
stays in its object. Above these there are, for each loop of which one turn is followed for all, 32 bits that say by how
much the value grows in each turn (`loops.py`). The bits between are zero, so that sums, differences and products carry
into them and `KEEP` clears them. Invariant: an operation whose result is not certain gives None, or somewhere in an
object.
"""

from __future__ import annotations

from collections.abc import Callable

Value = int | None
Flags = tuple[str, Value, Value] | None  # of a difference ("sub"), a sum ("add") or a result ("is")
WORD = 0xFFFFFFFF
SOMEWHERE = 1 << 71
OBJECT, OBJECTS = 72, 0xFFFFFF << 72
TURNS = 128  # where the growth of a value begins
LEVELS = 12
KEEP = WORD | SOMEWHERE | OBJECTS | sum(WORD << TURNS + 64 * level for level in range(LEVELS))
_BORROW = 1 << 32 | sum(1 << TURNS + 64 * level + 32 for level in range(LEVELS))
STACK, MODEL, RETURN, SAVED = (number << OBJECT for number in (1, 2, 3, 4))  # from SAVED on what callers keep
LIBRARY = 28 << OBJECT  # what a library has of its own
LOADED = 32  # objects whose addresses lie in the model's struct; from ALIGNED on those that lie at multiples of 8
ALIGNED = 1 << 16


def of(a: int) -> int:
    """The object of an address; 0: it is a number."""
    return a & OBJECTS


def add(a: Value, b: Value) -> Value:
    if a is None or b is None:
        return somewhere(b if a is None else a)
    return None if a & OBJECTS and b & OBJECTS else (a + b) & KEEP


def sub(a: Value, b: Value) -> Value:
    if a is None or b is None:
        return None
    if b & OBJECTS and (a & OBJECTS != b & OBJECTS or (a | b) & SOMEWHERE):
        return None
    return (a - b + _BORROW) & KEEP


def somewhere(a: Value) -> Value:
    """In the object of an address."""
    return a & OBJECTS | SOMEWHERE if a is not None and a & OBJECTS else None


def meet(a: Value, b: Value) -> Value:
    """Of two paths."""
    if a == b:
        return a
    return somewhere(a) if a is not None and b is not None and a & OBJECTS == b & OBJECTS else None


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
    """Zeros are known whatever the other bits are; so are low bits that are the same in all turns of loops."""
    if 0 in (a, b):
        return 0
    if a is not None and b is not None and a >> 32 and not b >> 32 and not a & SOMEWHERE:
        low = (1 << b.bit_length()) - 1
        same = all(a >> TURNS + 64 * level & low == 0 for level in range(LEVELS))
        return a & b if same and (not a & OBJECTS or low < _alignment(a)) else None
    return both(a, b)


def _alignment(a: int) -> int:
    """Of the object of an address."""
    return 4 if a & OBJECTS in (STACK, MODEL) else 8 if a & OBJECTS >= ALIGNED << OBJECT else 1


def _times(a: Value, b: Value) -> Value:
    """Also of what grows."""
    if a is None or b is None or (a >> 32 and b >> 32) or (a | b) & OBJECTS:
        return None
    return a * b & KEEP


def _shifted(a: Value, b: Value) -> Value:
    if b is None or b >> 32:
        return None
    by = 1 << (b & 255) & WORD
    if a is not None and a & OBJECTS and not a & SOMEWHERE and _alignment(a) * by & WORD == 0:
        a &= ~OBJECTS  # its bits are not those of the object
    return _times(a, by)


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
    "mul": _times,
    "udiv": of_numbers(_divided),
    "sdiv": of_numbers(_divided_signed),
    "lsl": _shifted,
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


def adc(a: Value, b: Value, carry: bool | None) -> Value:
    return None if carry is None else add(add(a, b), int(carry))


def sbc(a: Value, b: Value, carry: bool | None) -> Value:
    return None if carry is None else sub(sub(a, b), int(not carry))


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
        alike = kind == "sub" and a >> 32 == b >> 32 and not a & SOMEWHERE
        return _alike(condition, a, b) if alike else None
    if kind == "is":
        return {"eq": a == 0, "mi": bool(a >> 31)}.get(condition)
    exact = signed(a) - signed(b) if kind == "sub" else signed(a) + signed(b)
    carry = a >= b if kind == "sub" else a + b > WORD
    zero = exact & WORD == 0
    known = {"eq": zero, "cs": carry, "hs": carry, "hi": carry and not zero, "ge": exact >= 0, "gt": exact > 0}
    known |= {"mi": bool(exact & 1 << 31), "vs": not -(1 << 31) <= exact < 1 << 31}
    return known[condition]


def _alike(condition: str, a: int, b: int) -> bool | None:
    """Of two values that are apart by a number: addresses in one object, which does not wrap around."""
    if condition == "eq" or not a & OBJECTS:
        return a == b if condition == "eq" else None
    a, b = signed(a), signed(b)
    return {"cs": a >= b, "hs": a >= b, "hi": a > b, "mi": a < b}.get(condition)
