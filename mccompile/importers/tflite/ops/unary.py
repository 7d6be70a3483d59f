"""One operand, element by element."""

from __future__ import annotations

from ..site import Site, converts

_PLAIN = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "COS": "Cos",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "LOG": "Log",
    "LOGISTIC": "Sigmoid",
    "NEG": "Neg",
    "RELU": "Relu",
    "ROUND": "Round",
    "SIGN": "Sign",
    "SIN": "Sin",
    "SQRT": "Sqrt",
    "TANH": "Tanh",
}
_CLIPS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


@converts(*_PLAIN)
def _plain(site: Site) -> None:
    site.give(site.op(_PLAIN[site.name], site.real(0)))


@converts(*_CLIPS)
def _clip(site: Site) -> None:
    site.give(site.clip(site.real(0), *_CLIPS[site.name]))


@converts("RSQRT")
def _rsqrt(site: Site) -> None:
    site.give(site.op("Reciprocal", site.op("Sqrt", site.real(0))))


@converts("SQUARE")
def _square(site: Site) -> None:
    x = site.real(0)
    site.give(site.op("Mul", x, x))


@converts("ELU")
def _elu(site: Site) -> None:
    site.give(site.op("Elu", site.real(0), alpha=1.0))


@converts("LEAKY_RELU")
def _leaky_relu(site: Site) -> None:
    site.give(site.op("LeakyRelu", site.real(0), alpha=site.options("LeakyReluOptions").real("Alpha")))


@converts("PRELU")
def _prelu(site: Site) -> None:
    site.give(site.op("PRelu", site.real(0), site.real(1)))


@converts("HARD_SWISH")
def _hard_swish(site: Site) -> None:
    site.give(site.op("HardSwish", site.real(0)))


@converts("GELU")
def _gelu(site: Site) -> None:
    approximate = "tanh" if site.options("GeluOptions")["Approximate"] else "none"
    site.give(site.op("Gelu", site.real(0), approximate=approximate))


@converts("LOGICAL_NOT")
def _logical_not(site: Site) -> None:
    site.store(site.op("Not", site.stored(0)))


@converts("ZEROS_LIKE")
def _zeros_like(site: Site) -> None:
    site.store(site.op("Expand", site.number(0, site.dtype(0)), site.ints(*site.shape(0))))
