"""Rotary embeddings as config.json says them, and how they are scaled for texts longer than those of the training.

Invariant: frequencies are those of transformers to the last bits of float32. Where they would change while a text
grows, the text ends before that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .config import Config, damaged, unsupported
from .description import Rotary

_MOST_CHANNELS = 1 << 16
_LENGTH = "original_max_position_embeddings"


@np.errstate(all="ignore")
def rotary(config: Config, channels: int, base: float = 10000.0, kind: str = "") -> Rotary:
    """The rotary embedding of `channels` channels. `kind`: that of layers with this kind of attention."""
    if not 0 <= channels <= _MOST_CHANNELS:
        raise damaged(f"a head has {channels} channels")
    if channels == 0 or channels % 2:
        raise unsupported(f"rotary embeddings of {channels} channels of a head: their number must be even and not 0")
    scaling = told(config, kind)
    base = scaling.real("rope_theta", config.real("rope_theta", base))
    if base <= 0:
        raise damaged(f"rope_theta is {base}")
    exponents = np.arange(0, channels, 2, dtype=np.float32) / np.float32(channels)
    plain = Rotary((np.float32(1) / np.power(np.float32(base), exponents)).astype(np.float32))
    if config.has("rope_factors"):  # what GGUF stores
        factors = np.asarray(config.values["rope_factors"], np.float32)
        if factors.shape != plain.frequencies.shape or not (np.isfinite(factors) & (factors != 0)).all():
            raise damaged(f"rope_freqs has {factors.size} numbers for {channels} channels, or some are 0")
        plain = Rotary(plain.frequencies / factors)
    way = scaling.text("rope_type", scaling.text("type", "default"))
    if way not in _WAYS:
        raise unsupported(f"rotary embeddings are scaled by the way {way!r}; what is known: {', '.join(_WAYS)}")
    kept = {name: config.values[name] for name in (_LENGTH, "max_position_embeddings") if config.has(name)}
    made = _WAYS[way](plain, Config({**scaling.values, **kept}), base)
    if not np.isfinite(made.frequencies).all():
        raise damaged(f"rope_theta is {base}, and with what scales it frequencies are infinite")
    return made


def told(config: Config, kind: str = "") -> Config:
    """Of all layers, where those of a kind have nothing of their own. The older name goes first where a file has both,
    and what kinds have of their own never says `truncate`: transformers looks for it beside them."""
    whole, scaling = config.part("rope_parameters"), config.part("rope_scaling")
    if kind and whole.has(kind):
        return Config({**whole.part(kind).values, "truncate": whole.values.get("truncate")})
    return scaling if scaling.values else whole


def _factor(scaling: Config, default: float | None = 1.0) -> float:
    factor = scaling.real("factor", default)
    if factor <= 0:
        raise damaged(f"factor of rope_scaling is {factor}")
    return factor


def _length(scaling: Config) -> int:
    """Tokens of the texts of the training."""
    return scaling.count(_LENGTH, scaling.count("max_position_embeddings", 0, least=0))


def _default(plain: Rotary, scaling: Config, base: float) -> Rotary:
    return plain


def _linear(plain: Rotary, scaling: Config, base: float) -> Rotary:
    return Rotary((plain.frequencies / np.float32(_factor(scaling))).astype(np.float32))


def _llama3(plain: Rotary, scaling: Config, base: float) -> Rotary:
    frequencies, factor = plain.frequencies, _factor(scaling)
    low, high = scaling.real("low_freq_factor"), scaling.real("high_freq_factor")
    length = _length(scaling)
    if high <= low or low <= 0:
        raise damaged(f"low_freq_factor is {low}, high_freq_factor {high}")
    waves = 2 * math.pi / frequencies
    slow = np.where(waves > length / low, frequencies / factor, frequencies)
    share = (length / waves - low) / (high - low)
    between = (1 - share) * slow / factor + share * slow
    middle = (waves >= length / high) & (waves <= length / low)
    return Rotary(np.where(middle, between, slow).astype(np.float32))


def _yarn(plain: Rotary, scaling: Config, base: float) -> Rotary:
    """Fast turns stay, slow ones are divided, and those between are mixed: https://arxiv.org/abs/2309.00071."""
    channels, length = 2 * len(plain.frequencies), _length(scaling)
    factor = _factor(scaling, scaling.count("max_position_embeddings", length) / length)
    turns = [scaling.real("beta_fast", 32.0) or 32.0, scaling.real("beta_slow", 1.0) or 1.0]
    if base == 1 or min(turns) <= 0:
        raise damaged(f"rope_theta is {base}, beta_fast {turns[0]}, beta_slow {turns[1]}")
    low, high = (channels * math.log(length / (turn * 2 * math.pi)) / (2 * math.log(base)) for turn in turns)
    if scaling.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, channels - 1)
    ramp = (np.arange(channels // 2, dtype=np.float32) - low) / (high - low if high != low else 0.001)
    slow = np.clip(ramp, 0, 1).astype(np.float32)
    mixed = plain.frequencies / np.float32(factor) * slow + plain.frequencies * (1 - slow)
    return Rotary(mixed.astype(np.float32), _yarn_size(scaling, factor))


def _yarn_size(scaling: Config, factor: float) -> float:
    """Of cosines and sines."""
    if scaling.has("attention_factor"):
        return scaling.real("attention_factor")
    grown = 0.1 * math.log(factor) if factor > 1 else 0.0
    one, all_channels = (scaling.real(name, 0.0) for name in ("mscale", "mscale_all_dim"))
    if 1 + all_channels * grown <= 0:
        raise damaged(f"mscale_all_dim is {all_channels}")
    return (1 + one * grown) / (1 + all_channels * grown) if one and all_channels else 1 + grown


def _dynamic(plain: Rotary, scaling: Config, base: float) -> Rotary:
    """Behind the length of the training, all frequencies change with each token."""
    return Rotary(plain.frequencies, longest=scaling.count("max_position_embeddings"))


def _longrope(plain: Rotary, scaling: Config, base: float) -> Rotary:
    """Texts of the training's length have factors of their own; all angles change where a text gets longer."""
    length = _length(scaling)
    short = scaling.reals("short_factor", len(plain.frequencies))
    if not (short > 0).all():
        raise damaged("short_factor has numbers that are not above 0")
    factor = scaling.real("factor", scaling.count("max_position_embeddings", length) / max(1, length))
    default = math.sqrt(1 + math.log(factor) / math.log(length)) if factor > 1 and length > 1 else 1.0
    return Rotary(plain.frequencies / short, scaling.real("attention_factor", default), longest=length)


_WAYS: dict[str, Callable[[Rotary, Config, float], Rotary]] = {
    "default": _default,
    "linear": _linear,
    "llama3": _llama3,
    "yarn": _yarn,
    "dynamic": _dynamic,
    "longrope": _longrope,
}
