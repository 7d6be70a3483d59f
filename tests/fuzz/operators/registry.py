"""Which function puts which operator into a graph. A new operator is a name in one `@makes` line; every file of this
folder is a family, and families are drawn before operators, so that rare ones do not drown the common ones."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mccompile.frontend import composed_detectors, composed_early, composed_qonnx, composed_quantizers
from mccompile.frontend.supported import title as supported_title

from ..builder import Builder, Nothing, Value

Maker = Callable[[Builder, str], "Value | None"]


@dataclass(frozen=True)
class Entry:
    title: str  # as `mccompile ops` has it
    family: str
    make: Maker
    opset: int  # the least it can be made with

    @property
    def name(self) -> str:
        return self.title.rpartition("::")[2]

    def put(self, g: Builder) -> Value | None:
        """The operator in the graph; None where nothing suits it."""
        try:
            return self.make(g, self.name)
        except Nothing:
            return None


_ENTRIES: dict[str, Entry] = {}
# How often a family is drawn, where not once.
WEIGHTS = {
    "elementwise": 6.0,
    "moves": 6.0,
    "products": 3.0,
    "windows": 4.0,
    "reductions": 3.0,
    "normalizations": 3.0,
    "indexing": 3.0,
    "quantized": 2.5,
    "control": 1.5,
    "recurrent": 1.0,
    "sequences": 1.0,
    "microsoft": 1.0,
    "learned": 0.7,
    "text": 0.4,
    "chance": 0.3,
}
TALL = {"windows": 30.0}  # the same where pictures have many rows


def makes(*titles: str, opset: int = 13) -> Callable[[Maker], Maker]:
    def register(make: Maker) -> Maker:
        family = make.__module__.rpartition(".")[2]
        for title in titles:
            _ENTRIES[title] = Entry(title, family, make, opset)
        return make

    return register


@cache
def entries() -> dict[str, Entry]:
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "registry":
            importlib.import_module(f"tests.fuzz.operators.{path.stem}")
    return dict(sorted(_ENTRIES.items()))


def drawn(g: Builder) -> Entry:
    found = [entry for entry in entries().values() if entry.opset <= g.opset]
    families = sorted({entry.family for entry in found})
    weights = [(TALL if g.tall else WEIGHTS).get(family, WEIGHTS.get(family, 1.0)) for family in families]
    total = sum(weights)
    family = families[int(g.chance.choice(len(families), p=[weight / total for weight in weights]))]
    return g.pick([entry for entry in found if entry.family == family])


# Operators that no graph gets, and why.
EXEMPT = {
    "ai.onnx.ml::ZipMap": "its result is not a tensor; tests/ops/test_ml.py",
    "com.microsoft::QLinearReduceMean": "onnxruntime does not run it any more, and nobody else does",
    "com.microsoft::DecoderMaskedMultiHeadAttention": "tests/frontend/test_composed_buffered.py",
    "com.microsoft::SparseAttention": "caches at one place before and after; tests/frontend/test_composed_sparse.py",
    "com.microsoft::EmbedLayerNormalization": "tests/frontend/test_composed_blocks.py",
    "ai.onnx.preview.training::Gradient": "it stands for nodes of others, which tests/gradients draws",
    **{
        supported_title(*key): "of one exporter, which references do not run; tests/exporters"
        for other in (composed_early, composed_detectors, composed_qonnx, composed_quantizers)
        for key in other.WRITERS
        if key[0] != "com.microsoft"
    },
}
