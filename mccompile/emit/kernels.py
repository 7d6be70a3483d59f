"""The file of kernels: each distinct instance once, and the header that declares them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

from ..base.dtypes import DType
from ..base.provenance import show
from ..plan.ir import Function, Step
from ..targets.api import Build
from .building import missing_flags
from .render import TEMPLATES, comment, indent_c, render, render_c
from .tidy import tidied

_WORD = re.compile(r"\w+")


def signature(function: Function) -> str:
    """`void name(float *MCC_RESTRICT y, const float *MCC_RESTRICT x)`; parameters that may overlap are not restrict."""
    outs, ins = function.kernel.parameter_names(function.call)
    parameters = []
    for names, views, const in ((outs, function.call.outs, ""), (ins, function.call.ins, "const ")):
        for name, view in zip(names, views, strict=True):
            parameters.append(f"{const}{pointer(view.buffer.dtype, name, name in function.aliased)}")
    if function.call.scratch is not None:
        parameters.append(f"uint8_t *{'' if 'scratch' in function.aliased else 'MCC_RESTRICT '}scratch")
    if function.table_c:
        parameters.append(f"const {function.table_c} *MCC_RESTRICT sizes")
    parameters += [f"mcc_index {name}" for name in function.sizes]
    if function.call.rows is not None or function.call.workers > 1:
        parameters += ["mcc_index begin", "mcc_index end"]
    return f"void {function.name}({', '.join(parameters) or 'void'})"


def pointer(dtype: DType, name: str, may_overlap: bool) -> str:
    return f"{dtype.storage_c} *{'' if may_overlap else 'MCC_RESTRICT '}{name}"


def function_text(function: Function) -> str:
    """The C function of one kernel instance."""
    if function.body:
        return indent_c(f"{signature(function)}\n{{{function.body}")
    context = dict(function.kernel.context(function.call))
    context |= {"function": function.name, "signature": signature(function)}
    text = render(function.kernel.template, context)
    head, brace, body = text.partition("{")
    outs, ins = function.kernel.parameter_names(function.call)  # of what has no elements nothing is read
    used = set(_WORD.findall(body))
    unused = [name for name in (*outs, *ins, *function.sizes) if name not in used]
    first = [f"(void){name};" for name in unused] + _size_constants(function, used)
    return indent_c(tidied(head + brace + "".join(f"\n{line}" for line in first) + body))


def _size_constants(function: Function, used: Set[str]) -> list[str]:
    """Declarations of the sizes that the body names."""
    lines = []
    for place, (name, number) in enumerate(function.kernel.sizes(function.call).items()):
        if name in used:
            lines.append(f"const mcc_index {name} = {f'sizes[{place}]' if function.table_c else number};")
    return lines


def kernel_files(
    prefix: str,
    build: Build,
    functions: Sequence[Function],
    steps: Iterable[Step],
    also: str = "",
    users: str = "",
) -> dict[str, str]:
    """`<prefix>_kernels.c` and `.h`: the functions, which the steps use. `also` is a header with further ones,
    `users` are the files that call them."""
    first: dict[str, Step] = {}
    uses: dict[str, int] = {}
    for step in steps:
        first.setdefault(step.function.name, step)
        uses[step.function.name] = uses.get(step.function.name, 0) + 1
    printed = []
    for function in functions:
        step = first[function.name]
        tensors = ", ".join(f"{a.role} {a.type}" for a in step.arguments)
        count = uses[function.name]
        printed.append(
            {
                "text": function_text(function).rstrip(),
                "signature": signature(function),
                "kernel": function.kernel.id,
                "tensors": comment(tensors),
                "use": comment(show(step.provenance)) + (f" and {count - 1} more" if count > 1 else ""),
            }
        )
    body = "\n".join(str(f["text"]) for f in printed)
    headers = {h for f in functions for h in f.kernel.headers(f.call)} | _headers_of(body)
    context = {
        "prefix": prefix,
        "guard": prefix.upper(),
        "missing_flags": missing_flags(build, prefix),
        "also": also,
        "users": users or f"{prefix}.c",
        "functions": printed,
        "runtime_headers": sorted(h for h in headers if h.startswith("mcc_")),
        "headers": sorted(h for h in headers if not h.startswith("mcc_")),
    }
    return {
        f"{prefix}_kernels.h": render_c(TEMPLATES / "kernels.h.j2", context),
        f"{prefix}_kernels.c": render_c(TEMPLATES / "kernels.c.j2", context),
    }


def _headers_of(text: str) -> set[str]:
    """The headers whose names occur in generated C."""
    words = set(re.findall(r"\b[A-Za-z_]\w*\b", text))
    calls = set(re.findall(r"\b([a-z]\w*)\(", text))
    headers = set()
    if words & {"FLT_MAX", "DBL_MAX", "FLT_MIN", "DBL_MIN", "FLT_EPSILON"}:
        headers.add("float.h")
    if words & {"INFINITY", "NAN"} or any(re.fullmatch(_LIBM, call) for call in calls):
        headers.add("math.h")
    if calls & {"memcpy", "memmove", "memset"}:
        headers.add("string.h")
    if any(call.startswith("mcc_string_") for call in calls):
        headers.add("mcc_string.h")
    if any(call.startswith("mcc_") and not call.startswith("mcc_string_") for call in calls):
        headers.add("mcc_math.h")
    return headers


_LIBM = (
    r"(fabs|fmod|pow|sqrt|exp|exp2|log|log2|log10|log1p|expm1|erf|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|"
    r"floor|ceil|trunc|rint|fmin|fmax|fma|cbrt|hypot|ldexp|lgamma|tgamma)f?"
)
