"""The house stands: imports go strictly down, and each third-party package comes in through its own importers only.

Every import counts: relative ones, those inside functions or under TYPE_CHECKING, and `import_module("literal")`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
ENTRANCE = 14  # mccompile/__init__.py and __main__.py: they hand over to what is below, and nothing imports them
KERNELS_TEMPLATES = 6
FLOORS = {
    "cli": 13,
    "backend": 13,
    "python": 13,
    "deploy": 12,
    "measure": 11,
    "evidence": 12,
    "llm": 11,
    "update": 11,
    "single_passes": 11,
    "driver": 10,
    "project": 10,
    "option_texts": 10,
    "pipeline": 9,
    "imgproc": 9,
    "tokenizer": 9,
    "option_table": 9,
    "quantize": 9,
    "fitting": 9,
    "emit": 8,
    "check": 8,
    "passes": 7,
    "toolchain": 7,
    "frontend": 6,
    "accelerators": 6,
    "codegen": 5,
    "ops": 5,
    "plan": 5,
    "kernels": 4,
    "importers": 3,
    "program": 3,
    "graph": 2,
    "kinds": 2,
    "expr": 1,
    "memory": 1,
    "targets": 1,
    "judge": 1,
    "base": 0,
}
SEEN_BY_KERNELS_TEMPLATES = {"codegen", "kernels", "kinds", "expr", "base"}
ALLOWED = {  # third-party package -> the only modules or packages that may import it
    "ethosu": ("mccompile.accelerators.ethos_u",),
    "flatbuffers": ("mccompile.accelerators.ethos_u",),
    "onnx": ("mccompile.frontend", "mccompile.importers", "mccompile.backend"),
    "google": ("mccompile.frontend",),  # protobuf, which onnx brings along: its errors while reading a file
    "tflite": ("mccompile.importers.tflite.flat",),  # which flatbuffers comes with
    "torch": ("mccompile.importers.pytorch",),
    "onnxscript": ("mccompile.importers.pytorch",),
    "keras": ("mccompile.importers.keras",),
    "joblib": ("mccompile.importers.pickled",),
    "skl2onnx": ("mccompile.importers.scikit_learn",),
    "sklearn": ("mccompile.importers.scikit_learn",),
    "skops": ("mccompile.importers.scikit_learn",),
    "onnxmltools": ("mccompile.importers.lightgbm", "mccompile.importers.scikit_learn", "mccompile.importers.xgboost"),
    "lightgbm": ("mccompile.importers.lightgbm", "mccompile.importers.scikit_learn"),
    "xgboost": ("mccompile.importers.xgboost", "mccompile.importers.scikit_learn"),
    "catboost": ("mccompile.importers.catboost",),
    "ai_edge_litert": ("mccompile.check.litert",),
    "jinja2": ("mccompile.emit.compiled_templates", "mccompile.emit.render", "mccompile.llm.jinja"),
    "click": ("mccompile.cli",),
    "rich": ("mccompile.cli.progress",),
    "cffi": ("mccompile.toolchain.build",),
    "tomllib": (
        "mccompile.targets.api",
        "mccompile.targets.boards.catalogue",
        "mccompile.deploy.ecosystem",
        "mccompile.deploy.machines",
        "mccompile.emit.layouts",
        "mccompile.evidence.requirements",
        "mccompile.project",
        "mccompile.frontend.onnxruntime_forms",
    ),
    "onnxruntime": ("mccompile.check.oracle", "mccompile.quantize.through_onnxruntime"),
    "serial": ("mccompile.toolchain.serial_line",),
    "pytest": ("mccompile.python.pytest_plugin",),
    "distributed": ("mccompile.measure.workers",),
    "numpy": ("mccompile", "kernels_templates"),
}
MODULES = sorted(path for top in ("mccompile", "kernels_templates") for path in (TOP / top).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(TOP).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(source: str, module: str, is_package: bool) -> tuple[str, ...]:
    """The absolute dotted name of everything a module imports; `from a import b` gives `a.b`."""
    return tuple(_imports(source, module, is_package))


def _imports(source: str, module: str, is_package: bool) -> Iterator[str]:
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__", "import_package_modules") and node.args[0].value:
                yield str(node.args[0].value)


def complaints(source: str, module: str, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of one module, in words."""
    parts = module.split(".")
    in_templates = parts[0] == "kernels_templates"
    room = parts[1] if len(parts) > 1 and not in_templates else ""
    if in_templates:
        floor = KERNELS_TEMPLATES
    elif room in ("", "__main__"):
        floor = ENTRANCE
    elif room in FLOORS:
        floor = FLOORS[room]
    else:
        return [f"{module} has no floor: add {room} to DESIGN.md and to this test"]
    found = []
    for target in imports(source, module, is_package):
        top, _, rest = target.partition(".")
        other = rest.partition(".")[0]
        if top == "mccompile":
            if other == "__version__" or (other == room and room):
                continue
            if other not in FLOORS:
                found.append(f"{module} imports {target}: only __version__ is to be had from the entrance")
            elif FLOORS[other] >= floor or (in_templates and other not in SEEN_BY_KERNELS_TEMPLATES):
                found.append(f"{module} (floor {floor}) imports {target} (floor {FLOORS[other]})")
        elif top == "kernels_templates":
            found.append(f"{module} imports {target}: kernels are found by folder, never imported by name")
        elif top in ALLOWED:
            if not any(module == allowed or module.startswith(f"{allowed}.") for allowed in ALLOWED[top]):
                found.append(f"{module} imports {target}: only these may: {', '.join(ALLOWED[top])}")
        elif top not in sys.stdlib_module_names:
            found.append(f"{module} imports {target}, which is not among the dependencies")
    return found


