"""An image function as C: signature, checks, text, and the macro that says how much scratch it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.dtypes import u8
from ..base.marked import called
from ..emit.render import render
from .api import CHANNELS, LARGEST, ImageFunction, each

SCRATCH_ALIGN = 4


def element_c(fn: ImageFunction) -> str:
    return "uint8_t" if fn.asked.dtype is u8 else "float"


def parameters(fn: ImageFunction) -> dict[str, str]:
    """Declarations by name, in their order."""
    c, s = element_c(fn), fn.c
    found = {"y": f"{c} *y", "y_stride": "mcc_index y_stride", "x": f"const {c} *x", "x_stride": "mcc_index x_stride"}
    found |= {name: f"mcc_index {name}" for name in fn.given} | dict(fn.extras)
    found |= {"scratch": "void *scratch", "scratch_bytes": "size_t scratch_bytes"}
    left_out = [name for name in ("x_stride", "y_stride") if not isinstance(s[name], str)]
    left_out += [] if fn.scratch(s) else ["scratch", "scratch_bytes"]
    return {name: text for name, text in found.items() if name not in left_out}


def facts(fn: ImageFunction, prefix: str) -> dict[str, Any]:
    """What templates are told of a function; `text` is all of it."""
    s, symbol, declared = fn.c, f"{prefix}_{fn.symbol}", parameters(fn)
    macro = f"{symbol}_scratch_bytes".upper()
    restricted = {"y": f"{element_c(fn)} *MCC_RESTRICT y", "x": f"const {element_c(fn)} *MCC_RESTRICT x"}
    own = {
        "prefix": prefix,
        "symbol": symbol,
        "c": element_c(fn),
        "signature": called(f"mcc_status {symbol}", (declared | restricted).values()),
        "checks": checks(fn, macro),
        "each": each(s.get("channels", 1)),
    }
    text = render(fn.template_path, s | own | dict(fn.context()))
    prototype = called(f"mcc_status {symbol}", declared.values())
    about = f"{fn.about}: {fn.variants[fn.variant]}" if fn.variant else fn.about
    return {"symbol": symbol, "prototype": prototype, "text": text, "about": about, **_scratch(fn, macro)}


def scratch_bytes(fn: ImageFunction, sizes: Mapping[str, int]) -> int:
    """For pictures of these sizes."""
    return int(fn.scratch(sizes))


def checks(fn: ImageFunction, macro: str) -> str:
    """Lines that refuse arguments with a status."""
    s, scratch = fn.c, fn.scratch(fn.c)
    pointers = ["y", "x", *(["matrix"] if "matrix" in fn.extras else []), *(["scratch"] if scratch else [])]
    lines = [f"    if ({' || '.join(f'{name} == NULL' for name in pointers)}) return MCC_ERR_NULL;"]
    most = {name: CHANNELS if name == "channels" else LARGEST for name in fn.given}
    wrong = [f"{name} < 1 || {name} > {most[name]}" for name in fn.given] + fn.wrong(s)
    for name, (_, row) in (("x_stride", fn.source(s)), ("y_stride", fn.result(s))):
        wrong += [f"{name} < {row}"] if isinstance(s[name], str) else []
    lines += [f"    if ({condition}) return MCC_ERR_SIZE;" for condition in wrong]
    if scratch:
        nbytes = called(macro, names) if (names := _named(fn)) else macro
        lines.append(f"    if (scratch_bytes < {nbytes}) return MCC_ERR_ARENA_SIZE;")
        lines.append(f"    if ((uintptr_t)scratch % {SCRATCH_ALIGN}u != 0) return MCC_ERR_ARENA_ALIGN;")
    return "\n".join(lines)


def _named(fn: ImageFunction) -> list[str]:
    """Arguments that say how much scratch is taken."""
    text = str(fn.scratch(_marked(fn.c)))
    return [name for name in fn.given if f"@{name}@" in text]


def _marked(s: Mapping[str, Any]) -> dict[str, Any]:
    return {name: f"@{size}@" if isinstance(size, str) else size for name, size in s.items()}


def _scratch(fn: ImageFunction, macro: str) -> dict[str, Any]:
    """The macro: a number, or one of arguments."""
    nbytes = fn.scratch(_marked(fn.c))
    names = _named(fn)
    if not names:
        return {"macro": macro if nbytes else "", "bytes": f"{nbytes}u", "scratch": nbytes}
    text = str(nbytes)
    for name in names:
        text = text.replace(f"@{name}@", f"(size_t)({name})")
    return {"macro": f"{macro}({', '.join(names)})", "bytes": f"({text})", "scratch": text.replace("(size_t)", "")}
