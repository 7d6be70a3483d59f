"""A model as a Python function: compiled and built for this machine at the first call ever, then taken from a cache.

Invariant: a call gives what the compiled C gives; nothing is computed here.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import BadFile, Problem, WrongUse
from ..base.structures import Interface
from ..driver import Options
from ..driver import compile as compile_file
from ..frontend.load import read_proto
from ..frontend.open_inputs import open_inputs
from ..toolchain.build import find_compiler
from ..toolchain.host_library import build_shared, refuse_elsewhere
from ..toolchain.lists import packed, unpacked
from ..toolchain.model_report import read_report
from ..toolchain.session import Session
from . import cache
from .called import made_by
from .compiled import Dynamic, in_folder, model_file
from .keywords import options_of
from .spoken import spoken
from .writer import OnText, Text, Writer

_SHARED = "model.so"
_CALLED = ("run", "predict", "infer", "forward", "invoke", "call", "inference")


class Outputs(tuple[Any, ...]):
    """Results in the order of the model's outputs; also by name: `outputs["scores"]`."""

    names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], values: Sequence[Any]) -> Outputs:
        made = super().__new__(cls, values)
        made.names = tuple(names)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Outputs, (self.names, tuple(self))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"there is no output {key!r}; there are {', '.join(self.names)}")
            return super().__getitem__(self.names.index(key))
        return super().__getitem__(key)

    def items(self) -> Iterator[tuple[str, Any]]:
        return zip(self.names, self, strict=True)


