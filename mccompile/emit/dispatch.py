"""One model for several processors in one program: the code of each under a prefix of its own, compiled with its own
flags, and a model with the public API whose init asks the processor once which of them to pass everything on to.

Invariant: each variant is the model compiled alone under its prefix; the blob is those of all, one after the other.
Only public facts are put together here: what every variant needs, the most of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..base.errors import Problem, WrongUse
from ..base.names import c_identifier
from ..base.records import dataclass
from ..plan.ir import Plan
from ..targets.api import Build, Target
from . import blob as blob_format
from .blob import Carrier, Delivery
from .building import build_name, cmake_tools, flags_text, make_tools
from .files import Files
from .folder import LIST, MARK, SEAL, with_report
from .model import model_context
from .package import Package
from .render import TEMPLATES, comment, render, render_c
from .runtime import runtime_headers
from .wrappers.registry import wrapper_files

_LEFT_OUT = (MARK, "main.c", "Makefile", "CMakeLists.txt")


def picks_at_run_time(targets: Sequence[Target]) -> bool:
    """Can a program of one machine have the code for all of them, and know which it may run?"""
    asked = all(target.cpu for target in targets[:-1]) and (targets[-1].cpu or not targets[-1].needs)
    return bool(len(targets) > 1 and asked and len({target.compiler for target in targets}) == 1)


def refuse_unreachable(targets: Sequence[Target]) -> None:
    """The first that the processor runs is picked: one that runs wherever a later one does hides it."""
    for number, later in enumerate(targets):
        for earlier in targets[:number]:
            if set(earlier.isas) < set(later.isas):
                what = f"code for {later.name} would never be used"
                why = f"{earlier.name} comes first, and runs wherever {later.name} does"
                where = f"--target {','.join(target.name for target in targets)}"
                raise WrongUse(Problem(what, where, why, f"name {later.name} in front of {earlier.name}"))


def refuse_looks(targets: Sequence[Target], asked: Mapping[str, bool]) -> None:
    """Options, by their flags, with which programs look at the steps of a run."""
    for flag in (flag for flag, is_asked in asked.items() if is_asked):
        why = f"init picks one of {', '.join(target.name for target in targets)}, whose steps differ"
        raise WrongUse(Problem(f"{flag} does not go with several targets", flag, why, f"--target {targets[0].name}"))


def variant_name(name: str, target: Target) -> str:
    return f"{name}_{c_identifier(target.name).lower()}"


@dataclass(frozen=True)
class _Variant:
    package: Package
    cpu: str  # C that is true where the processor runs it
    start: int  # of its blob

    @property
    def plan(self) -> Plan:
        return self.package.plan

    @property
    def blob(self) -> bytes:
        return self.package.files[f"{self.plan.prefix}.mcb"]


def dispatched(
    packages: Sequence[Package],
    targets: Sequence[Target],
    name: str,
    prefix: str,
    delivery: Delivery,
    wrappers: Sequence[str] = (),
) -> Files:
    """The files of all; `packages` were compiled for `targets` under `variant_name`, without carrying their blobs."""
    align = max(16, *(package.plan.arena_align for package in packages))
    variants, contents = [], b""
    for package, target in zip(packages, targets, strict=True):
        variants.append(_Variant(package, target.cpu, len(contents)))
        contents += variants[-1].blob
        contents += bytes(-len(contents) % align)
    context = _context(variants, name, prefix, len(contents), align, delivery.carrier)
    files = Files({})
    for variant in variants:
        own = variant.plan.prefix
        all_of_it = variant.package.files
        files |= all_of_it.only(path for path in all_of_it if path not in (*_LEFT_OUT, f"{own}.mcb"))
        files |= {f"{own}.h": files[f"{own}.h"].replace(f"{own}.mcb".encode(), f"part of {prefix}.mcb".encode())}
    sources = {
        f"{prefix}.h": render_c(TEMPLATES / "model.h.j2", context),
        f"{prefix}.c": render_c(TEMPLATES / "dispatch.c.j2", context),
        "main.c": render_c(TEMPLATES / "main.c.j2", context),
        **wrapper_files(wrappers, context),
    }
    texts = {
        **{name: source.text for name, source in sources.items()},
        "Makefile": render(TEMPLATES / "Makefile.j2", context | {"tools": make_tools([_common(variants)])}),
        "CMakeLists.txt": render(
            TEMPLATES / "CMakeLists.txt.j2", context | {"tools": cmake_tools([_common(variants)], prefix)}
        ),
    }
    texts |= runtime_headers(name for source in sources.values() for name in source.includes)
    if delivery.carrier == Carrier.ARRAY:
        words = partial(blob_format.weights_source, prefix, lambda: (contents,), len(contents), align, delivery.section)
        files |= Files({f"{prefix}_weights.c": words})
    elif delivery.carrier == Carrier.INCBIN:
        texts[f"{prefix}_weights.c"] = blob_format.incbin_source(prefix, len(contents), align, delivery.section)
    files |= {path: text.encode() for path, text in texts.items()} | {f"{prefix}.mcb": contents}
    return with_report(files, _report(variants, context, name, prefix, len(contents)))


def _common(variants: Sequence[_Variant]) -> Build:
    """What the files that belong to no variant are compiled with."""
    return replace(variants[0].plan.build, flags=(), needs="")


def _report(
    variants: Sequence[_Variant], context: Mapping[str, Any], name: str, prefix: str, weights_bytes: int
) -> dict[str, Any]:
    reports = [json.loads(variant.package.files[MARK]) for variant in variants]
    for report in reports:
        del report[LIST], report[SEAL]
    first: dict[str, Any] = reports[0]
    lists: dict[str, Any] = {
        key: [_needed(same) for same in zip(*(report[key] for report in reports), strict=True)]
        for key in ("pools", "inputs", "outputs")
        if key in first
    }
    return first | {
        **lists,
        "model": name,
        "prefix": prefix,
        "flags": [],
        "needs": "",
        "file_flags": context["file_flags"],
        "picked": "at run time",
        "arena_bytes": max(report["arena_bytes"] for report in reports),
        "arena_align": max(report["arena_align"] for report in reports),
        "weights_bytes": weights_bytes,
        "targets": reports,
    }


def _needed(same: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A pool or a tensor as one report says it, with the most memory that any says for it."""
    first = dict(same[0])
    if "external" in first:
        return first | {"external": _needed([each["external"] for each in same])}
    return {**first, **{key: max(each[key] for each in same) for key in ("bytes", "align") if key in first}}


