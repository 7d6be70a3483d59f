"""Which functions of generated C multiply and accumulate floats over bytes: what a quantized network should not do."""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^\w[^\n]*?(\w+)\(([^{}]*?)\)\n\{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL)
_FLOATS = re.compile(r"\b(?:float|double) (\w+)(?:\[[^\]]*\])?(?: =|;)")
_SUMS = re.compile(r"\b(\w+)(?:\[[^\]]*\])? \+= ")
_BYTES = re.compile(r"const u?int8_t \*")


def float_sums(text: str) -> list[str]:
    """Names of the functions that read bytes and add up floats."""
    found = []
    for name, parameters, body in _FUNCTION.findall(text):
        if _BYTES.search(parameters) and set(_FLOATS.findall(body)) & set(_SUMS.findall(body)):
            found.append(name)
    return found
