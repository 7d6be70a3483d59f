"""How far what a program has learned is from what it should have: losses, outputs, running averages, gradients, steps.

Gradients are compared along directions: one that moves all weights, one for each weight, which moves all its elements,
and single elements. Invariant: where rounding alone may lead as far away, what is off is `near`, not wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..base.records import dataclass
from ..toolchain.learning import TrainingRecord
from .learning import Arrays, Optimizer, Reference, shaken

LOSS, OUTPUT, AVERAGE, GRADIENT, STEP = "loss", "outputs", "averages", "gradients", "steps"
KINDS = (LOSS, OUTPUT, AVERAGE, GRADIENT, STEP)
MOVED = 3  # times that a reference is moved by a millionth, where something seems to be off
MOST_OFF = 30  # times as far as that moves it
FLOOR = 1e-2  # what is smaller is told as if it were of this size
ATOL = 1e-6
# Of the losses of a step times its largest weight, that rounding may leave in slopes: 1 - tanh^2 of what saturates has
# few digits, and weights behind it multiply what is off.
OF_LOSS = 4 * 2.0**-24
MOST_LOST = 5e-7  # of a gradient, where it is what a weight has moved by
STEP_RTOL, STEP_ATOL = 1e-5, 1e-7
# of weights and batches that are moved a little, by what rounds; or as they are, without
Wanted = Callable[[np.random.Generator | None], float]
Read = Callable[[Reference, Arrays, Arrays], float]  # of weights and a batch


@dataclass(frozen=True)
class Finding:
    """Something that was compared."""

    kind: str
    what: str
    batch: int
    got: float
    right: float
    rel: float  # how far it is off, beside its own size
    verdict: str  # "ok", "near", "wrong"

    def __str__(self) -> str:
        return f"{self.what} of batch {self.batch} is {self.got:.8g}, not {self.right:.8g}"


class TrainingComparison:
    """A reference, what a program was given, and what it told."""

    def __init__(self, judged: Reference, batches: Sequence[Arrays], told: TrainingRecord, seed: Sequence[int]) -> None:
        self.judged, self.batches, self.told = judged, batches, told
        self.chance = np.random.default_rng(seed)
        self.bent = 0  # directions in which a loss bends, so that it has no slope

    def findings(self, rtol: float, places: int, singles: int) -> Iterator[Finding]:
        """`places`: elements of each output, average and weight that are looked at; `singles`: gradients of such
        elements of all weights together."""
        steps, since, asked = Optimizer(self.judged.asked), 0, self.judged.asked
        for number in range(len(self.batches)):
            since = 1 if asked.at_once else since + 1
            lost = OF_LOSS * self._largest(number) * sum(map(abs, self.told.losses[number + 1 - since : number + 1]))
            for kind, what, got, wanted in self._seen(number, since, places, singles):
                least = max(ATOL, lost) if kind == GRADIENT else ATOL
                yield self._compared(kind, what, number, got, wanted, max(least, rtol * abs(got)))
            if not asked.at_once and since == asked.accumulate:
                yield from self._stepped(steps, number, since)
                since = 0

    def _largest(self, number: int) -> float:
        """The largest weight of a batch, if it is above 1."""
        weights = self.judged.floats(self.told.weights[number]).values()
        return max(1.0, *(float(np.abs(weight).max(initial=0)) for weight in weights))

    def _compared(self, kind: str, what: str, batch: int, got: float, wanted: Wanted, allowed: float) -> Finding:
        right = wanted(None)
        off, verdict = abs(got - right), "ok"
        if not off <= allowed:
            most = max(abs(wanted(self.chance) - right) for _ in range(MOVED))
            verdict = "near" if off <= MOST_OFF * most else "wrong"
        return Finding(kind, what, batch, got, right, off / max(FLOOR, abs(got)), verdict)

    def _stepped(self, steps: Optimizer, number: int, since: int) -> Iterator[Finding]:
        """Every element of every weight behind a step."""
        told, count = self.told, steps.steps
        before = self.judged.floats(told.weights[number])
        for name, array in steps.step(before, told.sums[number], since).items():
            got, allowed = told.weights[number + 1][name], STEP_ATOL + STEP_RTOL * np.abs(array)
            if got.dtype.kind in "iu":
                least, most = self.judged.bounds(name, told.weights[number][name], array, count, allowed)
                array, allowed = np.clip(got, least, most), np.zeros(got.shape)
            off = np.abs(got - array)
            at = _index(int(np.argmax(off - allowed)), off.shape)
            right = bool((off <= allowed).all())
            rel = float(off[at]) / max(FLOOR, abs(float(array[at])))
            verdict = "ok" if right else "wrong"
            yield Finding(STEP, f"the new {_of(name, at)}", number, float(got[at]), float(array[at]), rel, verdict)

    def _seen(self, number: int, since: int, places: int, singles: int) -> Iterator[tuple[str, str, float, Wanted]]:
        """What a batch leads to, and what it should: the loss, some elements of what comes out, and of gradients."""
        judged, told = self.judged, self.told
        before, after = judged.floats(told.weights[number]), told.weights[number + 1]
        batches = self.batches[number + 1 - since : number + 1]

        def of_batch(read: Read, weights: Arrays) -> Wanted:
            return lambda shake: read(judged.rounding(shake), shaken(weights, shake), shaken(batches[-1], shake))

        yield LOSS, "the loss", told.losses[number], of_batch(lambda by, w, b: by.loss(w, b), before)
        output = told.outputs[number][judged.name]
        for at in self._places(output, places):
            nearest = _rounded_to(float(output[at])) if output.dtype.kind in "iu" else float
            wanted = of_batch(_output(at, nearest), after)
            yield OUTPUT, _of(judged.name, at), float(output[at]), wanted
        averages = judged.averages(before, batches[-1])
        for name, at in [(name, at) for name, array in averages.items() for at in self._places(array, places)]:
            wanted = of_batch(_average(name, at), before)
            yield AVERAGE, f"the average {_of(name, at)}", float(after[name][at]), wanted
        learned = {name: weight for name, weight in before.items() if name not in averages}
        for what, along in self._directions(learned, places, singles):
            if judged.slope(before, batches, along) is None:
                self.bent += 1
                continue

            def slope(shake: np.random.Generator | None, along: Arrays = along) -> float:
                moved = [shaken(batch, shake) for batch in batches]
                found = judged.rounding(shake).slope(shaken(before, shake), moved, along)
                return np.inf if found is None else found

            got = self._slope(number, along)
            if got is not None:
                yield GRADIENT, f"the gradient {what}", got, slope

    def _slope(self, number: int, along: Arrays) -> float | None:
        """By the program's gradients; where weights move at once, by what these made of them. None where a step loses
        too many digits."""
        told, asked = self.told, self.judged.asked
        before, after = told.weights[number], told.weights[number + 1]
        total = digits = 0.0
        for name, way in along.items():
            if not asked.at_once:
                total += float((told.sums[number][name].astype(np.float64) * way).sum())
                continue
            moved = before[name].astype(np.float64) - after[name]
            total += float((moved * way).sum()) / asked.optimizer.lr
            digits += float(((before[name] * way) ** 2).sum())
        lost = 2.0**-23 * np.sqrt(digits) / asked.optimizer.lr
        return None if lost > MOST_LOST else total

    def _directions(self, weights: Arrays, places: int, singles: int) -> Iterator[tuple[str, Arrays]]:
        ways = {name: self._way(weight.shape) for name, weight in weights.items()}
        yield "of all weights, along a random direction", ways
        if not singles:
            return
        if len(weights) > 1:
            for name, way in ways.items():
                yield f"of {name}, along a random direction", {name: way}
        found = [(name, at) for name, weight in weights.items() for at in self._places(weight, places)]
        for chosen in self.chance.permutation(len(found))[:singles]:
            name, at = found[chosen]
            one = np.zeros(weights[name].shape)
            one[at] = 1.0
            yield f"of {_of(name, at)}", {name: one}

    def _way(self, shape: tuple[int, ...]) -> np.ndarray:
        """A direction of length 1."""
        way = self.chance.standard_normal(shape)
        return np.asarray(way / max(1e-30, float(np.sqrt((way**2).sum()))))

    def _places(self, array: np.ndarray, count: int) -> list[tuple[int, ...]]:
        flat = self.chance.permutation(array.size)[:count]
        return [_index(int(place), array.shape) for place in flat]


def _output(at: tuple[int, ...], nearest: Callable[[float], float]) -> Read:
    return lambda by, weights, batch: nearest(by.output(weights, batch)[at])


def _average(name: str, at: tuple[int, ...]) -> Read:
    return lambda by, weights, batch: float(by.averages(weights, batch)[name][at])


def _rounded_to(got: float) -> Callable[[float], float]:
    """Of a number, how far from an integer it is beyond the half that rounding takes, counted from that integer."""
    return lambda right: got + float(np.sign(right - got)) * max(0.0, abs(float(right) - got) - 0.5)


def _index(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(n) for n in np.unravel_index(place, shape))


def _of(name: str, at: Sequence[int]) -> str:
    return f"{name}[{','.join(map(str, at))}]" if len(at) else name
