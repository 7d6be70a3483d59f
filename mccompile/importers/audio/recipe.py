"""What a front end computes: a style's defaults, and what is asked for instead.

Invariant: a recipe that `recipe` gives can be made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

from ...base.errors import Problem, WrongUse, raise_all
from ...base.near import meant
from ...base.records import dataclass

KINDS = {
    "window_kind": ("hann", "hamming", "hann-symmetric", "hamming-symmetric", "ones"),
    "padding": ("none", "zeros", "reflect"),
    "mel_scale": ("htk", "slaney", "tensorflow"),
    "mel_norm": ("none", "slaney"),
    "log": ("db", "natural", "pcen", "pcan", "none"),
    "arithmetic": ("float", "integer"),
    "dct": ("ortho", "htk"),
    "delta_ends": ("interp", "repeat"),
    "samples_type": ("int16", "float32"),
}


def _about(default: Any, words: str) -> Any:
    return field(default=default, metadata={"help": words})


@dataclass(frozen=True)
class Recipe:
    rate: int = _about(16000, "Samples per second.")
    window: int = _about(480, "Samples of a frame.")
    hop: int = _about(320, "Samples from one frame to the next.")
    fft: int = _about(0, "Length of the Fourier transform; 0: the power of two that holds a frame.")
    frames: int = _about(0, "Frames of a window of the network; 0: as many as --samples hold.")
    samples: int = _about(0, "Samples of the input; 0: those of --frames, or one second.")
    samples_type: str = _about("int16", "int16, or float32 from -1 to 1.")
    window_kind: str = _about("hann", "Weights of a frame's samples.")
    padding: str = _about("none", "What stands around the samples, half a transform on each side: frames are centred.")
    power: int = _about(2, "2: power of each frequency; 1: magnitude.")
    mels: int = _about(40, "Filters on the mel scale; 0: the spectrum itself.")
    low: float = _about(0.0, "Lowest frequency of the filters, Hz.")
    high: float = _about(0.0, "Highest frequency of the filters, Hz; 0: half the rate.")
    mel_scale: str = _about("htk", "htk, slaney, or tensorflow (HTK's, with filters even in mel and without DC).")
    mel_norm: str = _about("none", "slaney: filters of equal area.")
    log: str = _about("natural", "db, natural, pcen (per-channel energy), pcan (the same in integers) or none.")
    floor: float = _about(0.0, "Energies below it count as that much before the logarithm.")
    offset: float = _about(0.0, "Added before the logarithm.")
    top_db: float = _about(0.0, "Nothing is further below the window's largest than this; 0: whatever it is.")
    coefficients: int = _about(0, "Coefficients of the cosine transform (MFCC); 0: none is made.")
    dct: str = _about("ortho", "Scaling of the cosine transform: ortho, or htk as tf.signal has it.")
    delta: int = _about(0, "1: add first differences; 2: second differences too.")
    delta_width: int = _about(9, "Frames that a change is computed from.")
    delta_ends: str = _about("interp", "Near the ends: interp, the change of the last whole stretch, or repeat.")
    pcen_gain: float = _about(0.98, "Exponent of the smoothed energy.")
    pcen_bias: float = _about(2.0, "Added before the root.")
    pcen_power: float = _about(0.5, "The root.")
    pcen_time: float = _about(0.4, "Seconds of the smoothing.")
    pcen_floor: float = _about(1e-6, "Added to the smoothed energy.")
    arithmetic: str = _about("float", "float, or integer: as audio_microfrontend, for cores without floats.")
    noise_even: float = _about(0.025, "In integers: part of a frame in the estimate of noise, every second filter.")
    noise_odd: float = _about(0.06, "The same for the others.")
    noise_left: float = _about(0.05, "Part of the signal that is left whatever the noise.")
    pcan_strength: float = _about(0.95, "Exponent of the noise with pcan.")
    pcan_offset: float = _about(80.0, "Added to the noise before.")

    @property
    def transform(self) -> int:
        return self.fft or 1 << (self.window - 1).bit_length()

    @property
    def bins(self) -> int:
        return self.transform // 2 + 1

    @property
    def top(self) -> float:
        return self.high or self.rate / 2

    @property
    def around(self) -> int:
        """Samples that are added on each side. Zeros around a window that is shorter than the transform change no
        magnitude, so frames have none."""
        if self.padding == "none":
            return 0
        return self.transform // 2 - (self.transform - self.window) // 2

    @property
    def features(self) -> int:
        return (self.coefficients or self.mels or self.bins) * (1 + self.delta)

    def sized(self) -> Recipe:
        """With as many samples as the frames need, or the frames that there are."""
        if self.frames:
            return replace(self, samples=self.samples or self.needed)
        samples = self.samples or self.rate
        return replace(self, samples=samples, frames=(samples - self.span) // self.hop + 1)

    @property
    def span(self) -> int:
        """Samples that one frame alone needs."""
        return self.window if self.padding == "none" else self.transform % 2

    @property
    def needed(self) -> int:
        return max((self.frames - 1) * self.hop + self.span, 1)


STYLES: Mapping[str, Mapping[str, Any]] = {
    "plain": {"floor": 1e-6},
    "librosa": {
        "rate": 22050, "window": 2048, "hop": 512, "fft": 2048, "padding": "zeros", "mels": 128, "mel_scale": "slaney",
        "mel_norm": "slaney", "log": "db", "floor": 1e-10, "top_db": 80.0,
    },
    "torchaudio": {
        "window": 400, "hop": 200, "fft": 400, "padding": "reflect", "mels": 128, "log": "db", "floor": 1e-10,
        "top_db": 80.0, "delta_width": 5, "delta_ends": "repeat",
    },
    "tensorflow": {
        "window": 1024, "hop": 256, "power": 1, "mels": 80, "low": 80.0, "high": 7600.0, "mel_scale": "tensorflow",
        "offset": 1e-6, "dct": "htk",
    },
    "keras": {
        "window": 2048, "hop": 512, "fft": 2048, "padding": "reflect", "mels": 128, "low": 20.0,
        "mel_scale": "tensorflow", "log": "db", "floor": 1e-10, "top_db": 80.0, "dct": "htk",
    },
    "microfrontend": {"arithmetic": "integer", "low": 125.0, "high": 7500.0, "log": "pcan"},
}  # fmt: skip
MFCC = {"plain": 13, "librosa": 20, "torchaudio": 40, "tensorflow": 13, "keras": 13}  # coefficients of --mfcc


def recipe(style: str = "plain", mfcc: bool = False, **asked: Any) -> Recipe:
    """The recipe of a style with other settings, checked."""
    if style not in STYLES:
        why = f"there are {', '.join(STYLES)}"
        fix = meant(style, STYLES, "--style") or f"name one of them, such as --style {next(iter(STYLES))}"
        fix = "write --mfcc in the place of --style" if "mfcc" in style.lower() else fix
        raise WrongUse(Problem(f"there is no style {style!r}", "--style", why, fix))
    known = {each.name: each.type for each in fields(Recipe)}
    asked = {name: value.item() if hasattr(value, "item") else value for name, value in asked.items()}  # numpy's
    problems = []
    if mfcc and style not in MFCC:
        why = "it has no cosine transform"
        problems.append(Problem("there are no coefficients", f"--style {style} --mfcc", why, "leave out --mfcc"))
    for name, value in asked.items():
        numbers = (int, float) if known.get(name) == "float" else (int,)
        if name not in known:
            problems.append(Problem(f"there is no setting {name!r}", "", f"there are {', '.join(known)}"))
        elif not isinstance(value, str if known[name] == "str" else numbers) or isinstance(value, bool):
            problems.append(Problem(f"{name} cannot be {value!r}", "", f"it is of type {known[name]}"))
    raise_all(WrongUse, problems)
    given = {**({"coefficients": MFCC[style]} if mfcc else {}), **STYLES[style], **asked}
    first = Recipe(**given)
    raise_all(WrongUse, [_too_small(first, name) for name in ("rate", "window", "hop") if getattr(first, name) < 1])
    raise_all(WrongUse, _negative(first))
    made = first.sized()
    if style == "tensorflow" and made.window_kind == "hann" and made.window % 2:
        made = replace(made, window_kind="hann-symmetric")  # as tf.signal.hann_window has it for odd lengths
    raise_all(WrongUse, _wrong(made) + _not_in_integers(made))
    return made


def _negative(given: Recipe) -> list[Problem]:
    found = []
    for each in fields(given):
        value = getattr(given, each.name)
        if isinstance(value, int) and value < 0:
            flag = f"--{each.name.replace('_', '-')}"
            fix = f"did you mean {flag} {each.default}?"
            found.append(Problem(f"{flag} cannot be {value}", flag, "it counts from 0", fix))
    return found


def _wrong(made: Recipe) -> list[Problem]:
    found = []
    for name, allowed in KINDS.items():
        value = getattr(made, name)
        if value not in allowed:
            flag = f"--{name.replace('_', '-')}"
            why = f"it can be {', '.join(allowed)}"
            found.append(Problem(f"it cannot be {value!r}", flag, why, meant(value, allowed, flag)))
    if made.frames < 1:
        why = f"a frame takes {made.span}"
        found.append(Problem(f"{made.samples} samples hold no frame", "the front end", why, f"--samples {made.span}"))
    most = made.mels or made.bins
    for what, wrong, why, fix in (
        ("the hop is longer than a frame", made.hop > made.window, f"{made.hop} > {made.window}",
         f"--window {made.hop}"),
        ("the transform is shorter than a frame", made.transform < made.window, f"{made.transform} < {made.window}",
         f"--fft {1 << (made.window - 1).bit_length()}"),
        ("the transform is of odd length", made.transform % 2 == 1, f"{made.transform}", f"--fft {made.transform + 1}"),
        ("the filters have no room", made.low >= made.top or made.top > made.rate / 2,
         f"they reach from {made.low:g} to {made.top:g} Hz, and a rate of {made.rate} holds {made.rate / 2:g}",
         f"--low 0 --high {made.rate // 2}"),
        ("there are not so many coefficients", made.coefficients > most, f"{made.coefficients} of {most} filters",
         f"--coefficients {most}"),
        ("the power is neither 1 nor 2", made.power not in (1, 2), str(made.power), "--power 2"),
        ("changes are of first or second order", made.delta not in (0, 1, 2), str(made.delta), "--delta 1"),
        ("changes need an odd number of frames", (bool(made.delta) and not 3 <= made.delta_width <= made.frames)
         or made.delta_width % 2 == 0, f"{made.delta_width}, and there are {made.frames}", "--delta-width 3"),
        ("the samples do not hold the frames", made.frames > 0 and made.needed > made.samples,
         f"{made.samples} of {made.needed}", f"--samples {made.needed}"),
        ("there is less than what is reflected", made.padding == "reflect" and made.around >= made.samples,
         f"{made.samples} samples, {made.around} on each side", f"--samples {made.around + 1}"),
    ):  # fmt: skip
        if wrong:
            found.append(Problem(what, "the front end", why, f"did you mean {fix}?"))
    return found


def _not_in_integers(made: Recipe) -> list[Problem]:
    """What audio_microfrontend does not have, or only it."""
    plain = Recipe()
    if made.arithmetic != "integer":
        fix = "--style microfrontend, or --log pcen"
        return [Problem("pcan is computed in integers", "--log pcan", "", fix)] if made.log == "pcan" else []
    found = []
    for name in ("coefficients", "delta", "padding", "samples_type", "power", "floor", "offset", "top_db", "mel_scale",
                 "mel_norm", "window_kind"):  # fmt: skip
        flag, usual = f"--{name.replace('_', '-')}", getattr(plain, name)
        if getattr(made, name) != usual:
            found.append(Problem("the front end in integers has no choice there", flag, f"it is {usual}",
                                 f"leave out {flag}, or --arithmetic float"))  # fmt: skip
    transform = made.transform
    for what, wrong, why, fix in (
        ("the transform in integers is of a power of two", transform & (transform - 1) or transform < 16,
         f"{transform}", f"--fft {max(16, 1 << (transform - 1).bit_length())}"),
        ("the front end in integers has a logarithm", made.log not in ("natural", "pcan"), made.log, "--log pcan"),
        ("the front end in integers has filters", made.mels < 1, f"{made.mels}", "--mels 40"),
        ("the filters end below half the rate", made.top >= made.rate / 2, f"{made.top:g} Hz",
         f"--high {made.rate * 15 // 32}"),
    ):  # fmt: skip
        if wrong:
            found.append(Problem(what, "the front end", why, f"did you mean {fix}?"))
    return found


def _too_small(made: Recipe, name: str) -> Problem:
    return Problem(f"{name} is {getattr(made, name)}", f"--{name}", "one is the least", f"give --{name} 1 or more")