def _context(
    variants: Sequence[_Variant], name: str, prefix: str, weights_bytes: int, align: int, carrier: Carrier
) -> dict[str, Any]:
    """What the templates of a model are told, of all variants."""
    plans = [replace(variant.plan, name=name, prefix=prefix) for variant in variants]
    each = [model_context(plan, bytes(16), align, weights_bytes, carrier) for plan in plans]
    first = dict(each[0])
    for key in ("inputs", "outputs", "outside", "placed", "fetched"):
        first[key] = [_merged(same) for same in zip(*(context[key] for context in each), strict=True)]
    first["arenas"] = [_merged(same) for same in zip(*(context["arenas"] for context in each), strict=True)]
    first["slices"] = max((context["slices"] for context in each), key=len)
    first["row_stages"] = max(context["row_stages"] for context in each)
    first["pieces"] = [piece for context in each for piece in context["pieces"]]
    first["threads"] = max(context["threads"] for context in each)
    targets = ", ".join(plan.target for plan in plans)
    flags = [(variant.plan.prefix, variant.plan.build) for variant in variants]
    first |= {
        "window": None,  # the variants have theirs
        "about": [comment(line) for line in variants[0].package.about],
        "weights_of": prefix,
        "targets": targets,
        "target": f"{targets}: init picks the first that the processor runs",
        "flags": "flags of their own: " + ", ".join(f"{p}*.c {flags_text(b) or '(none)'}" for p, b in flags),
        "library": build_name(prefix),
        "program": build_name(prefix),
        "passed": ", ".join(f"{arena.base}, {arena.base}_bytes" for arena in plans[0].arenas),
        "variants": [
            {
                "prefix": variant.plan.prefix,
                "field": variant.plan.prefix,
                "cpu": variant.cpu,
                "start": variant.start,
                "bytes": variant.package.weights_bytes,
            }
            for variant in variants
        ],
        "sources": [
            f"{prefix}.c",
            *(f"{variant.plan.prefix}{part}.c" for variant in variants for part in ("", "_kernels")),
            *([] if carrier == Carrier.EXTERNAL else [f"{prefix}_weights.c"]),
        ],
        "file_flags": [
            {"files": [f"{prefix}.c", f"{prefix}_kernels.c"], "flags": list(build.flags)}
            for prefix, build in flags
            if build.flags
        ],
    }
    first["api"] = list(_api(variants, first, prefix))
    return first


