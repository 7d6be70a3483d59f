"""classify.c, built against a stand-in for the generated header: a "network" whose scores are its first ten pixels."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

CLASSIFY = Path(__file__).resolve().parents[2] / "examples" / "digits" / "classify.c"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
HEADER = """
#include <stddef.h>
#include <stdint.h>
typedef enum { MCC_OK, MCC_REFUSED } mcc_status;
static const char *mcc_status_text(mcc_status status) { return status == MCC_OK ? "ok" : "wrong weights"; }
#define MCC_ALIGNED(n) __attribute__((aligned(n)))
#define DIGITS_ARENA_BYTES 256u
#define DIGITS_ARENA_ALIGN 16u
#define DIGITS_INPUT_IMAGE_BYTES 256u
typedef struct { void *arena; } digits_model;
static const uint8_t digits_weights[] = {1};
static const size_t digits_weights_bytes = sizeof digits_weights;
static mcc_status digits_init(digits_model *m, void *arena, size_t bytes, const void *weights, size_t weights_bytes)
{
    m->arena = arena;
    return bytes == DIGITS_ARENA_BYTES && weights != NULL && weights_bytes == STAND_IN_WEIGHTS ? MCC_OK : MCC_REFUSED;
}
static float *digits_input_image(digits_model *m) { return (float *)m->arena; }
static const float *digits_output_scores(const digits_model *m) { return (const float *)m->arena; }
static mcc_status digits_run(digits_model *m) { return m->arena != NULL ? MCC_OK : MCC_REFUSED; }
"""


def build(folder: Path, weights_bytes: int = 1) -> Path:
    (folder / "digits.h").write_text(HEADER.replace("STAND_IN_WEIGHTS", str(weights_bytes)))
    program = folder / "classify"
    subprocess.run(["cc", *STRICT, f"-I{folder}", str(CLASSIFY), "-o", str(program)], check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("classify"))


def picture_of(digit: int, score: float) -> bytes:
    pixels = np.zeros(64, np.float32)
    pixels[digit] = score
    pixels[10:] = 1  # beyond the ten classes: must not be looked at
    return pixels.tobytes()


def test_one_line_per_picture_from_standard_input(program: Path) -> None:
    done = subprocess.run([program], input=picture_of(7, 0.5) + picture_of(0, 0.25), capture_output=True, check=True)
    assert done.stdout.decode() == "7 0.500000\n0 0.250000\n"
    assert done.stderr.decode().startswith("2 pictures, ")


def test_pictures_from_a_file(program: Path, tmp_path: Path) -> None:
    (tmp_path / "one.f32").write_bytes(picture_of(9, 0.75))
    done = subprocess.run([program, tmp_path / "one.f32"], capture_output=True, check=True)
    assert done.stdout.decode() == "9 0.750000\n"


def test_a_picture_cut_short_is_an_error(program: Path) -> None:
    done = subprocess.run([program], input=picture_of(7, 0.5)[:-4], capture_output=True)
    assert done.returncode == 1
    assert done.stderr.decode() == "classify: picture 0 is cut short\n"


def test_a_missing_file_is_an_error(program: Path, tmp_path: Path) -> None:
    done = subprocess.run([program, tmp_path / "missing.f32"], capture_output=True)
    assert done.returncode == 2
    assert b"missing.f32" in done.stderr


def test_refused_weights_are_an_error(tmp_path: Path) -> None:
    done = subprocess.run([build(tmp_path, weights_bytes=2)], input=picture_of(1, 1.0), capture_output=True)
    assert done.returncode == 1
    assert done.stderr == b"classify: wrong weights\n"
