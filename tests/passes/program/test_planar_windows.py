"""What is written over signals becomes the calls that the same over pictures of one row becomes."""

from __future__ import annotations

from pathlib import Path

from mccompile.base.streaming import Stream
from mccompile.driver import Options, compile_graph
from mccompile.driver.options import RowByRow
from mccompile.emit.package import Package
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.plan.ir import RowRegion
from tests.passes.program.before_after import after
from tests.signal_networks import NETWORKS, Network
from tests.small_models import floats
from tests.thorough import some

# Each says something else: how a network is made, and which kernels there are.
PAIRS = [
    ("unet_int8", "cortex-m4"),
    ("separable_3_int8", "cortex-m55"),
    ("transposed_8_4_int8", "x86-64-v3"),
    ("stream_separable_int8", "cortex-m4"),
    ("linear_f32", "aarch64"),
]


def compiled(network: Network, picture: bool, **options: object) -> Package:
    stream = Stream({"x": 3 if picture else 2}, network.hop) if network.hop else Stream()
    graph = load_proto(network.model(picture), Path())
    return compile_graph(graph, Options(stream=stream, **options), network.name)  # type: ignore[arg-type]


@some(2, ("name", "target"), PAIRS)
def test_signals_get_the_kernels_of_pictures(name: str, target: str) -> None:
    plans = [compiled(NETWORKS[name], picture, target=target).plan for picture in (False, True)]
    used = [sorted(step.function.kernel.id for step in plan.steps()) for plan in plans]
    assert used[0] == used[1]
    assert plans[0].arena_bytes == plans[1].arena_bytes
    assert any(not kernel.endswith("__c") for kernel in used[0])


def test_signals_run_row_by_row_along_time() -> None:
    """Same results; a row is one moment of all channels."""
    network = NETWORKS["temporal_f32"]
    found, arenas = [], []
    for rows in (RowByRow.AUTO, RowByRow.OFF):
        package = compiled(network, False, rows=rows)
        assert any(isinstance(item, RowRegion) for item in package.plan.items) == (rows is RowByRow.AUTO)
        arenas.append(package.plan.arena_bytes)
        x = floats(1, 1, network.channels, network.length)
        found.append(next(iter(build(package, Options().resolved_target()).run({"x": x}).values())))
    assert arenas[0] < arenas[1] / 2
    assert (found[0] == found[1]).all()


def test_only_views_change() -> None:
    text = """program "p" {
  input "x" %x: f32[1,3,16]
  const %w: f32[4,3,3] = #w
  buffer %y: f32[1,4,16] from "y"
  call CALL
  output "y" %y
}
"""
    signal = "Conv(strides=(2,), dilations=(1,), pads=(2, 1), group=1, accumulator=f32) (%x, %w) -> (%y)"
    picture = (
        "Conv(strides=(1, 2), dilations=(1, 1), pads=(0, 2, 0, 1), group=1, accumulator=f32)"
        " (%x[1,3,1,16 by 48,16,16,1 at 0], %w[4,3,1,3 by 9,3,3,1 at 0]) -> (%y[1,4,1,9 by 36,9,9,1 at 0])"
    )
    text = text.replace("[1,4,16]", "[1,4,9]")
    made = after("planar_windows", text.replace("CALL", f'{signal} from "y"'))
    assert made == text.replace("CALL", f'{picture} from "y"')
