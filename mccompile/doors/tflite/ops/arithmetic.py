"""Two operands, element by element."""

from __future__ import annotations

from ..api import Site, converts

_ARITHMETIC = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}


@converts(*_ARITHMETIC)
def _arithmetic(site: Site) -> None:
    options = site.options(f"{_ARITHMETIC[site.name]}Options")
    made = site.op(_ARITHMETIC[site.name], site.real(0), site.real(1))
    site.give(site.activated(made, options["FusedActivationFunction"]))
