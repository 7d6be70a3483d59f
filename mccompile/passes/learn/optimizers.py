"""Optimizers: the new values of a weight and of its statistics, given the gradient; the arithmetic is PyTorch's.

Invariant: all statistics begin with zeros. What depends on the number of steps is kept as 1 - beta^steps, which a step
turns into 1 - beta^(steps + 1) without losing digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import ClassVar

import numpy as np

from ...base.dtypes import f32
from ...base.errors import Problem, WrongUse
from ...base.near import meant
from ...base.records import dataclass
from ...expr.ir import Expr, apply, literal, operand

Number = Expr | float


def number(value: Number) -> Expr:
    return value if isinstance(value, Expr) else literal(value, f32)


def add(a: Number, b: Number) -> Expr:
    return apply("add", number(a), number(b))


def sub(a: Number, b: Number) -> Expr:
    return apply("sub", number(a), number(b))


def mul(a: Number, b: Number) -> Expr:
    return apply("mul", number(a), number(b))


def div(a: Number, b: Number) -> Expr:
    return apply("div", number(a), number(b))


def root(a: Expr) -> Expr:
    return apply("sqrt", a)


Kept = Mapping[str, Expr]


@dataclass(frozen=True)
class Optimizer:
    """Expressions of one element: `kept_after` is told the statistics before a step, `weight_after` those after it."""

    name: ClassVar[str] = ""
    statistics: ClassVar[tuple[str, ...]] = ()  # of each weight
    counts: ClassVar[Mapping[str, str]] = {}  # of all weights: what is kept of each of these betas
    lr: float = 0.01
    weight_decay: float = 0.0

    @property
    def text(self) -> str:
        """What `optimizer` makes it of."""
        given = [(field.name, getattr(self, field.name), field.default) for field in fields(self)]
        return ",".join([self.name, *(f"{name}={value!r}" for name, value, plain in given if value != plain)])

    def kept_after(self, weight: Expr, gradient: Expr, kept: Kept) -> dict[str, Expr]:
        return {}

    def weight_after(self, rate: Expr, weight: Expr, gradient: Expr, kept: Kept) -> Expr:
        raise NotImplementedError

    def decayed(self, weight: Expr, gradient: Expr) -> Expr:
        return add(gradient, mul(self.weight_decay, weight)) if self.weight_decay else gradient

    def counted(self, count: str, before: Expr) -> Expr:
        """1 - beta^steps after one more step."""
        beta = float(getattr(self, self.counts[count]))
        return add(mul(beta, before), 1 - beta)


@dataclass(frozen=True)
class Sgd(Optimizer):
    name = "sgd"

    def weight_after(self, rate: Expr, weight: Expr, gradient: Expr, kept: Kept) -> Expr:
        return sub(weight, mul(rate, self.decayed(weight, gradient)))


@dataclass(frozen=True)
class Momentum(Optimizer):
    """As torch.optim.SGD with momentum."""

    name = "momentum"
    statistics = ("velocity",)
    momentum: float = 0.9
    nesterov: float = 0.0  # 1: look ahead

    def kept_after(self, weight: Expr, gradient: Expr, kept: Kept) -> dict[str, Expr]:
        return {"velocity": add(mul(self.momentum, kept["velocity"]), self.decayed(weight, gradient))}

    def weight_after(self, rate: Expr, weight: Expr, gradient: Expr, kept: Kept) -> Expr:
        ahead = add(self.decayed(weight, gradient), mul(self.momentum, kept["velocity"]))
        return sub(weight, mul(rate, ahead if self.nesterov else kept["velocity"]))


@dataclass(frozen=True)
class Adam(Optimizer):
    name = "adam"
    statistics = ("mean", "variance")
    counts: ClassVar[Mapping[str, str]] = {"mean_weight": "beta1", "variance_weight": "beta2"}
    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    def kept_after(self, weight: Expr, gradient: Expr, kept: Kept) -> dict[str, Expr]:
        gradient = self.decayed(weight, gradient)
        mean = add(mul(self.beta1, kept["mean"]), mul(1 - self.beta1, gradient))
        variance = add(mul(self.beta2, kept["variance"]), mul(1 - self.beta2, mul(gradient, gradient)))
        return {"mean": mean, "variance": variance}

    def weight_after(self, rate: Expr, weight: Expr, gradient: Expr, kept: Kept) -> Expr:
        below = add(div(root(kept["variance"]), root(kept["variance_weight"])), self.eps)
        return sub(weight, mul(div(rate, kept["mean_weight"]), div(kept["mean"], below)))


@dataclass(frozen=True)
class AdamW(Adam):
    """The weights decay by themselves, and not in the gradient."""

    name = "adamw"
    weight_decay: float = 0.01

    def decayed(self, weight: Expr, gradient: Expr) -> Expr:
        return gradient

    def weight_after(self, rate: Expr, weight: Expr, gradient: Expr, kept: Kept) -> Expr:
        smaller = mul(weight, sub(1.0, mul(rate, self.weight_decay))) if self.weight_decay else weight
        return super().weight_after(rate, smaller, gradient, kept)


@dataclass(frozen=True)
class Adagrad(Optimizer):
    name = "adagrad"
    statistics = ("squares",)
    eps: float = 1e-10

    def kept_after(self, weight: Expr, gradient: Expr, kept: Kept) -> dict[str, Expr]:
        gradient = self.decayed(weight, gradient)
        return {"squares": add(kept["squares"], mul(gradient, gradient))}

    def weight_after(self, rate: Expr, weight: Expr, gradient: Expr, kept: Kept) -> Expr:
        below = add(root(kept["squares"]), self.eps)
        return sub(weight, mul(rate, div(self.decayed(weight, gradient), below)))


OPTIMIZERS = {kind.name: kind for kind in (Sgd, Momentum, Adam, AdamW, Adagrad)}


def optimizer(text: str) -> Optimizer:
    """As users write it: NAME,KEY=NUMBER,..."""
    name, *given = text.split(",")
    if name not in OPTIMIZERS:
        why = f"they are {', '.join(OPTIMIZERS)}"
        fix = meant(name, OPTIMIZERS, "--optimizer") or "write --optimizer sgd,lr=0.01"
        raise WrongUse(Problem(f"there is no optimizer {name!r}", "--optimizer", why, fix))
    kind, values = OPTIMIZERS[name], dict[str, float]()
    known = [field.name for field in fields(kind)]
    for pair in given:
        key, _, value = pair.partition("=")
        if key not in known:
            why = f"it has {', '.join(known)}"
            others = [other for other in OPTIMIZERS if any(field.name == key for field in fields(OPTIMIZERS[other]))]
            fix = meant(key, known) or f"write --optimizer {name},lr=0.01"
            fix = f"did you mean --optimizer {others[0]},{pair}?" if others else fix
            raise WrongUse(Problem(f"{name} has no {key!r}", "--optimizer", why, fix))
        if key in values:
            raise WrongUse(Problem(f"{key} is given twice", "--optimizer", "", f"leave one {key}= out"))
        values[key] = _in_range(name, key, value)
    return kind(**values)


def _in_range(name: str, key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))  # as weights are
    if key == "nesterov":
        fits, why = value in (0, 1), "it is 0 or 1"
    elif key.startswith("beta") or key == "momentum":
        fits, why = value >= 0 and rounded < 1, "it is a number from 0 to below 1"
    else:
        fits, why = value >= 0 and rounded < math.inf, "it is a finite number of f32 from 0 on"
    if not fits:
        fix = f"leave it out: {name} has one of its own"
        raise WrongUse(Problem(f"{key}={text} is not a valid {key} of {name}", "--optimizer", why, fix))
    return value


def place(number: int) -> Expr:
    return operand(number, f32)
