"""mccompile: compiles trained ONNX networks, ahead of time, into plain C99.

    package = mccompile.compile(Path("model.onnx"), mccompile.Options(target="cortex-m4"))
    package.write(Path("out"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .driver import Options, compile

__all__ = ["Options", "__version__", "compile"]


def __getattr__(name: str) -> Any:
    """The compiler is imported when it is first asked for, so that `mccompile --help` is quick."""
    if name in ("compile", "Options"):
        from . import driver

        return getattr(driver, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
