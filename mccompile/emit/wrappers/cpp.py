"""What a model's header for C++ is told besides what its header for C is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.marked import called

# Words and macros that are not names in C++, besides those that no name in C is made of.
_WORDS = """
    alignas alignof and_eq bitand bitor char16_t char32_t char8_t co_await co_return co_yield compl concept const_cast
    consteval constexpr constinit decltype dynamic_cast goto linux noexcept not_eq nullptr or_eq register
    reinterpret_cast requires static_assert static_cast thread_local typeid unix wchar_t xor_eq
"""


def facts(context: Mapping[str, Any]) -> dict[str, Any]:
    prefix, arenas = context["prefix"], context["arenas"]
    blob = [f"{prefix}_weights", f"{prefix}_weights_bytes"] if context["carrier"] != "external" else []
    given = ["const void *weights", "size_t weights_bytes"]
    members = [f"{arena['base']}_.bytes, {context['P']}_ARENA{arena['suffix']}_BYTES" for arena in arenas]
    defaults = [f"{parameter} = {value}" for parameter, value in zip(given, blob, strict=True)] if blob else given
    sizes = [size["name"] for size in context["given"]]
    return {
        "space": f"{prefix}_" if prefix in _WORDS.split() else prefix,
        "constructor": called("model", [*(f"{a['base']} &memory{a['suffix'].lower()}" for a in arenas), *defaults]),
        "is_explicit": bool(blob) and len(arenas) == 1,
        "init": called(f"{prefix}_init", ["&m_", *members, "weights", "weights_bytes"]),
        "resize": called("resize", [f"mcc_index {name}" for name in sizes]),
        "resized": called(f"{prefix}_resize", ["&m_", *sizes]),
        "tensors": [_tensor(context, t, way) for way in ("input", "output", "state") for t in _inside(context, way)],
    }


def _inside(context: Mapping[str, Any], way: str) -> list[Mapping[str, Any]]:
    return [t for t in context[f"{way}s"] if not t["outside"]]


def _tensor(context: Mapping[str, Any], t: Mapping[str, Any], way: str) -> dict[str, Any]:
    """How a tensor in an arena is handed out; memory that has been cleared stands in for it where init went wrong."""
    const = "const " if way == "output" else ""
    count = f"{t['count']}u" if way == "state" else f"{context['P']}_{way.upper()}_{t['S']}_COUNT"
    is_there = t["field"] in {arena["base"] for arena in context["arenas"]}
    zeros = f"mcc_zeros<{t['c']}, {max(t['count'], 1)}u>::all"
    return {
        "name": f"{way}_{t['symbol']}",
        "type": t["type"],
        "span": f"mcc_span<{const}{t['c']}, {count}>",
        "any_span": f"mcc_span<{const}{t['c']}>",
        "const": const,
        "element": f"{const}{t['c']}",
        "instead": f"reinterpret_cast<{const}{t['c']} *>({t['field']}_.bytes)" if is_there else zeros,
        "is_fixed": t["is_static"] or way == "state",
        "rank": t["rank"],
        "packed": t["packed"],
    }
