"""mcc_sample.h draws the tokens that its definition says, with every compiler and flag, as often as they are likely."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

from mccompile.base.discovery import data_folder

INCLUDE = data_folder("runtime_c") / "include"
_CODE = """
#include "mcc_sample.h"
int32_t sample(const mcc_sampling *how, uint64_t *drawn, const float *logits, size_t count, const int32_t *before,
               size_t before_count, mcc_candidate *scratch)
{
    return mcc_sample(how, drawn, logits, count, before, before_count, scratch);
}
"""
_ONE = 1 << 31
_BUILDS = [
    ("gcc", "-O0"),
    ("gcc", "-O3", "-march=native", "-ffp-contract=fast"),
    ("gcc", "-O2", "-mfpmath=387"),
    ("clang", "-O2", "-ffp-contract=fast"),
    ("tcc",),
]


class Sampling(ctypes.Structure):
    _fields_ = (
        ("temperature", ctypes.c_float),
        ("top_k", ctypes.c_int32),
        ("top_p", ctypes.c_float),
        ("min_p", ctypes.c_float),
        ("repetition_penalty", ctypes.c_float),
        ("seed", ctypes.c_uint64),
    )


@pytest.fixture(scope="module", params=_BUILDS, ids=" ".join)
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler, *flags = request.param
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    folder = tmp_path_factory.mktemp("sample")
    (folder / "sample.c").write_text(_CODE)
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"] if compiler != "tcc" else []
    command = [
        compiler,
        "-std=c99",
        *flags,
        *warnings,
        "-shared",
        "-fPIC",
        f"-I{INCLUDE}",
        "sample.c",
        "-o",
        "sample.so",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode and "387" in done.stderr:
        pytest.skip("no x87 here")
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "sample.so"))


def drawn(code: Any, logits: np.ndarray, at: int = 0, before: tuple[int, ...] = (), **how: Any) -> int:
    number, count = ctypes.c_uint64(at), len(logits)
    scratch = (ctypes.c_uint64 * (count + 1))()
    scratch[count] = 77
    given = (ctypes.c_int32 * max(1, len(before)))(*before)
    address = np.ascontiguousarray(logits, np.float32)
    size, pointer = ctypes.c_size_t, address.ctypes.data_as(ctypes.c_void_p)
    settings = Sampling(**how)
    found = code.sample(
        ctypes.byref(settings), ctypes.byref(number), pointer, size(count), given, size(len(before)), scratch
    )
    assert scratch[count] == 77
    return int(found)


def likelihood(logit: np.float32, most: np.float32, temperature: np.float32) -> int:
    if logit == most:
        return _ONE
    distance = np.float32(np.float32(most - logit) / temperature)
    if not distance < 22:
        return 0
    bits = int(distance * np.float32(1 << 24)) * 6196328019 >> 32
    f, q = (bits & 0xFFFFFF) << 8, 493840
    for coefficient in (5548197, 41219531, 238367584, 1031763232, 2977044448):
        q = coefficient - (q * f >> 32)
    return ((1 << 32) - (q * f >> 32)) >> ((bits >> 24) + 1)


def mixed(x: int) -> int:
    mask = (1 << 64) - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & mask
    return x ^ x >> 31


def wanted(logits: np.ndarray, at: int = 0, before: tuple[int, ...] = (), **how: Any) -> int:
    """The definition, over sorted logits."""
    values = np.where(np.isnan(logits), -np.inf, logits).astype(np.float32)
    penalty = np.float32(how.get("repetition_penalty", 1))
    for token in set(before):
        values[token] = values[token] / penalty if values[token] > 0 else values[token] * penalty
    order = sorted(range(len(values)), key=lambda n: (-values[n], n))
    if values[order[0]] == -np.inf:
        return -1
    temperature = np.float32(how.get("temperature", 0))
    if not temperature:
        return order[0]
    order = order[: how.get("top_k", 0) or None]
    weights = [likelihood(values[n], values[order[0]], temperature) for n in order]
    share = int(float(np.float32(how.get("top_p", 0))) * 2**32)
    needed = share * sum(weights) >> 32 if 0 < share < 1 << 32 else sum(weights)
    least = int(float(np.float32(how.get("min_p", 0))) * 2**32) >> 1
    kept = [w for n, w in enumerate(weights) if n == 0 or (sum(weights[:n]) < needed and w >= max(least, 1))]
    state = mixed((how.get("seed", 0) + at * 0xD1342543DE82EF95) & (1 << 64) - 1)
    target = (state >> 32) * sum(kept) >> 32
    return next(order[n] for n in range(len(kept)) if sum(kept[: n + 1]) > target)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_tokens_are_those_of_the_definition(code: Any) -> None:
    chance = np.random.default_rng(3)
    for number in range(400):
        count = int(chance.integers(1, 70))
        logits = (chance.standard_normal(count) * chance.choice([0.1, 3, 30])).astype(np.float32)
        logits[chance.random(count) < 0.1] = chance.choice([np.nan, -np.inf, 1.5, 0])
        if number % 50 == 0:
            logits[chance.integers(count)] = np.inf
        how: dict[str, Any] = {"temperature": float(chance.choice([0, 0.3, 1, 2.5]))}
        how["seed"] = int(chance.integers(1 << 62))
        for name, values in {"top_k": [0, 1, 5, 99], "top_p": [0, 0.3, 0.9, 1], "min_p": [0, 0.05, 1]}.items():
            how[name] = chance.choice(values).item()
        before = tuple(map(int, chance.integers(0, count, 5)))
        how["repetition_penalty"] = float(chance.choice([1, 1.3]))
        assert drawn(code, logits, number, before, **how) == wanted(logits, number, before, **how), (logits, how)


def test_tokens_come_as_often_as_they_are_likely(code: Any) -> None:
    logits = np.array([0.5, 2.0, -1.0, 1.0], np.float32)
    shares = np.exp(logits / 0.8) / np.exp(logits / 0.8).sum()
    counts = np.bincount([drawn(code, logits, at, temperature=0.8, seed=5) for at in range(20000)], minlength=4)
    np.testing.assert_allclose(counts / 20000, shares, atol=0.012)


def test_likelihoods_are_exponentials() -> None:
    for distance in np.linspace(0, 15, 997, dtype=np.float32):
        found = likelihood(-distance, np.float32(0), np.float32(1)) / _ONE
        assert abs(found - math.exp(-float(distance))) < 2**-22 * math.exp(-float(distance)) + 2**-31
