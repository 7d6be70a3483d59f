"""What a model's module for Rust is told besides what its header for C is.

Rust keeps a struct of the same fields as C's; what may not be handed to programs without unsafe code of their own is
refused: strings, and inputs and outputs that live outside of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..statuses import ERRORS
from .refusals import kept_inside, refuse

_MORE = "MCC_MORE"
SHARED = ("mcc.rs",)  # beside the modules of all models
_TYPES = {"float": "f32", "double": "f64"}
_TYPES |= {f"{sign}int{bits}_t": f"{sign or 'i'}{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)}
_TYPES |= {"mcc_bool": "u8", "mcc_f16": "u16", "mcc_bf16": "u16"}
_WORDS = """
    abstract as async await become box break const continue core crate do dyn else enum extern false final fn for gen if
    impl in let loop macro match mod move mut override priv proc_macro pub ref return self static std struct super test
    trait true try type typeof union unsafe unsized use virtual where while yield alloc model
"""


def name_in_rust(name: str) -> str:
    """Of a crate or a module."""
    return f"{name}_net" if name in _WORDS.split() else name


def facts(context: Mapping[str, Any]) -> dict[str, Any]:
    refuse(
        "Rust",
        context["title"],
        (context["variants"], "its code is for several processors, each with flags of its own", "name one target"),
        (
            context["has_strings"],
            "strings are pointers of C, which safe Rust cannot hand over",
            "leave out --package cargo, and call the C",
        ),
        (
            context["outside"],
            "a model keeps pointers to inputs and outputs, which safe Rust cannot watch",
            kept_inside(context),
        ),
    )
    arenas = [_arena(arena) for arena in context["arenas"]]
    return {
        "arenas": arenas,
        "constants": [*_constants(context)],
        "fields": [{"name": name, "type": type} for name, type in _fields(context)],
        "functions": [*_functions(context)],
        "methods": [*_methods(context)],
        "tensors": [_tensor(t, way) for way in ("input", "output", "state") for t in context[f"{way}s"]],
        "borrowed": [f"&'a mut {a['type']}, " for a in arenas],
        "parameters": ", ".join(f"{a['base']}: &'a mut {a['type']}" for a in arenas),
        "arguments": ", ".join(str(a["base"]) for a in arenas),
        "passed": ", ".join(f"{a['base']}.0.as_mut_ptr(), {a['base']}.0.len()" for a in arenas),
        "statuses": _statuses(),
        "more": next(each.number for each in ERRORS if each.name == _MORE),
    }


def _arena(arena: Mapping[str, Any]) -> dict[str, object]:
    size, align = arena["size"], arena["align"]
    name = "".join(word.capitalize() for word in str(arena["base"]).split("_"))
    return {**arena, "type": name, "name": f"ARENA{arena['suffix']}", "size": -(-size // align) * align}


def _fields(context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """In the order of the struct in C."""
    for arena in context["arenas"]:
        yield arena["base"], "*mut u8"
    yield "weights", "*const u8"
    yield "ready", "u32"
    if context["sliced"]:
        yield "next", "u32"
    if context["parallel"]:
        yield "parallel", "usize"
        yield "pool", "usize"
    for size in context["sizes"]:
        yield size["name"], "isize"
    if context["streams"]:
        yield "streams", f"[u64; {context['streams']}]"
    if context["profiled"]:
        yield "ticks", f"[u32; {max(len(context['step_names']), 1)}]"
    if context["dumped"]:
        yield "dump", "usize"
        yield "dump_to", "usize"
    if context["stream"]:
        yield "pushes", "u32"


def _constants(context: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    def one(name: str, type: str, value: object, about: str) -> dict[str, object]:
        return {"name": name, "type": type, "value": value, "about": about}

    if context["sliced"]:
        yield one("STEPS", "u32", len(context["slices"]), "Steps of a run.")
    if context["states"] or context["stream"]:
        yield one("STATE_BYTES", "usize", context["state_bytes"], "Bytes of all that a run leaves for the next one.")
    if context["stream"]:
        yield one("HOP", "usize", context["stream"]["hop"], "Frames of a push.")
        yield one("WARM_UP", "u32", context["stream"]["warm_up"], "Pushes up to the first that gives a result.")
    for way in ("input", "output"):
        for t in context[f"{way}s"]:
            said = dict(line.partition(" /*")[0].split(" ", 1) for line in t["quantized"])
            name = f"{way.upper()}_{t['S']}"
            if "SCALE" in said:
                scale, zero = said["SCALE"].rstrip("f"), said["ZERO_POINT"].strip("()")
                about = f"An integer q of {way} `{t['title']}` stands for (q - zero point) * scale."
                yield one(f"{name}_SCALE", "f32", scale, about)
                yield one(f"{name}_ZERO_POINT", "i32", zero, f"The zero point of {way} `{t['title']}`.")


def _functions(context: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    def one(name: str, *more: str, returns: str = "i32", const: bool = False) -> dict[str, str]:
        parameters = [f"m: *{'const' if const else 'mut'} Raw", *more]
        return {"name": name, "parameters": ", ".join(parameters), "returns": returns}

    arenas = [part for a in context["arenas"] for part in (f"{a['base']}: *mut u8", f"{a['base']}_bytes: usize")]
    yield one("init", *arenas, "weights: *const u8", "weights_bytes: usize")
    yield one("run")
    if context["sliced"]:
        yield one("begin")
        yield one("run_steps", "steps: u32")
    if context["stream"]:
        yield one("push")
    if context["given"]:
        yield one("resize", *(f"{size['name']}: isize" for size in context["given"]))
    if context["streams"]:
        yield one("seed", "seed: u64", returns="")
    if context["states"] or context["stream"]:
        yield one("reset")
        yield one("save_state", "to: *mut u8", const=True)
        yield one("load_state", "from: *const u8")
    if context["profiled"]:
        yield one("step_ticks", "step: u32", returns="u32", const=True)
    for way in ("input", "output", "state"):
        for t in context[f"{way}s"]:
            is_output = way == "output"
            pointer = f"*{'const' if is_output else 'mut'} {_element(t)}"
            yield one(f"{way}_{t['symbol']}", returns=pointer, const=is_output)
    for t in context["shaped"]:
        yield one(f"{t['way']}_{t['symbol']}_shape", "shape: *mut usize", returns="", const=True)


def _methods(context: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    prefix = context["prefix"]

    def one(
        name: str, about: str, *more: str, passed: str = "", returns: str = "()", const: bool = False
    ) -> dict[str, str]:
        call = f"unsafe {{ {prefix}_{name}({'&' if const else '&mut '}self.raw{passed}) }}"
        checked = {"()": f"Error::check({call})", "bool": f"Error::more({call})"}.get(returns, call)
        return {
            "name": name,
            "about": about,
            "parameters": ", ".join([f"&{'' if const else 'mut '}self", *more]),
            "returns": f"Result<{returns}, Error>" if returns in ("()", "bool") else returns,
            "body": checked,
        }

    if context["sliced"]:
        yield one("begin", "Begins a run that is made in pieces.")
        about = "So many steps of it; `true` when that was the last one."
        yield one("run_steps", about, "steps: u32", passed=", steps", returns="bool")
    if context["stream"]:
        about = "A run on the newest frames; `false` as long as outputs are not results yet."
        yield one("push", about, returns="bool")
    if context["given"]:
        names = [size["name"] for size in context["given"]]
        about = "How large the inputs of the next runs are; nothing changes where that is out of bounds."
        passed = "".join(f", isize::try_from({name}).unwrap_or(isize::MAX)" for name in names)
        yield one("resize", about, *(f"{name}: usize" for name in names), passed=passed)
    if context["streams"]:
        yield one("seed", "Where random numbers come from.", "seed: u64", passed=", seed", returns="")
    if context["states"] or context["stream"]:
        yield one("reset", "Forgets what earlier runs left.")
        to, source = "to: &mut [u8; STATE_BYTES]", "from: &[u8; STATE_BYTES]"
        yield one("save_state", "Copies all states out of the model.", to, passed=", to.as_mut_ptr()", const=True)
        yield one("load_state", "Copies all states into the model.", source, passed=", from.as_ptr()")
    if context["profiled"]:
        about = "How long a step took in the last run, in ticks of `MCC_CLOCK()`."
        yield one("step_ticks", about, "step: u32", passed=", step", returns="u32", const=True)


def _element(t: Mapping[str, Any]) -> str:
    return _TYPES.get(str(t["c"]), "u8")  # narrower floats have a byte each


def _tensor(t: Mapping[str, Any], way: str) -> dict[str, Any]:
    return {
        "name": f"{way}_{t['symbol']}",
        "type": t["type"],
        "element": _element(t),
        "count": t["count"],
        "is_fixed": t["is_static"] or way == "state",
        "is_input": way == "input",
        "is_output": way == "output",
        "mut": way != "output",
        "packed": t["packed"],
    }


def _statuses() -> list[dict[str, str | int]]:
    """Of errors, in Rust's way of writing names."""
    errors = [(each.name.split("_")[2:], each.number, each.text) for each in ERRORS if each.name != _MORE]
    return [{"name": "".join(map(str.capitalize, words)), "number": n, "text": text} for words, n, text in errors]
