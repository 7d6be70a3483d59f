"""Sessions of onnxruntime that compute on one thread where nobody asks for a number of threads.

Else each has one per core, which wait for work without sleeping: a session that runs a small model once takes five
times as long. `mccompile check` makes its sessions so as well.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def by_default() -> None:
    """For all sessions that are made from now on, where onnxruntime is installed."""
    with suppress(ImportError):
        import onnxruntime

        if not issubclass(onnxruntime.InferenceSession, _OneThread):
            onnxruntime.InferenceSession = type("InferenceSession", (_OneThread, onnxruntime.InferenceSession), {})


class _OneThread:
    def __init__(self, model: Any, sess_options: Any = None, *more: Any, **named: Any) -> None:
        import onnxruntime

        options = sess_options or onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.intra_op_num_threads or 1
        super().__init__(model, options, *more, **named)  # type: ignore[call-arg]
