"""`mccompile train --save optimizer`: what boots goes on as if the power had never been off, wherever it went off."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from mccompile.cli import run
from tests.cli.test_train import built_and_run
from tests.flash import SLOTS
from tests.python.test_trainer import network

# Learns, saves and boots behind each of 1,000 cuts: the steps that follow are bit by bit those behind the save before,
# or those behind the new one. KEPT: bytes of what the optimizer keeps.
PROGRAM = """
#include <string.h>
#include "net.h"
#define WEIGHTS 83 /* 6x8, 8, 8x3, 3 */
static MCC_ALIGNED(NET_ARENA_ALIGN) uint8_t arena[NET_ARENA_BYTES];
FLASH
static uint8_t before[2][NET_SLOT_BYTES];
static net_model m;
static int boot(void)
{
    memset(arena, 0x5A, sizeof arena);
    return net_init(&m, arena, sizeof arena, net_weights, net_weights_bytes) != MCC_OK;
}
static int steps(int first, int count)
{
    for (int step = first; step < first + count; ++step) {
        for (int i = 0; i < 24; ++i) net_input_x(&m)[i] = (float)((i * 7 + 3 * step) % 11) / 11.0f;
        for (int i = 0; i < 4; ++i) net_input_target(&m)[i] = (i + step) % 3;
        if (net_learn(&m) != MCC_OK || net_step(&m, 0.05f) != MCC_OK) return 1;
    }
    return 0;
}
static void weights(float *to)
{
    memcpy(to, net_state_w1(&m), 48 * sizeof *to);
    memcpy(to + 48, net_state_b1(&m), 8 * sizeof *to);
    memcpy(to + 56, net_state_w2(&m), 24 * sizeof *to);
    memcpy(to + 80, net_state_b2(&m), 3 * sizeof *to);
}
int main(void)
{
    float old[WEIGHTS], new[WEIGHTS], now[WEIGHTS];
    unsigned chance = 1;
    long olds = 0, news = 0;
    memset(flash, 0xFF, sizeof flash);
    if (NET_SLOT_BYTES != 64 + WEIGHTS * 4 + KEPT) return 1;
    if (boot() || steps(0, 3)) return 2;
    power = 1000000;
    if (net_save(&m, &store) != MCC_OK || steps(3, 2)) return 3;
    weights(old); /* two steps behind the first save */
    memcpy(before, flash, sizeof flash);
    for (int cut = 0; cut < 1000; ++cut) {
        memcpy(flash, before, sizeof flash);
        if (boot() || net_load(&m, &store) != MCC_OK || steps(3, 4)) return 4;
        chance = chance * 1103515245u + 12345u;
        power = (long)((chance >> 8) % (2u * NET_SLOT_BYTES + NET_SLOT_BYTES / 4u));
        mcc_status said = net_save(&m, &store);
        if (cut == 0) {
            if (steps(3, 2)) return 5;
            weights(new); /* two steps behind the second save */
        }
        if (boot() || net_load(&m, &store) != MCC_OK || steps(3, 2)) return 6;
        weights(now);
        if (memcmp(now, old, sizeof now) == 0 && said != MCC_OK) ++olds;
        else if (memcmp(now, new, sizeof now) == 0) ++news;
        else return 7;
    }
    return olds > 500 && news > 20 && memcmp(old, new, sizeof old) != 0 ? 0 : 8;
}
""".replace("FLASH", SLOTS)


@pytest.mark.parametrize(
    ("optimizer", "kept"),
    [("adam,lr=0.05", 2 * 83 * 4 + 2 * 4), ("momentum,nesterov=1", 83 * 4), ("adagrad", 83 * 4), ("sgd", 0)],
)
def test_learning_goes_on_behind_a_power_cut(tmp_path: Path, optimizer: str, kept: int) -> None:
    onnx.save(network(), tmp_path / "net.onnx")
    out = tmp_path / "out"
    words = ["train", str(tmp_path / "net.onnx"), "-o", str(out), "--loss", "cross_entropy:p", "--learn", "all"]
    assert run([*words, "--optimizer", optimizer, "--save", "optimizer"]) == 0
    assert ("goes on where it was" in (out / "net.h").read_text()) == bool(kept)
    assert built_and_run(out, PROGRAM.replace("KEPT", str(kept))) == 0


def test_weights_alone_are_saved_by_default(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "net.onnx")
    out = tmp_path / "out"
    words = ["train", str(tmp_path / "net.onnx"), "-o", str(out), "--loss", "cross_entropy:p", "--learn", "all"]
    assert run([*words, "--optimizer", "adam"]) == 0
    assert built_and_run(out, PROGRAM.replace("KEPT", "0")) == 7  # Adam begins anew: no steps as before
