"""What a model should compute: onnxruntime with its optimiser off where it is installed, else onnx's reference
evaluator, else our own judge; of a .tflite file LiteRT's interpreter where that is installed (check/litert.py).

All run the file itself. The only module that imports onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import CheckFailed, Problem
from ..frontend.original import Original, nudged
from ..frontend.pieces import Pieces
from ..importers.api import AS_IT_IS, Reading
from ..judge.rules import CHOICES, Graph, NoWitness, Unspecified
from ..judge.run import Rounding, judge, narrowed
from .litert import Litert, speaks_for

NUDGED = 6  # models with other weights, each of them as good as the file's
EVALUATOR = "onnx reference evaluator"
JUDGE = "our judge"
_OTHERS = frozenset({"Bernoulli", "Multinomial"})  # whose numbers ONNX's evaluator does not draw as the text says
FURTHER = range(NUDGED, 40)  # more of them, where a label may be one of two that come out equal


class Oracle:
    """The reference of one model; `also` are inner tensors that it gives besides the outputs."""

    def __init__(self, path: Path, also: Sequence[str] = (), reading: Reading = AS_IT_IS) -> None:
        self.original = Original(path, reading)
        self._draws = self.original.drawing if reading.seeded else frozenset[str]()
        self.also = tuple(also)
        speaks = not (also or self._draws) and speaks_for(self.original)
        self._litert = Litert(self.original) if speaks else None
        runs = has_runtime() and not self._draws
        self._session = _session(self.original, self.original.serialized(self.also)) if runs else None
        self._has_run = False
        self._instead = ""  # who has run the last inputs in place of onnxruntime
        self._wide: Callable[[Mapping[str, Any]], dict[str, Any] | None] | None = None
        self.decider = ""  # who gave the last doubles

    @property
    def name(self) -> str:
        """Of what made the last results."""
        if self._litert is not None:
            return "LiteRT"
        return self._instead or ("onnxruntime" if self._session is not None else EVALUATOR)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name: arrays, lists of them, None."""
        if self._litert is not None:
            made = self._litert.run(inputs)
            if made is not None:
                return made
            self._litert = None  # an operator that it does not have
        if self._session is not None:
            names = [*self.original.outputs, *self.also]
            try:
                results = self._session.run(names, dict(inputs))
            except session_errors() as error:
                evaluated = self._evaluated(inputs, str(error))
                if not self._has_run:
                    self._session = None  # an element type or operator that it does not have
                return evaluated
            self._has_run, self._instead = True, ""
            return self.original.named(names, results)
        return self._without_runtime(inputs)

    def _without_runtime(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """By onnx's reference evaluator, which has few operators in old versions; else by our own judge. Where random
        numbers are drawn the judge comes first."""
        if self._draws:
            with suppress(NoWitness):
                return self._by_judge(inputs)
        self._instead = EVALUATOR
        if self._draws & _OTHERS:
            operators = ", ".join(sorted(self._draws & _OTHERS))
            what, why = f"nothing draws the numbers of {operators} as mccompile does", "our judge has not all operators"
            fix = "give inputs with outputs: --data DIR"
            raise CheckFailed(Problem(what, str(self.original.path), why, fix))
        try:
            return self.original.evaluate(inputs, self.also)
        except CheckFailed:
            with suppress(NoWitness):
                return self._by_judge(inputs)
            raise

    def _by_judge(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        found = self.judged(inputs)
        self._instead = JUDGE
        return {name: narrowed(value, self._graph.types.get(name, "")) for name, value in found.items()}

    def doubles(self, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        """The outputs as doubles, computed in doubles throughout; None where nothing can do that. Our own judge does it
        where it has all operators, else onnxruntime, else (slowly) the reference evaluator. Nothing does what LiteRT
        does in doubles."""
        if self._litert is not None:
            return None
        with suppress(NoWitness):
            self.decider = JUDGE
            return self.judged(inputs)
        self.decider = ""
        if self._draws:
            return None
        if self._wide is None and has_runtime():
            self._wide = partial(self._tried, _session(self.original, self.original.widened(self.also)), _widened)
        found = self._wide(inputs) if self._wide is not None else None
        return self.original.in_doubles(inputs, self.also) if found is None else found

    @cached_property
    def _graph(self) -> Graph:
        return self.original.judged(self.also)

    def judged(
        self, inputs: Mapping[str, Any], shaken: Rounding | None = None, choice: int | None = None
    ) -> dict[str, Any]:
        """The outputs in real arithmetic, by our own judge; `shaken`, as rounding may make them. Raises NoWitness."""
        found = judge(self._graph, inputs, shaken, choice)
        return self.original.named(list(found), list(found.values()))

    def allowed(self, inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The outputs by our own judge, in each way that the standard leaves open. Raises NoWitness."""
        try:
            return [self.judged(inputs)]
        except Unspecified:
            return [self.judged(inputs, choice=choice) for choice in CHOICES]

    def witnesses(self) -> Iterator[tuple[str, Callable[[Mapping[str, Any]], list[dict[str, Any]]]]]:
        """All that are installed, by name, with what each says: nothing where it cannot run the model, more than one
        thing where it leaves results open."""
        if self._litert is not None:
            yield "LiteRT", _alone(self._litert.run)
        if self._draws and has_runtime():
            yield "onnxruntime", _drawing_others
        elif has_runtime():
            session = self._session or _session(self.original, self.original.serialized(self.also))
            yield "onnxruntime", _alone(partial(self._tried, session, _as_given))
        yield EVALUATOR, _drawing_others if self._draws & _OTHERS else _alone(self._by_evaluator)
        yield JUDGE, self.allowed

    def _by_evaluator(self, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        with suppress(CheckFailed):
            return self.original.evaluate(inputs, self.also)
        return None

    def others(self) -> Iterator[Callable[[Mapping[str, Any]], dict[str, Any] | None]]:
        """The same model as it is, then computed otherwise: by onnxruntime's optimiser, in doubles, and with weights
        and inputs nudged. Each makes outputs of inputs, or None where it cannot."""
        if self._litert is not None:
            yield from self._litert.others()
            return
        if self._session is None:
            return
        original = self.original
        for optimised in (False, True):
            session = _session(original, original.serialized(self.also), optimised)
            yield partial(self._tried, session, _as_given)
        yield partial(self._tried, _session(original, original.widened(self.also)), _widened)
        yield from self.nudged(range(NUDGED))

    def nudged(self, numbers: Iterable[int]) -> Iterator[Callable[[Mapping[str, Any]], dict[str, Any] | None]]:
        """The same with weights and inputs nudged, in so many ways."""
        original = self.original
        for number in numbers if self._session is not None and self._litert is None else ():
            chance = np.random.default_rng(number)
            yield partial(self._tried, _session(original, original.nudged(chance, self.also)), partial(_nudged, chance))

    def _tried(self, session: Any, change: Callable[[Any], Any], inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        if session is None:  # onnxruntime does not take the model in this form
            return None
        given = {name: change(value) if _is_float(value) else value for name, value in inputs.items()}
        names = [*self.original.outputs, *self.also]
        try:
            return self.original.named(names, session.run(names, given))
        except session_errors():
            return None

    def _evaluated(self, inputs: Mapping[str, Any], why: str) -> dict[str, Any]:
        try:
            return self._without_runtime(inputs)
        except CheckFailed as failed:
            fix = "where it is about the inputs, give some that suit the model: --data DIR"
            what, said = "onnxruntime cannot run the model", why.strip().splitlines()[-1]
            raise CheckFailed(Problem(what, str(self.original.path), said, fix)) from failed


class DrawsOthers(NoWitness):
    """A seed does not mean the same numbers to it."""


def _drawing_others(inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    raise DrawsOthers("it draws other random numbers")


def has_runtime() -> bool:
    """Is onnxruntime installed?"""
    return find_spec("onnxruntime") is not None


@cache
def session_errors() -> tuple[type[Exception], ...]:
    """Everything that onnxruntime raises; its exceptions have no class in common. RuntimeError: element types numpy
    does not have."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    own = [item for item in vars(state).values() if isinstance(item, type) and issubclass(item, Exception)]
    return (*own, RuntimeError, ValueError)


def _alone(
    run: Callable[[Mapping[str, Any]], dict[str, Any] | None],
) -> Callable[[Mapping[str, Any]], list[dict[str, Any]]]:
    def said(inputs: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = run(inputs)
        return [] if found is None else [found]

    return said


def _as_given(array: np.ndarray) -> np.ndarray:
    return array


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _nudged(chance: np.random.Generator, array: np.ndarray) -> np.ndarray:
    return nudged(array, chance)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _session(original: Original, model: bytes, optimised: bool = False) -> Any:
    """None where onnxruntime does not take the model. What users compute themselves it does not have."""
    made = _whole_session(original, model, optimised)
    if made is not None or not original.reading.functions:
        return made
    pieces = Pieces(model, original.reading.functions, lambda piece: _whole_session(original, piece, optimised))
    return pieces if pieces.has_own else None


def _whole_session(original: Original, model: bytes, optimised: bool) -> Any:
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")  # what the optimiser fuses does not saturate
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", str(original.path.resolve().parent)
    )
    try:
        return onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
    except session_errors():
        return None
