"""Two operands, element by element."""

from __future__ import annotations

import numpy as np

from ..site import Site, converts

_ARITHMETIC = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}
_EXTREMES = {"MAXIMUM": "Max", "MINIMUM": "Min"}


@converts(*_ARITHMETIC)
def _arithmetic(site: Site) -> None:
    options = site.options(f"{_ARITHMETIC[site.name]}Options")
    made = site.op(_ARITHMETIC[site.name], site.real(0), site.real(1))
    site.give(site.activated(made, options["FusedActivationFunction"]))


@converts(*_EXTREMES)
def _extreme(site: Site) -> None:
    site.give(site.op(_EXTREMES[site.name], site.real(0), site.real(1)))


@converts("SQUARED_DIFFERENCE")
def _squared_difference(site: Site) -> None:
    less = site.op("Sub", site.real(0), site.real(1))
    site.give(site.op("Mul", less, less))


@converts("POW")
def _pow(site: Site) -> None:
    site.give(site.op("Pow", site.real(0), site.real(1)))


@converts("ADD_N")
def _add_n(site: Site) -> None:
    total = site.real(0)
    for index in range(1, site.count):
        total = site.op("Add", total, site.real(index))
    site.give(total)


@converts("FLOOR_DIV")
def _floor_div(site: Site) -> None:
    a, b = site.real(0), site.real(1)
    if not site.is_float(0):  # exact: what is left over is taken away first
        site.give(site.op("Div", site.op("Sub", a, site.op("Mod", a, b)), b))
    else:
        site.give(site.op("Floor", site.op("Div", a, b)))


@converts("FLOOR_MOD")
def _floor_mod(site: Site) -> None:
    a, b = site.real(0), site.real(1)
    if not site.is_float(0):
        site.give(site.op("Mod", a, b))
        return
    left, zero = site.op("Mod", a, b, fmod=1), site.number(0, site.dtype(0))
    differs = site.op("Xor", site.op("Less", left, zero), site.op("Less", b, zero))
    wrong = site.op("And", differs, site.op("Not", site.op("Equal", left, zero)))
    site.give(site.op("Where", wrong, site.op("Add", left, b), left))


@converts("ATAN2")
def _atan2(site: Site) -> None:
    y, x = site.real(0), site.real(1)
    zero, pi = site.number(0), site.number(np.pi)
    plain = site.op("Atan", site.op("Div", y, x))
    turn = site.op("Where", site.op("Less", y, zero), site.op("Neg", pi), pi)
    behind = site.op("Less", x, zero)
    found = site.op("Where", behind, site.op("Add", plain, turn), plain)
    nothing = site.op("And", site.op("Equal", y, zero), site.op("Not", behind))
    site.give(site.op("Where", nothing, zero, found))


@converts("BITWISE_XOR")
def _bitwise_xor(site: Site) -> None:
    name = "Xor" if site.tensor(0).type == "BOOL" else "BitwiseXor"
    site.store(site.op(name, site.stored(0), site.stored(1)))


@converts("RIGHT_SHIFT")
def _right_shift(site: Site) -> None:
    """Of signed numbers: the sign moves in."""
    times = site.op("Pow", site.constant(np.array(2, np.int64)), site.cast(site.stored(1), "INT64"))
    a = site.cast(site.stored(0), "INT64")
    down = site.op("Div", site.op("Sub", a, site.op("Mod", a, times)), times)
    site.store(site.cast(down, site.out().type))