@made_by("mccompile.load('net.onnx')")
class Network:
    """A model that can be called. Inputs by position or by name; state lasts from call to call, until `reset`.

    It pickles, for other processes of this machine: its file must still be there, unless it came from memory, and hold
    the same. State goes along.

    Sizes of inputs that the file leaves open, and that no option fixes, are those of the arrays of a call; the model is
    built anew when others come."""

    def __init__(self, path: Path, options: Options, cc: str | None, kept: Any = None) -> None:
        self._path, self._options, self._cc, self._kept = path, options, cc, kept
        given = options.dims, options.shapes, options.bounds, options.state, options.reading
        self.input_names, self._free, self._listed = open_inputs(path, *given)
        self._shapes: Mapping[str, tuple[Any, ...]] = {}
        self._made_of = ""  # SHA-256 of the file, once it is built
        self._session: Session | None = None if self._free else self._built({})
        self._writer: Writer | None = None
        self._turn = threading.Lock()

    def __call__(self, /, *arrays: Any, **named: Any) -> Outputs:
        names = self.input_names
        if named or len(arrays) != len(names) or type(arrays[0] if arrays else None) is dict:
            arrays = self._ordered(arrays, named)
        session = self._for(arrays)
        report = session.report
        if report.interface is not None:
            return self._with_lists(session, report.interface, arrays)
        return self._as_listed([tensor.name for tensor in report.outputs], session.run(arrays))

    def _for(self, arrays: Sequence[Any]) -> Session:
        """What runs these arrays. Other threads may come with arrays of other sizes."""
        if self._session is not None and not self._free:
            return self._session
        names = self.input_names
        shapes = {name: _shape_of(arrays[names.index(name)]) for name in names if name in self._free}
        with self._turn:
            if self._session is None or shapes != self._shapes:
                self._session, self._shapes = self._built(shapes), shapes
            return self._session

    def __getattr__(self, name: str) -> Any:
        """What other runtimes call it: only names that are not here get to this."""
        told = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in _CALLED:
            told += f": call it, as in net({', '.join(self.input_names)})"
        raise AttributeError(told, name=name, obj=self)

    @property
    def is_warm(self) -> bool:
        """Does the last call's result count? With `stream` it does not as long as it depends on frames before the first
        call."""
        return self._session is not None and self._session.calls >= self._session.report.warm_up

    def __reduce__(self) -> tuple[Any, ...]:
        content = self._path.read_bytes() if self._kept is not None else None
        saved = None if self._session is None else (self._shapes, self._session.saved())
        return _unpickled, (self._path.absolute(), content, self._options, self._cc, self._made_of, saved)

    @spoken
    def reset(self) -> None:
        """Forgets all state, and the text of `generate` and `ask`."""
        if self._session is not None:
            self._session.reset()
        if self._writer is not None:
            self._writer.restart()

    @spoken
    def generate(self, prompt: str = "", most: int = 64, told: OnText | None = None, **sampling: Any) -> Text:
        """Goes on with a text: of a language model with its tokenizer, a folder of Hugging Face or a GGUF file. Called
        again, the text goes on. `told` is handed pieces as they come, and ends it with False. `sampling`: temperature
        (0: the likeliest token), top_k, top_p, min_p, repetition_penalty, seed; and `keep`: where the context is full,
        the text goes on with its first `keep` tokens and the newer half of the others; `stop`: a string, or several, in
        front of which the text ends, instead of those that generation_config.json names."""
        return self._writes().generate(prompt, most, told, **sampling)

    @spoken
    def ask(
        self, question: str, system: str | None = None, most: int = 256, told: OnText | None = None, **sampling: Any
    ) -> Text:
        """The answer to a question in the form of the model's chat template; called again, the chat goes on. `system`:
        what the model is told in front of the first question."""
        return self._writes().ask(question, system, most, told, **sampling)

    def _writes(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self._path, self._options, self._cc)
        return self._writer

    def _go_on(self, shapes: Mapping[str, tuple[Any, ...]], saved: Any, made_of: str) -> None:
        """Takes the place of the network that was pickled."""
        if self._session is None:
            self._session, self._shapes = self._built(shapes), shapes
        if self._made_of != made_of:
            fix = "load it again with mccompile.load"
            raise BadFile(Problem(f"{self._path} has changed since its network was pickled", "", "", fix))
        self._session.restore(saved)

    def _ordered(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        names = self.input_names
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            why = f"it got a dictionary of {', '.join(map(str, arrays[0])) or 'nothing'}"
            raise WrongUse(Problem("inputs are given by position or by name", self._path.name, why, "write (**inputs)"))
        given = dict(zip(names, arrays, strict=False)) | dict(named)
        if len(arrays) + len(named) != len(names) or set(given) != set(names):
            why = f"it got {len(arrays)} by position" + (f" and {', '.join(named)}" if named else "")
            fix = f"give {', '.join(names)}" if names else "give none"
            what = f"the model takes {len(names)} input{'' if len(names) == 1 else 's'}"
            raise WrongUse(Problem(what, self._path.name, why, fix))
        return tuple(given[name] for name in names)

    def _as_listed(self, names: Sequence[str], values: Sequence[Any]) -> Outputs:
        """Results once for each time that the file lists their names: code computes each of them once."""
        if len(set(self._listed)) == len(self._listed):
            return Outputs(names, values)
        by_name = dict(zip(names, values, strict=True))
        listed = [name for name in self._listed if name in by_name]
        return Outputs(listed, [by_name[name] for name in listed])

    def _with_lists(self, session: Session, interface: Interface, arrays: Sequence[Any]) -> Outputs:
        """A call where inputs or outputs are sequences or may be absent."""
        report = session.report
        tensors = {tensor.name: tensor for tensor in report.inputs}

        def zeros(name: str) -> np.ndarray:
            return np.zeros(tensors[name].static_shape, tensors[name].dtype.numpy)

        flat: dict[str, np.ndarray] = {}
        for (name, form), value in zip(interface.inputs, arrays, strict=True):
            flat |= packed(form, value, zeros, name)
        results = session.run([flat[tensor.name] for tensor in report.inputs])
        by_name = {tensor.name: result for tensor, result in zip(report.outputs, results, strict=True)}
        outputs = interface.outputs
        return self._as_listed([name for name, _ in outputs], [unpacked(form, by_name) for _, form in outputs])

    @spoken
    def _built(self, shapes: Mapping[str, tuple[Any, ...]]) -> Session:
        options = replace(self._options, shapes={**self._options.shapes, **shapes})
        target = options.resolved_target()
        refuse_elsewhere(target)
        compiler = find_compiler(self._cc or target.compiler)
        try:
            in_files = self._path.is_dir()
            read = read_proto(self._path, options.reading).SerializeToString if in_files else self._path.read_bytes
            content = read()
        except OSError as error:
            raise BadFile(Problem(f"cannot read {self._path}", "", error.strerror or str(error))) from None

        def make(folder: Path) -> None:
            compile_file(self._path, options).write(folder / "out")
            build_shared(folder / "out", read_report(folder / "out"), folder / _SHARED, compiler, target.cflags)

        self._made_of = hashlib.sha256(content).hexdigest()
        others = [*_referred(self._path, content), *(front.file for front in options.prepend)]
        name = cache.key(content, others, options, target, str(compiler))
        folder = cache.entry(name, make)
        return Session(folder / _SHARED, folder / "out")


@spoken
def load(
    model: Any,
    options: Options | None = None,
    /,
    *,
    args: Any = (),
    dynamic: Dynamic | None = None,
    cc: str | None = None,
    **keywords: Any,
) -> Network:
    """A model as a function: `net = mccompile.load("kws.onnx"); scores, = net(features)`. It is compiled for this
    machine and built with its C compiler once; the result is kept in ~/.cache/mccompile ($MCCOMPILE_CACHE). Keywords
    are those of `mccompile.compile`."""
    given = options_of(options, keywords)
    if options is None and "target" not in keywords:
        given = replace(given, target="native")
    path, kept = model_file(model, args, dynamic)
    return Network(path, given, cc, kept)


def _unpickled(
    path: Path, content: bytes | None, options: Options, cc: str | None, made_of: str, saved: tuple[Any, Any] | None
) -> Network:
    kept = None
    if content is not None:
        path, kept = in_folder(content, path.name)
    network = Network(path, options, cc, kept)
    if saved is not None:
        network._go_on(*saved, made_of)
    return network


def _referred(path: Path, content: bytes) -> list[Path]:
    """Files below the model's folder that it may refer to: their names stand in it."""
    if b"location" not in content:
        return []
    return sorted(p for p in path.parent.rglob("*") if p.is_file() and p != path and p.name.encode() in content)


def _shape_of(value: Any) -> tuple[Any, ...]:
    return tuple(np.shape(element) for element in value) if isinstance(value, list | tuple) else np.shape(value)
