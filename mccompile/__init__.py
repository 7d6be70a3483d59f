"""mccompile: compiles trained ONNX networks, ahead of time, into plain C99.

mccompile.compile("kws.onnx", target="cortex-m4").write("out")    # C files for a device
kws = mccompile.load("kws.onnx")                                  # a function for this machine
scores, = kws(features)
net = mccompile.train("kws.onnx", loss="cross_entropy:scores")    # one that learns

In: a model file, or a model in memory, with `Options`.
Out: a `Package`: C files, weights, report.
First: `driver/compiling.py`, whose stages are in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .base.errors import MccError
    from .driver import Options
    from .python.audio import audio_frontend
    from .python.compiled import Compiled, compile
    from .python.network import Network, Outputs, load
    from .python.pictures import image_functions
    from .python.trainer import Trainer, train
    from .python.tuned import tune

__all__ = [
    "Compiled",
    "MccError",
    "Network",
    "Options",
    "Outputs",
    "Trainer",
    "__version__",
    "audio_frontend",
    "compile",
    "image_functions",
    "load",
    "train",
    "tune",
]

_HOMES = {
    "Compiled": "python.compiled",
    "MccError": "base.errors",
    "Network": "python.network",
    "Options": "driver",
    "Outputs": "python.network",
    "Trainer": "python.trainer",
    "audio_frontend": "python.audio",
    "backend": "",
    "compile": "python.compiled",
    "image_functions": "python.pictures",
    "load": "python.network",
    "train": "python.trainer",
    "tune": "python.tuned",
}


def __getattr__(name: str) -> Any:
    """The compiler is imported when it is first asked for, so that `mccompile --help` is quick."""
    from importlib import import_module

    if name not in _HOMES:
        from .python.called import instead

        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead(name)}")
    if not _HOMES[name]:
        return import_module(f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
