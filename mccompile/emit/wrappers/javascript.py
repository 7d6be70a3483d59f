"""What a model's module for JavaScript is told besides what its header for C is.

One instance lives in an instance of the WebAssembly module, whose exports have the names of C without the prefix. What
JavaScript could only hand over as addresses is refused: strings, and inputs and outputs that live outside of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..statuses import ERRORS
from .refusals import kept_inside, refuse

_ARRAYS = {"float": "Float32Array", "double": "Float64Array", "mcc_f16": "Uint16Array", "mcc_bf16": "Uint16Array"}
_ARRAYS |= {f"{sign.lower()}{bits}_t": f"{sign}{bits}Array" for sign in ("Int", "Uint") for bits in (8, 16, 32)}
_ARRAYS |= {"int64_t": "BigInt64Array", "uint64_t": "BigUint64Array"}  # all others have a byte each


def facts(context: Mapping[str, Any]) -> dict[str, Any]:
    refuse(
        "JavaScript",
        context["title"],
        (context["has_strings"], "strings are pointers of C", "leave out --package npm, and call the C"),
        (context["outside"], "inputs and outputs live in the memory of the module", kept_inside(context)),
        (context["variants"], "its code is for several processors", "name one target, such as --target wasm32"),
    )
    ways = ("input", "output", "state")
    return {
        "tensors": [_tensor(t, way) for way in ways for t in context[f"{way}s"]],
        "functions": [*_functions(context)],
        "methods": [*_methods(context)],
        "statuses": [{"number": each.number, "text": each.text} for each in ERRORS],
    }


def _tensor(t: Mapping[str, Any], way: str) -> dict[str, Any]:
    array = _ARRAYS.get(str(t["c"]), "Uint8Array")
    is_fixed = t["is_static"] or way == "state"
    name = f"{way}_{t['symbol']}"
    return {**t, "way": way, "name": name, "array": array, "is_fixed": is_fixed}


def _functions(context: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    prefix = context["prefix"]

    def one(name: str, body: Sequence[str] | str, *parameters: str, returns: str = "int") -> dict[str, Any]:
        lines = [f"return {body};"] if isinstance(body, str) else list(body)
        declared = f"{returns}{'' if returns.endswith('*') else ' '}EXPORT({name})({', '.join(parameters) or 'void'})"
        return {"declared": declared, "body": lines}

    def call(name: str, *more: str) -> str:
        return f"{prefix}_{name}({', '.join(['&model', *more])})"

    arenas = [part for a in context["arenas"] for part in (a["base"], f"sizeof {a['base']}")]
    if context["carrier"] == "external":
        yield one("weights", "own_weights", returns="uint8_t *")
        yield one("init", f"(int){call('init', *arenas, 'own_weights', 'bytes')}", "size_t bytes")
    else:
        yield one("init", f"(int){call('init', *arenas, f'{prefix}_weights', f'{prefix}_weights_bytes')}")
    yield one("run", f"(int){call('run')}")
    for name in _plain(context):
        yield one(name, f"(int){call(name)}")
    if context["sliced"]:
        yield one("run_steps", f"(int){call('run_steps', 'steps')}", "uint32_t steps")
    if context["given"]:
        names = [size["name"] for size in context["given"]]
        yield one("resize", f"(int){call('resize', *names)}", *(f"mcc_index {name}" for name in names))
    if context["streams"]:
        yield one("seed", [f"{call('seed', 'seed')};"], "uint64_t seed", returns="void")
    for way in ("input", "output", "state"):
        for t in context[f"{way}s"]:
            const = "const " if way == "output" else ""
            yield one(f"{way}_{t['symbol']}", call(f"{way}_{t['symbol']}"), returns=f"{const}{t['c']} *")
    for t in context["shaped"]:
        name = f"{t['way']}_{t['symbol']}"
        count = " * ".join(f"shape[{axis}]" for axis in range(t["rank"]))
        size = f"({count} + {t['packed'] - 1}u) / {t['packed']}u" if t["packed"] > 1 else count
        yield one(f"{name}_count", [f"{call(f'{name}_shape', 'shape')};", f"return {size};"], returns="size_t")
        yield one(f"{name}_shape", [f"{call(f'{name}_shape', 'shape')};", "return shape;"], returns="size_t *")


def _plain(context: Mapping[str, Any]) -> list[str]:
    """Functions that take nothing but the model."""
    found = ["reset"] if context["states"] or context["stream"] else []
    found += ["begin"] if context["sliced"] else []
    return found + (["push"] if context["stream"] else [])


def _methods(context: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    def one(name: str, about: str, body: Sequence[str], typed: str = "", returns: str = "void") -> dict[str, Any]:
        parameters = ", ".join(part.partition(":")[0] for part in typed.split(", ")) if typed else ""
        return {
            "name": name,
            "about": about,
            "parameters": parameters,
            "typed": typed,
            "body": body,
            "returns": returns,
        }

    more = next(each.number for each in ERRORS if each.name == "MCC_MORE")
    yield one("run", "One inference.", ["checked(this.#c.run());"])
    if context["stream"]:
        about = "A run on the newest frames; false as long as outputs are not results yet."
        yield one("push", about, _more("push()", more), returns="boolean")
    if context["states"] or context["stream"]:
        yield one("reset", "Forgets what earlier runs left.", ["checked(this.#c.reset());"])
    if context["sliced"]:
        yield one("begin", "Begins a run that is made in pieces.", ["checked(this.#c.begin());"])
        about = "So many steps of it; true when that was the last one."
        yield one("runSteps", about, _more("run_steps(steps)", more), "steps: number", "boolean")
    if context["given"]:
        names = [size["name"] for size in context["given"]]
        typed = ", ".join(f"{name}: number" for name in names)
        about = "How large the inputs of the next runs are."
        yield one("resize", about, [f"checked(this.#c.resize({', '.join(names)}));"], typed)
    if context["streams"]:
        yield one("seed", "Where random numbers come from.", ["this.#c.seed(seed);"], "seed: bigint")
    for t in context["shaped"]:
        name = f"{t['way']}_{t['symbol']}_shape"
        body = [f"return [...new Uint32Array(this.#c.memory.buffer, this.#c.{name}(), {t['rank']})];"]
        words = "".join(word.capitalize() for word in name.split("_"))
        yield one(words[0].lower() + words[1:], "The true shape.", body, returns="number[]")


def _more(call: str, more: int) -> list[str]:
    return [
        f"const status = this.#c.{call};",
        f"if (status !== {more}) checked(status);",
        f"return status !== {more};",
    ]
