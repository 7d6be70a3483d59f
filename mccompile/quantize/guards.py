"""Is this calibration data for this model? What cannot be is refused, what is unlikely is a warning with the figure.

Ranges that come from wrong data quantize a network without a complaint, and only its answers show it. Refused: values
that are not finite, inputs that are one number in all samples. Warned of: few samples; ranges, and values that never
move, that the samples of --test leave; samples that are in both; answers no better than guesses.
`training_statistics.py` compares with what the network itself knows of its training data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.errors import BadFile, Problem, warn
from .samples import Feed, Samples, answers, arrays_of, right_answers

_FEW = 8  # samples
_NEAR = 4.0  # between ranges
_ENOUGH = 16  # labels, below which many right answers may be luck, and few as well
_ERRORS = 2.0  # standard errors, within which answers are guesses
_NO_CHANCE = 7.0  # samples in which a value should have moved: that none of them does has a chance of a thousandth


def check_samples(samples: Samples) -> None:
    """Raises BadFile for what no range comes from."""
    for name, array in arrays_of(samples.feeds).items():
        if not np.isfinite(array).all():
            wrong = ~np.isfinite(array)
            held = int(wrong.reshape(len(array), -1).any(1).sum())
            why = f"{np.count_nonzero(wrong)} of {array.size} values of {name} are NaN or infinite, in {held} samples"
            fix = f"store the other {len(array) - held} samples"
            if held == len(array):
                fix = (
                    "every sample has some, so mend what computes them (a division by 0, missing values): store finite"
                )
            raise BadFile(Problem("the calibration data is not finite", str(samples.path), why, fix))
        if array.size > 1 and array.dtype.kind == "f" and array.min() == array.max():
            why = f"every value of {name} is {array.flat[0]:g}"
            fix = "give samples of what the model will see"
            raise BadFile(Problem("the calibration data is constant", str(samples.path), why, fix))
    if len(samples.feeds) < _FEW:
        _warn(f"ranges come from {len(samples.feeds)} samples; 100 that look like what the model will see are better")


def check_test_set(samples: Samples, test: Samples) -> None:
    """Warns where inputs differ from those that results are measured with."""
    held = {_contents(feed) for feed in test.feeds}
    both = sum(_contents(feed) in held for feed in samples.feeds)
    if both:
        _warn(f"{both} of {len(samples.feeds)} calibration samples are in the test set too: others may come out worse")
    of_test = arrays_of(test.feeds)
    for name, array in arrays_of(samples.feeds).items():
        low, high = float(array.min()), float(array.max())
        other = of_test[name]
        spread, whole = high - low, float(other.max()) - float(other.min())
        if whole > _NEAR * spread or spread > _NEAR * whole:
            _warn(
                f"{name} is {low:g} to {high:g} in the calibration data, {other.min():g} to {other.max():g} in the "
                "test set: is one of them scaled otherwise?"
            )
        held = (array == array[0]).all(axis=0)
        held &= (other != array[0]).mean(axis=0) * len(array) > _NO_CHANCE
        if held.any():
            _warn(
                f"{np.count_nonzero(held)} of {held.size} values of {name} are the same in all of the calibration "
                "data, and move in the test set"
            )


def likely_accuracy(outputs: Sequence[np.ndarray], labels: np.ndarray) -> float:
    """The share of right answers of a model before it is changed, with a warning where guesses would do as well."""
    found, classes = right_answers(outputs, labels), len(np.unique(labels))
    chance = 1 / max(classes, 1)
    if classes < 2 or len(labels) < _ENOUGH or found > chance + _ERRORS * (chance * (1 - chance) / len(labels)) ** 0.5:
        return found
    given, wanted = answers(outputs), labels.astype(np.int64)
    shares = {by: float(np.mean(given == wanted[: len(given)] + by)) for by in (-1, 1)}
    by, most = max(shares.items(), key=lambda item: item[1])
    why = "are labels and preprocessing those of training?"
    if most > max(0.5, 2 * found):
        why = f"with labels {'one more' if by > 0 else 'one less'} it would be {most:.2%}"
    _warn(f"the model gives {found:.2%} right answers, guesses among {classes} classes {chance:.2%}: {why}")
    return found


def _contents(feed: Feed) -> bytes:
    return b"".join(feed[name].tobytes() for name in sorted(feed))


def _warn(text: str) -> None:
    warn(text)
