"""What a model's module for MicroPython is told besides what its header for C is.

The module has one instance in static memory, so that no pointer into it outlives it, whatever is collected. Refused is
what Python could only hand over as addresses, or would have to keep alive: strings, and memory of the program's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...base.marked import called
from .refusals import kept_inside, refuse

_CODES = {
    "float": "f",
    "double": "d",
    "int8_t": "b",
    "int16_t": "h",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
    "mcc_f16": "H",
    "mcc_bf16": "H",
}  # all others have a byte each


def facts(context: Mapping[str, Any]) -> dict[str, Any]:
    refuse(
        "MicroPython",
        context["title"],
        (context["has_strings"], "strings are pointers of C", "leave out --package micropython, and call the C"),
        (
            context["outside"],
            "nothing would keep memory of Python's alive that the model has a pointer to",
            kept_inside(context),
        ),
        (
            context["carrier"] == "external",
            "nothing would keep a blob of Python's alive that the model has a pointer to",
            "leave out --blob",
        ),
        (context["variants"], "its code is for several processors", "name one target"),
    )
    prefix = context["prefix"]
    arenas = [part for a in context["arenas"] for part in (a["base"], f"sizeof {a['base']}")]
    blob = [f"{context['weights_of']}_weights", f"{context['weights_of']}_weights_bytes"]
    return {
        "init": called(f"{prefix}_init", ["&model", *arenas, *blob]),
        "functions": [*_functions(context)],
    }


def _functions(context: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    prefix = context["prefix"]

    def call(name: str, *more: str) -> str:
        return f"{prefix}_{name}({', '.join(['ready()', *more])})"

    def plain(name: str) -> dict[str, Any]:
        return _function(name, [f"check({call(name)});", "return mp_const_none;"])

    def more(name: str, *arguments: str) -> list[str]:
        """A call that may have more to do."""
        return [
            f"const mcc_status status = {call(name, *arguments)};",
            "if (status != MCC_MORE) check(status);",
            "return mp_obj_new_bool(status == MCC_OK);",
        ]

    yield plain("run")
    if context["stream"]:
        yield _function("push", more("push"))
    if context["states"] or context["stream"]:
        yield plain("reset")
    if context["sliced"]:
        yield plain("begin")
        yield _function("run_steps", more("run_steps", "(uint32_t)mp_obj_get_int(steps)"), ["steps"])
    if context["streams"]:
        body = [f"{call('seed', '(uint64_t)mp_obj_get_int(seed)')};", "return mp_const_none;"]
        yield _function("seed", body, ["seed"])
    if context["given"]:
        sizes = [f"(mcc_index)mp_obj_get_int(sizes[{n}])" for n in range(len(context["given"]))]
        body = ["(void)count;", f"check({call('resize', *sizes)});", "return mp_const_none;"]
        yield _function("resize", body, ["count", "sizes"], len(sizes))
    shaped = {f"{t['way']}_{t['symbol']}" for t in context["shaped"]}
    for way in ("input", "output", "state"):
        for t in context[f"{way}s"]:
            name = f"{way}_{t['symbol']}"
            yield _function(name, _view(prefix, t, way, name in shaped))
            if name in shaped:
                yield _function(f"{name}_shape", _shape(prefix, t, name))


def _function(name: str, body: Sequence[str], names: Sequence[str] = (), count: int = 0) -> dict[str, Any]:
    """`count`: of arguments in an array, where there are so many as a model has sizes."""
    parameters = ", ".join(f"mp_obj_t {each}" for each in names) or "void"
    kind = f"OBJ_{len(names)}(module_{name}_obj, "
    if count:
        parameters = "size_t count, const mp_obj_t *sizes"
        kind = f"OBJ_VAR_BETWEEN(module_{name}_obj, {count}, {count}, "
    return {
        "name": name,
        "parameters": parameters,
        "body": body,
        "object": f"MP_DEFINE_CONST_FUN_{kind}module_{name});",
    }


def _view(prefix: str, t: Mapping[str, Any], way: str, is_shaped: bool) -> list[str]:
    """A memoryview of a tensor, which Python may write unless it is an output."""
    code = f"'{_CODES.get(str(t['c']), 'B')}'"
    flags = code if way == "output" else f"{code} | MP_OBJ_ARRAY_TYPECODE_FLAG_RW"
    lines, count = [], f"{t['count']}u"
    if is_shaped:
        lines = [f"size_t shape[{t['rank']}], count = 1u;", f"{prefix}_{way}_{t['symbol']}_shape(ready(), shape);"]
        lines += [f"for (size_t i = 0; i != {t['rank']}u; i++) count *= shape[i];"]
        count = f"(count + {t['packed'] - 1}u) / {t['packed']}u" if t["packed"] > 1 else "count"
    pointer = f"(void *){prefix}_{way}_{t['symbol']}(ready())"
    return [*lines, f"return {called('mp_obj_new_memoryview', [flags, count, pointer])};"]


def _shape(prefix: str, t: Mapping[str, Any], name: str) -> list[str]:
    rank = t["rank"]
    return [
        f"size_t shape[{rank}];",
        f"mp_obj_t sizes[{rank}];",
        f"{prefix}_{name}_shape(ready(), shape);",
        f"for (size_t i = 0; i != {rank}u; i++) sizes[i] = mp_obj_new_int_from_uint(shape[i]);",
        f"return mp_obj_new_tuple({rank}, sizes);",
    ]