def test_imports_go_down_and_third_parties_use_their_doors() -> None:
    wrong = [
        complaint
        for path in MODULES
        for complaint in complaints(path.read_text(encoding="utf-8"), module_name(path), path.name == "__init__.py")
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mccompile.graph.ir", "import mccompile.ops.conv"),
        ("mccompile.graph.ir", "from mccompile import ops"),
        ("mccompile.graph.ir", "from mccompile.program.ir import Call"),
        ("mccompile.graph.ir", "from ..ops.conv import Conv"),
        ("mccompile.graph.ir", "def late():\n    from mccompile.ops import conv"),
        ("mccompile.graph.ir", "import importlib\nimportlib.import_module('mccompile.ops')"),
        ("mccompile.graph.ir", "import mccompile"),
        ("mccompile.graph.ir", "from mccompile import compile"),
        ("mccompile.graph.ir", "import onnx.helper"),
        ("mccompile.emit.model", "import jinja2"),
        ("mccompile.check.compare", "import torch"),
        ("mccompile.importers.keras", "import pandas"),
        ("mccompile.cli", "from mccompile.backend import run"),
        ("mccompile.kernels.registry", "import kernels_templates.conv"),
        ("mccompile.kernels.api", "from mccompile.codegen import loops"),
        ("mccompile.newroom.thing", "x = 1"),
        ("kernels_templates.conv.f32__c", "from mccompile.program import ir"),
        ("kernels_templates.conv.f32__c", "import jinja2"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str) -> None:
    assert len(complaints(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source", "is_package"),
    [
        ("mccompile.graph.ir", "from . import text\nfrom .verify import verify\nfrom ..base import errors", False),
        ("mccompile.graph", "from .ir import Graph\nfrom . import text", True),
        ("mccompile.emit.report", "from mccompile import __version__\nimport numpy as np\nimport json", False),
        ("mccompile.frontend.load", "from onnx import numpy_helper", False),
        ("mccompile", "from mccompile.driver import compile", True),
        ("kernels_templates.conv.f32__c", "from mccompile.kernels.api import Kernel\nimport numpy", False),
    ],
)
def test_a_right_import_is_left_alone(module: str, source: str, is_package: bool) -> None:
    assert complaints(source, module, is_package) == []


def rooms() -> dict[tuple[int, str], list[str]]:
    """The files of each name on each floor. Names of kernels say what these take, and so occur for many kinds."""
    named: dict[tuple[int, str], list[str]] = {}
    for path in MODULES:
        name = module_name(path)
        room = name.split(".")[1] if "." in name else ""
        if path.name != "__init__.py" and room in FLOORS:
            named.setdefault((FLOORS[room], path.name), []).append(name)
    return named


def test_no_name_of_a_file_occurs_twice_on_a_floor() -> None:
    assert not [names for names in rooms().values() if len(names) > 1]


def imported() -> dict[str, set[str]]:
    """The modules of mccompile that each of them imports, at its top or in functions."""
    known = {module_name(path): path for path in MODULES}
    arrows: dict[str, set[str]] = {}
    for name, path in known.items():
        targets = imports(path.read_text(encoding="utf-8"), name, path.name == "__init__.py")
        arrows[name] = {t if t in known else t.rpartition(".")[0] for t in targets} & known.keys() - {name, "mccompile"}
    return arrows


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """The modules of a graph of imports that are in a circle, or import one that is."""
    left = dict(arrows)
    while True:
        ends = {name for name, targets in left.items() if not targets & left.keys()}
        if not ends:
            return sorted(left)
        left = {name: targets for name, targets in left.items() if name not in ends}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert circle(imported()) == []


def test_names_of_files_say_what_is_in_them() -> None:
    empty = {"utils", "util", "misc", "helpers", "helper", "manager"}
    nameless = [path for path in MODULES if empty & set(path.stem.split("_")) or path.stem == "common"]
    assert not [module_name(path) for path in nameless]


def test_no_file_passes_450_lines() -> None:
    """Modules, tests, templates and headers."""
    rooms = ("mccompile", "kernels_templates", "runtime_c", "tests", "benchmarks", "embedded")
    found = (path for room in rooms for path in (TOP / room).rglob("*") if path.suffix in (".py", ".j2", ".h", ".c"))
    lengths = {str(path.relative_to(TOP)): len(path.read_text(encoding="utf-8").splitlines()) for path in found}
    assert len(lengths) > len(MODULES)
    assert not {name: length for name, length in lengths.items() if length > 450}
