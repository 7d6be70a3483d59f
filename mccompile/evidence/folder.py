"""The folder of evidence: code, certificates, the programs that check them, and a page for people.

Invariant: the same model, options and tools give the same bytes; certificates that our own checkers refuse are not
handed out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files as resources
from typing import Any

from .. import __version__
from ..base.errors import InternalError
from ..emit.blob import blob_bytes, data_bytes
from ..emit.files import Files
from ..emit.folder import MARK, with_report
from ..emit.package import Package
from ..frontend.listed import Listed
from ..targets.api import Target
from . import check_calls, check_memory, check_owners, check_ranges, check_schema, check_stack, check_trace
from .eva import eva
from .memory import memory_certificate
from .page import page
from .ranges import ranges_certificate
from .requirements import cited
from .sbom import sbom
from .time_bound import flow_facts
from .trace import trace

PARTS = ("calls", "memory", "owners", "ranges", "schema", "stack", "trace")
CHECKERS = ("check.py", *(f"check_{part}.py" for part in PARTS))
_LEFT_TO_EVA = "left to Frama-C, which has not looked at this code: python run_eva.py says whether it raises alarms"
_CERTIFICATES = ("coverage", "evidence", "memory", "ranges", "requirements", "stack", "time", "trace")
SCHEMAS = tuple(f"{part}.schema.json" for part in _CERTIFICATES)


def evidence(
    package: Package,
    model: str,
    contents: bytes,
    command: str,
    nodes: Sequence[Listed],
    stack: Mapping[str, Any] | str,
    time: Mapping[str, Any],
    coverage: Mapping[str, Any],
    target: Target,
) -> Files:
    """All files. `contents`: of the model's file; `command`: that makes the folder again. `nodes`:
    of the file. `stack`: its certificate, or why there is none. `target`: what the package is for."""
    digest = hashlib.sha256(contents).hexdigest()
    code = {path: package.files[path] for path in package.files}
    memory = checked(package)
    traced = checked_trace(package, nodes, memory)
    ranges = checked_ranges(package, memory)
    demands = cited(node.op for node in nodes)
    driver = eva(package, target)
    bill = sbom(package.plan.prefix, code, model, digest)
    about = {
        "mccompile": __version__,
        "model": {"file": model, "sha256": digest},
        "target": package.plan.target,
        "identity": package.identity.hex(),
        "command": command,
        "options": json.loads(code[MARK]).get("options", {}),
        "not_run": not_run()
        | {"undefined_behaviour": driver if isinstance(driver, str) else _LEFT_TO_EVA}
        | ({"stack": stack} if isinstance(stack, str) else {})
        | ({} if _is_bounded(time) else {"time_bound": "counts of time.json are not bounds; it says what has none"}),
        **({} if isinstance(driver, str) else {"eva": driver[1]}),
    }
    if "not_measured" in coverage:
        about["not_run"]["coverage"] = coverage["not_measured"]
    texts = {
        "memory.json": _json(memory),
        "trace.json": _json(traced),
        "ranges.json": _json(ranges),
        **({} if isinstance(stack, str) else {"stack.json": _json(checked_stack(package, stack, memory))}),
        **({} if isinstance(driver, str) else {"eva.c": driver[0], "run_eva.py": _own("run_eva.py")}),
        "time.json": _json(time),
        "coverage.json": _json(coverage),
        "requirements.json": _json({"schema": "mccompile-requirements-1", **demands}),
        **({"time.ff": flow_facts(time["bound"])} if _is_bounded(time) else {}),
        "sbom.spdx.json": _json(bill),
        "evidence.json": _json(about),
        **{f"schemas/{name}": _own(f"schemas/{name}") for name in SCHEMAS},
        **{name: _own(name) for name in CHECKERS},
        "index.html": page(
            about, memory, traced, bill, {} if isinstance(stack, str) else stack, time, ranges, coverage, demands
        ),
    }
    made = {f"code/{path}": data for path, data in code.items()} | {n: text.encode() for n, text in texts.items()}
    return with_report(made, {"mccompile": __version__, "evidence": about["identity"]})


def not_run() -> dict[str, str]:
    """What an argument may need and this folder does not have, and why."""
    return {
        "indices_inside_kernels": "the bytes that a kernel touches are taken from its views, not from its C",
        "rounding_bound": "not part of this version",
        "misra": "cppcheck is not run here: see the page on MISRA of the documentation",
    }


def checked(package: Package) -> dict[str, Any]:
    """The certificate of the plan, as it is read back. Raises what a checker finds: that is a bug of ours."""
    plan = package.plan
    assert package.witness is not None
    memory = _plain(memory_certificate(plan, package.witness))
    own = package.own_files(plan.prefix, package.identity, plan)
    code, header = (own[f"{plan.prefix}{end}"].text for end in (".c", ".h"))
    found = [
        *of_form("memory", memory),
        *check_memory.check(memory),
        *check_owners.check(memory),
        *check_calls.check(memory, code, header),
    ]
    if found:
        raise InternalError("a certificate is refused: " + "; ".join(found[:5]))
    return memory


def checked_trace(package: Package, nodes: Sequence[Listed], memory: dict[str, Any]) -> dict[str, Any]:
    """The same of the trace: what is not traced is a bug of ours."""
    traced = _plain(trace(package, nodes))
    found = [*of_form("trace", traced), *check_trace.check(traced, memory, package.files)]
    if found:
        raise InternalError("the trace is refused: " + "; ".join(found[:5]))
    return traced


def checked_ranges(package: Package, memory: dict[str, Any]) -> dict[str, Any]:
    """The same of integers."""
    plan, contents = package.plan, package.files[f"{package.plan.prefix}.mcb"]
    assert package.witness is not None
    data = contents[blob_bytes(plan) - data_bytes(plan) :]
    ranges = _plain(ranges_certificate(plan, package.witness, data))
    found = [*of_form("ranges", ranges), *check_ranges.check(ranges, memory, contents)]
    if found:
        raise InternalError("the certificate of integers is refused: " + "; ".join(found[:5]))
    return ranges


def checked_stack(package: Package, stack: Mapping[str, Any], memory: dict[str, Any]) -> dict[str, Any]:
    """The same of the stack."""
    plain, header = _plain(stack), package.files[f"{package.plan.prefix}.h"].decode()
    found = [*of_form("stack", plain), *check_stack.check(plain, memory, header, {})]
    if found:
        raise InternalError("the certificate of the stack is refused: " + "; ".join(found[:5]))
    return plain


def of_form(part: str, certificate: dict[str, Any]) -> list[str]:
    """Where it is not what its schema says."""
    return check_schema.check(certificate, json.loads(_own(f"schemas/{part}.schema.json")))


def _is_bounded(time: Mapping[str, Any]) -> bool:
    return time.get("bound", {}).get("instructions") is not None


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """As it is read back: lists, no tuples."""
    found: dict[str, Any] = json.loads(json.dumps(value))
    return found


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=True) + "\n"


def _own(name: str) -> str:
    return resources("mccompile.evidence").joinpath(name).read_text(encoding="utf-8")
