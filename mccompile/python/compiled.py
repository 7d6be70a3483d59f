"""A compiled model as Python has it: its files, its report, and what can be asked of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from ..base.errors import Problem, WrongUse
from ..base.scratch import Scratch
from ..driver import Options
from ..driver import compile as compile_file
from ..emit.package import Package
from ..importers import registry
from ..importers.api import InputHints
from ..measure.budgets import hold
from ..measure.building import RUNS
from ..measure.correctness import Verdict
from ..measure.correctness import check as check_file
from ..measure.cost import Cost, cost
from ..measure.speed import Speed, speed
from ..measure.verdict import DEFAULT, Tolerance
from ..plan.ir import Plan
from .called import lead_on, made_by
from .keywords import options_of
from .spoken import spoken

LONGEST = 60  # characters of a graph's name that a file is called by: file systems end at 255 bytes

_CALLED = {
    "write(folder) writes the C": ("save", "export", "dump", "to_c", "to_folder", "build"),
    "mccompile.load(model)(x) runs a model here": ("run", "predict", "infer", "forward", "invoke"),
    "mccompile.compile(model, quantize='samples.npz') does that": ("quantize", "calibrate"),
}

Dynamic = Mapping[str, Mapping[int, str]]


@made_by("mccompile.compile('net.onnx')")
@dataclass(frozen=True)
class Compiled:
    """A model that has been compiled. Nothing is on disk until `write`."""

    path: Path  # of the model
    options: Options
    package: Package
    _kept: Any = None  # the folder of a model that came from memory

    @property
    def files(self) -> Mapping[str, bytes]:
        """The files by their path below the output folder."""
        return self.package.files

    @property
    def plan(self) -> Plan:
        """Every step, and every byte of memory."""
        return self.package.plan

    @cached_property
    def report(self) -> dict[str, Any]:
        """What report.json says."""
        found: dict[str, Any] = json.loads(self.files["report.json"])
        return found

    @spoken
    def write(self, folder: str | Path, force: bool = False) -> Path:
        """Writes the files; gives the folder. Files there that mccompile did not write, or that were edited since, are
        an error; `force` replaces edited ones."""
        self.package.write(Path(folder), force)
        return Path(folder)

    @spoken
    def check(
        self,
        data: str | Path | None = None,
        *,
        runs: int = RUNS,
        seed: int = 0,
        rtol: float | None = None,
        atol: float | None = None,
        cc: str | None = None,
        tolerance: Tolerance = DEFAULT,
    ) -> Verdict:
        """Builds the model, runs it (emulated where its target needs that), and compares with the reference: on `data`
        (a file or folder of samples), or on `runs` sets of random inputs. `.ok` says whether all is right. `rtol` and
        `atol` are those of numpy.allclose; `tolerance` has all that there is."""
        found: dict[str, Any] = {
            name: _not_negative(name, value) for name, value in (("rtol", rtol), ("atol", atol)) if value is not None
        }
        if not isinstance(tolerance, Tolerance):
            why = "it is a mccompile.measure.verdict.Tolerance"
            raise WrongUse(Problem(f"tolerance cannot be {tolerance!r}", "tolerance", why, f"write rtol={tolerance!r}"))
        return check_file(self.path, self.options, samples_file(data), seed, runs, replace(tolerance, **found), cc)

    def __getattr__(self, name: str) -> Any:
        """What other packages call it: only names that are not here get to this."""
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        instead = next((own for own, others in _CALLED.items() if name in others), "")
        raise AttributeError(f"{told}: {instead}" if instead else told, name=name, obj=self)

    @spoken
    def bench(self, cc: str | None = None, seed: int = 0) -> Cost | Speed:
        """Exact instructions, flash and stack on an emulated target; times on this machine."""
        measured = cost if self.options.resolved_target().run else speed
        return measured(self.path, self.options, cc, seed)

    def __call__(self, *_arrays: Any, **_named: Any) -> NoReturn:
        """It is C for a target; what runs here is made by `load`."""
        why, fix = (
            "it is C for a target; mccompile.load builds a model for this machine",
            "write mccompile.load(model)(x)",
        )
        raise WrongUse(Problem("a compiled model cannot be called", self.path.name, why, fix))


def samples_file(data: Any) -> Path | None:
    """Where samples lie."""
    if data is None or isinstance(data, str | PathLike):
        return None if data is None else Path(data)
    why = f"the type is {type(data).__name__}, and samples are read from a file or folder"
    fix = "numpy.savez('samples.npz', x=samples), with the names of the inputs; then data='samples.npz'"
    raise WrongUse(Problem("samples are named by their file", "data", why, fix))


def _not_negative(name: str, value: float) -> float:
    if value < 0:
        raise WrongUse(
            Problem(f"{name} cannot be {value}", name, "a tolerance is not negative", f"did you mean {name}=0?")
        )
    return value


lead_on()


@spoken
def compile(  # noqa: A001 - mccompile.compile
    model: Any, options: Options | None = None, /, *, args: Any = (), dynamic: Dynamic | None = None, **keywords: Any
) -> Compiled:
    """Compiles a model: a path, the bytes of a file, an ONNX ModelProto, or an object of PyTorch, Keras, scikit-learn,
    LightGBM, XGBoost or CatBoost. Keywords are the fields of `Options`, in plain Python:
    `compile("kws.onnx", target="cortex-m4", dims={"batch": 1}).write("out")`.

    An object may not say what its inputs are: `args` are examples of them (a tuple, or a dict by name), and `dynamic`
    names the sizes that stay open: `compile(module, args=(x,), dynamic={"x": {0: "batch"}})`.

    Raises `mccompile.MccError` where the model cannot be compiled; its text says why and what to do."""
    path, kept = model_file(model, args, dynamic)
    given = options_of(options, keywords)
    package = compile_file(path, given)
    hold(path, given)
    return Compiled(path, given, package, kept)


def model_file(model: Any, args: Any = (), dynamic: Dynamic | None = None) -> tuple[Path, Any]:
    """Where the model lies; what comes from memory is written to a folder that lasts as long as the second result."""
    if registry.knows(model):
        model = registry.converted(model, _given(args, dynamic))
    elif dynamic or not isinstance(args, tuple | list | Mapping) or len(args):
        why = f"this is a {type(model).__name__}, which says itself what its inputs are"
        raise WrongUse(Problem("args and dynamic go with objects", "", why, "leave them out"))
    if isinstance(model, str | PathLike):
        return Path(model), None
    if hasattr(model, "read"):  # a file that is open
        model = _read(model)
    if type(model).__name__ == "GraphProto":
        fix = "give the ModelProto whose graph it is, or onnx.helper.make_model(graph)"
        raise WrongUse(Problem("this is not a model", "model", "it is a graph, which says no opset", fix))
    if not isinstance(model, bytes | bytearray) and not hasattr(model, "SerializeToString"):
        kind = type(model).__name__
        why = "it is None" if model is None else f"it is {'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
        raise WrongUse(Problem("this is not a model", "model", why, registry.CAN_BE))
    content = bytes(model) if isinstance(model, bytes | bytearray) else model.SerializeToString()
    name = getattr(getattr(model, "graph", None), "name", "") or "model"
    return in_folder(content, "".join(c if c.isalnum() else "_" for c in name[:LONGEST]) + ".onnx")


def _read(file: Any) -> Any:
    try:
        content = file.read()
    except UnicodeDecodeError:
        content = ""
    if isinstance(content, str):
        why, fix = (
            "it was opened as text, and models are bytes",
            "open it with open(file, 'rb'), or give its path alone",
        )
        raise WrongUse(Problem("this is not a model", str(getattr(file, "name", "model")), why, fix))
    return content


def in_folder(content: bytes, name: str) -> tuple[Path, Any]:
    """A file in a folder that lasts as long as the second result."""
    folder = Scratch()
    path = Path(folder.name, name)
    path.write_bytes(content)
    return path, folder


def _given(args: Any, dynamic: Dynamic | None) -> InputHints:
    """A single example may stand alone."""
    if isinstance(args, Mapping):
        return InputHints((), dict(args), dynamic or {})
    return InputHints(tuple(args) if isinstance(args, tuple | list) else (args,), {}, dynamic or {})
