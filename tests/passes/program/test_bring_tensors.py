"""Two memories: results stay the same, steps work in the near one alone, little is copied, and bytes are kept to."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.base.column_tiles import ColumnTiles
from mccompile.base.dtypes import f32
from mccompile.base.errors import CheckFailed, InternalError, WrongUse
from mccompile.driver import Options
from mccompile.emit.package import Package
from mccompile.emit.summary import summary
from mccompile.emit.traffic import transfers
from mccompile.expr.ir import operand
from mccompile.kinds.map import Map
from mccompile.option_texts import pools
from mccompile.plan.ir import Plan
from mccompile.plan.verify import verify
from mccompile.program import ir
from mccompile.program.verify import verify as verify_program
from mccompile.targets.api import Pool
from tests.passes.graph.tile_columns import test_tile_columns as networks
from tests.passes.graph.tile_columns.test_tile_columns import NETWORKS, package, results, with_weights
from tests.small_quantized import convolutions
from tests.thorough import some

AWAY = Pool("away", None, 1, copied=True)
INPUT, MIDDLE, END = 6144, 16384, 8192  # bytes of the tensors of `tall`
TALL = """(float[1,3,32,16] x, float[8,3,3,3] w, float[4,8,3,3] v, float[8,4,1,1] u) => (float[1,8,16,16] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w)
    b = Relu(a)
    c = Conv <pads = [1, 1, 1, 1], strides = [2, 1]> (b, v)
    y = Conv (c, u)
}"""


def network(name: str) -> ModelProto:
    return with_weights(TALL, 4) if name == "tall" else networks.network(name)


def compiled(name: str, near: int | None, far: int | None = None, **options: object) -> Package:
    return package(network(name), mem=(Pool("near", near, 0), replace(AWAY, bytes=far)), **options)


def sizes(plan: Plan) -> tuple[int, int]:
    near, far = (arena.bytes for arena in plan.arenas)
    return near, far


def least(name: str) -> int:
    """Bytes with which a network still runs."""
    with pytest.raises(CheckFailed) as caught:
        compiled(name, 16)
    return int(str(caught.value).split("needs ")[1].split(" bytes of the near one instead of 16")[0])


@some(3, "name", ["tall", *NETWORKS])
def test_results_are_the_same_in_less_and_less_memory(name: str) -> None:
    made, tried = network(name), set[tuple[int, int]]()
    whole = package(made)
    wanted = results(whole, made)
    for part in (0.8, 0.5, 0.25):
        room = max(int(whole.plan.arena_bytes * part), least(name))
        try:
            found = compiled(name, room)
        except CheckFailed:  # what one step needs is known, not what all of them do
            continue
        assert sizes(found.plan)[0] <= room and sizes(found.plan) not in tried
        tried.add(sizes(found.plan))
        got = results(found, made)  # copies come late, and other numbers are there before
        for key in wanted:
            np.testing.assert_allclose(got[key], wanted[key], rtol=1e-4, atol=1e-3)  # sums may have another order
    assert tried


def test_an_input_is_read_once_and_what_fits_stays() -> None:
    found = compiled("tall", 11 << 10)
    moved = {"read_bytes": INPUT, "written_bytes": 0, "traffic_bytes": INPUT, "traffic_bound_bytes": INPUT}
    moved["copies"] = 3 * 32  # of rows in three planes
    moved["overlapped_bytes"] = 29 * INPUT // 3 // 32  # of which the last one
    assert transfers(found.plan) == {"away": moved}
    assert sizes(found.plan)[1] == INPUT
    assert json.loads(found.files["report.json"])["pools"][1]["traffic_bytes"] == INPUT
    line = f"away   {INPUT} bytes; a run reads {INPUT} bytes there and writes 0, the lower bound, "
    assert line in summary(found.plan, 0)


def test_rows_come_while_steps_run_where_there_is_room() -> None:
    """Copies come late, and other numbers are there before."""
    text = TALL.replace("float[1,3,32,16]", "float[1,1,32,48]").replace("[8,3,3,3]", "[8,1,3,3]")
    made = with_weights(text.replace("[1,8,16,16]", "[1,8,16,48]"), 4)
    near = Pool("near", 12 << 10, 0)
    found, wanted = package(made, mem=(near, AWAY)), results(package(made), made)
    moved = transfers(found.plan)["away"]
    assert 0.8 * moved["read_bytes"] < moved["overlapped_bytes"] < moved["read_bytes"]
    np.testing.assert_allclose(results(found, made)["y"], wanted["y"], rtol=1e-4, atol=1e-3)
    piecewise = package(made, mem=(near, AWAY), slices=True)  # a run may be given up between two pieces
    assert transfers(piecewise.plan)["away"]["overlapped_bytes"] == 0


def test_a_transposed_convolution_that_does_not_fit_goes_by_rows() -> None:
    """On a target that splits others, whose results have no rows, into convolutions."""
    ends = "(float[1,8,24,16] x, float[8,8,2,2] w) => (float[1,8,48,32] y)"
    made = with_weights(f"{ends} {{ y = ConvTranspose <strides = [2, 2]> (x, w) }}", 1)
    found = package(made, mem=(Pool("near", 8192, 0), AWAY), target="cortex-m55")
    assert sizes(found.plan)[0] <= 8192 and sizes(found.plan)[1] >= 4 * 8 * 48 * 32


def test_where_all_fits_nothing_is_copied() -> None:
    found = compiled("tall", None)
    assert sizes(found.plan)[1] == 0 and transfers(found.plan)["away"]["traffic_bytes"] == 0
    assert not any(step.function.kernel.copies for step in found.plan.steps())


def test_a_result_goes_away_by_rows() -> None:
    found = compiled("tall", 6 << 10)
    moved = transfers(found.plan)["away"]
    assert (moved["read_bytes"], moved["written_bytes"], moved["traffic_bytes"]) == (INPUT, END, INPUT + END)


def test_far_memory_has_a_limit_as_well() -> None:
    """A result begins before the input that is read, so both take little more than the larger one."""
    found = compiled("tall", 8 << 10, END + 512)
    assert sizes(found.plan)[1] <= END + 512
    with pytest.raises(CheckFailed, match=rf"bytes of the copied one instead of {INPUT - 64}"):
        compiled("tall", 6 << 10, INPUT - 64)


def test_too_small_a_memory_is_refused_with_what_would_do() -> None:
    needed = least("tall")
    assert needed > 16
    with pytest.raises(CheckFailed, match=f"needs {needed} bytes of the near one instead of {needed - 1}"):
        compiled("tall", needed - 1)


def test_kernels_take_smaller_workspaces_only_where_nothing_fits_else() -> None:
    made = convolutions(48, [(8, 3, 2), (0, 3, 1), (16, 1, 1), (0, 3, 2)])
    fast = {}
    for room in (1500, 1800, 8 << 10):
        found = package(made, target="cortex-m4", mem=(Pool("near", room, 0), AWAY))
        fast[room] = sum(step.function.kernel.id == "conv/i8_nhwc_depthwise_3x3__dsp" for step in found.plan.steps())
        assert sizes(found.plan)[0] <= room
    assert fast == {1500: 0, 1800: 1, 8 << 10: 2}


def test_tensors_come_as_a_whole_where_rows_are_off() -> None:
    made = network("tall")
    found = compiled("tall", MIDDLE + INPUT, rows="off")
    np.testing.assert_allclose(results(found, made)["y"], results(package(made), made)["y"], rtol=1e-4, atol=1e-3)


def test_signals_do_not_go_by_rows_where_kernels_cannot() -> None:
    text = "(float[1,8,16] x, float[8,8,3] w) => (float[1,8,16] y) { y = Conv <pads = [1, 1]> (x, w) }"
    memories = (Pool("near", None, 0), AWAY)
    signal = with_weights(text, 1)
    assert package(signal, target="cortex-m4", optimize=False, mem=memories).plan.steps()


def test_an_output_that_is_an_input_is_refused_where_it_does_not_fit() -> None:
    text = "(int32[5,63] x, int64[1] w) => (int32[5,63] y) { y = Identity (x) }"
    with pytest.raises(CheckFailed, match="an input that is the output needs more"):
        package(with_weights(text, 0), mem=(Pool("near", 1024, 0), AWAY))


def test_a_plan_whose_steps_work_far_away_is_refused() -> None:
    plan = compiled("tall", 6 << 10).plan
    near, far = plan.arenas
    with pytest.raises(InternalError, match="works in a memory that is copied"):
        verify(replace(plan, arenas=(replace(near, copied=True), far)))


def test_a_program_whose_calls_work_far_away_is_refused() -> None:
    x, y = ir.Buffer("x", f32, (4,), ir.INPUT), ir.Buffer("y", f32, (4,), far=True)
    call = ir.Call(Map(operand(0, f32)), (x.whole(),), (y.whole(),))
    with pytest.raises(InternalError, match="y is far, and no transfer touches it"):
        verify_program(ir.Program("g", [("x", x)], [("y", y.whole())], [call]))


@pytest.mark.parametrize(
    ("memories", "more", "said"),
    [
        ((AWAY,), {}, "one memory is copied to one other"),
        ((Pool("a", 64, 0), Pool("b", 64, 0), AWAY), {}, "one memory is copied to one other"),
        ((Pool("a", 64, 0), replace(AWAY, name="b"), AWAY), {}, "one memory is copied to one other"),
        ((Pool("a", 4096, 0), AWAY), {"weights_window": 4096}, "does not go with `copied`"),
    ],
)
def test_what_does_not_go_together_is_refused(memories: tuple[Pool, ...], more: dict[str, int], said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        package(network("tall"), mem=memories, **more)


def test_options_as_texts() -> None:
    fast, away = pools(("psram=8M,copied,80MB/s", "tcm=16K,fast"))
    assert (fast, away) == (Pool("tcm", 16 << 10, 0), Pool("psram", 8 << 20, 1, copied=True, rate=80))
    assert pools(("psram,copied,80MB/s,2us",)) == pools(("psram,copied,80MB/s,2000ns",))
    assert pools(("psram,copied,80MB/s,2us",))[0].latency_bytes == 160
    wrongs = ("psram,copied,2us", "psram,copied,80MB/s,2", "psram,copied,2us,80MB/s", "a,fast,80MB/s,2us", "a,copied,")
    for wrong in ("tcm=16K,fast,80MB/s", "psram,copied,0MB/s", "psram,80MB/s", *wrongs):
        with pytest.raises(ValueError, match="did you mean"):
            pools((wrong,))


def test_time_of_copies_is_told_where_their_rate_is_known() -> None:
    found = package(network("tall"), mem=(Pool("near", 11 << 10, 0), replace(AWAY, rate=100)))
    assert transfers(found.plan)["away"]["traffic_us"] == 62  # 61.44, rounded up
    assert summary(found.plan, 0).count("in 96 copies and 62 us") == 1


def test_each_copy_takes_its_latency_and_fewer_are_made_for_it() -> None:
    made, near = network("tall"), Pool("near", 11 << 10, 0)
    many, few = (package(made, mem=(near, replace(AWAY, rate=100, latency_ns=ns))) for ns in (1, 1000))
    plain, found = transfers(many.plan)["away"], transfers(few.plan)["away"]
    assert (plain["copies"], found["copies"]) == (96, 16) and found["traffic_bytes"] > plain["traffic_bytes"]
    assert found["traffic_us"] == math.ceil(found["traffic_bytes"] / 100 + found["copies"])
    np.testing.assert_allclose(results(few, made)["y"], results(package(made), made)["y"], rtol=1e-4, atol=1e-3)


def test_what_steps_compute_in_is_not_waited_for() -> None:
    """On a slow core all that is on its way is hidden, on a quick one nothing."""
    slow, quick, unknown = (replace(waiting(), mhz=mhz) for mhz in (1, 10**9, 0))
    moved, whole = transfers(slow)["away"], transfers(quick)["away"]
    assert moved["waited_us"] == math.ceil((moved["traffic_bytes"] - moved["overlapped_bytes"]) / 10)
    assert whole["waited_us"] == whole["traffic_us"] and "waited_us" not in transfers(unknown)["away"]


def waiting() -> Plan:
    return package(network("tall"), mem=(Pool("near", 11 << 10, 0), replace(AWAY, rate=10))).plan


def test_a_budget_for_fast_memory_is_the_size_of_one_beside_another_that_is_copied() -> None:
    found = package(network("tall"), budget={"fast": 11 << 10})
    assert [(arena.pool, arena.limit) for arena in found.plan.arenas] == [("fast", 11 << 10), ("slow", None)]
    assert sizes(found.plan) == sizes(compiled("tall", 11 << 10).plan)
    given = Options(mem=(Pool("tcm", None, 0), AWAY), budget={"fast": 4096, "ram": 8192})
    assert given.mem == (Pool("tcm", 4096, 0), AWAY) and given.budget == {"ram": 8192}
    with pytest.raises(WrongUse, match="exactly one memory marked fast"):
        Options(mem=(Pool("sram", None, 1), AWAY), budget={"fast": 4096})


SEPARABLE = """(float[1,1,8,8] x, float[24,1,3,3] w, float[24,1,3,3] d0, float[32,24,1,1] p0, float[32,1,3,3] d1,
    float[48,32,1,1] p1, float[48,1,3,3] d2, float[48,48,1,1] p2) => (float[1,48,1,1] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w)
    ar = Relu (a)
    b = Conv <pads = [1, 1, 1, 1], group = 24> (ar, d0)
    br = Relu (b)
    c = Conv (br, p0)
    cr = Relu (c)
    e = Conv <pads = [1, 1, 1, 1], group = 32, strides = [2, 2]> (cr, d1)
    er = Relu (e)
    f = Conv (er, p1)
    fr = Relu (f)
    g = Conv <pads = [1, 1, 1, 1], group = 48> (fr, d2)
    gr = Relu (g)
    h = Conv (gr, p2)
    hr = Relu (h)
    y = GlobalAveragePool (hr)
}"""


@pytest.mark.thorough
def test_more_near_memory_is_not_refused_where_less_is_enough() -> None:
    made, tiles = with_weights(SEPARABLE, 1), (ColumnTiles("x", "er", 2, 0),)
    for near in (3276, 4915):
        assert sizes(package(made, mem=(Pool("near", near, 0), AWAY), column_tiles=tiles).plan)[0] <= near


@pytest.mark.parametrize(("more", "shared"), [(0, False), (2048, True)])
def test_workers_share_calls_where_the_near_memory_has_room_for_their_workspaces(more: int, shared: bool) -> None:
    made = convolutions(24, [(16, 3, 1)] * 2)
    least = sizes(package(made, mem=(Pool("near", None, 0), AWAY), target="cortex-m4").plan)[0]
    plan = package(made, mem=(Pool("near", least + more, 0), AWAY), target="cortex-m4", threads=2).plan
    assert sizes(plan)[0] <= least + more
    assert all(step.function.call.workers == 2 for step in plan.steps() if step.function.call.scratch) == shared
