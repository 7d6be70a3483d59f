"""Front ends for networks of audio, as ONNX models in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.errors import Problem, WrongUse
from ..driver import read
from ..frontend.audio_front_end import front_end
from .compiled import model_file
from .keywords import options_of


def audio_frontend(
    style: str = "plain",
    *,
    mfcc: bool = False,
    network: Any = None,
    input: str = "",  # noqa: A002
    dims: Mapping[str, int] | None = None,
    quantized: tuple[float, int] | tuple[float, int, str] | None = None,
    features_first: bool | None = None,
    **settings: Any,
) -> Any:
    """The ONNX model of a front end: from samples to what networks of audio are trained on.

    `style` has the defaults of a library: plain, librosa, torchaudio, tensorflow or keras. `mfcc`: with the cosine
    transform and as many coefficients as there. `network` (with `input`, where it has several, and `dims`, where it
    leaves sizes open) says shape, frames and quantization; where it has as many frames as features, `features_first`
    tells which come first. `quantized`: scale, zero point and maybe "uint8". Settings are those of `mccompile frontend
    --help-all`, such as `rate=16000, window=480, hop=320, mels=40`."""
    if quantized is not None and len(quantized) not in (2, 3):
        why = f"it is {quantized!r}"
        raise WrongUse(Problem("features cannot be quantized so", "quantized", why, "give (scale, zero_point)"))
    scale = None if quantized is None else (*quantized, "int8")[:3]
    graph, kept = None, None
    if network is not None:
        path, kept = model_file(network)
        graph = read(path, options_of(None, {"dims": dims or {}}))
    made = front_end(style, mfcc, graph, input, scale, features_first, **settings)
    del kept
    return made