def _merged(same: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a tensor or an arena the most that any variant asks for."""
    most = {
        key: max(each[key] for each in same) for key in ("bytes", "size", "align", "room", "slots") if key in same[0]
    }
    if "preserved" in same[0]:
        worst = min(same, key=lambda each: int(each["preserved"]))
        most |= {key: worst[key] for key in ("preserved", "preserved_text")}
    return {**same[0], **most}


def _api(variants: Sequence[_Variant], context: Mapping[str, Any], prefix: str) -> Iterator[dict[str, Any]]:
    """Every function of the API but init: how it is declared, and what it passes on to each variant."""

    def one(returns: str, name: str, more: Sequence[tuple[str, str]] = (), const: bool = False) -> dict[str, Any]:
        nothing = {"mcc_status": "return MCC_ERR_NOT_INIT", "void": "break"}.get(returns, "return NULL")
        arguments = "".join(f", {argument.partition('[')[0]}" for _, argument in more)
        calls = [f"{v.plan.prefix}_{name}(&m->of.{v.plan.prefix}{arguments})" for v in variants]
        return {
            "returns": returns if returns.endswith("*") else f"{returns} ",
            "name": f"{prefix}_{name}",
            "parameters": ", ".join(
                [f"{'const ' if const else ''}{prefix}_model *m", *(f"{type}{name}" for type, name in more)]
            ),
            "status": returns == "mcc_status",
            "calls": calls,
            "otherwise": nothing,
        }

    if context["given"]:
        yield one("mcc_status", "resize", [("mcc_index ", size["name"]) for size in context["given"]])
    if context["streams"]:
        yield one("void", "seed", [("uint64_t ", "seed")])
    if context["states"] or context["stream"]:
        yield one("mcc_status", "reset")
        yield one("mcc_status", "save_state", [("void *", "to")], const=True)
        yield one("mcc_status", "load_state", [("const void *", "from")])
    for t in context["states"]:
        yield one(f"{t['c']} *", f"state_{t['symbol']}")
    if context["parallel"]:
        workers = [("mcc_parallel_for ", "parallel"), ("void *", "pool")]
        yield one("mcc_status", "set_parallel", workers)
    if context["stream"]:
        yield one("mcc_status", "push")
    yield one("mcc_status", "run")
    if context["advances"]:
        yield one("mcc_status", "advance")
    if context["sliced"]:
        yield one("mcc_status", "begin")
        yield one("mcc_status", "run_steps", [("uint32_t ", "steps")])
    for t in context["fetched"]:
        yield one("mcc_status", f"set_{t['field']}", [("mcc_fetch ", "fetch"), ("void *", "user")])
    for t in context["placed"]:
        const = "const " if t["way"] == "input" else ""
        yield one("mcc_status", f"set_{t['field']}", [(f"{const}{t['c']} *", "to")])
    for t in context["inputs"]:
        if not t["outside"]:
            yield one(f"{t['c']} *", f"input_{t['symbol']}")
    for t in context["outputs"]:
        if not t["outside"]:
            yield one(f"const {t['c']} *", f"output_{t['symbol']}", const=True)
    for t in context["shaped"]:
        yield one("void", f"{t['way']}_{t['symbol']}_shape", [("size_t ", f"shape[{t['rank']}]")], const=True)
