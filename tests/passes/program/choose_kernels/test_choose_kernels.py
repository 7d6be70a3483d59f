"""choose_kernels: of all plans with other kernels none is better in what is asked for."""

from __future__ import annotations

from itertools import product, takewhile
from pathlib import Path

import numpy as np
import onnx
import pytest

from mccompile.base.budgets import limited
from mccompile.driver import Options, compile_graph, pass_manager
from mccompile.frontend.load import load_proto
from mccompile.measure.correctness import build
from mccompile.passes.api import GRAPH, PROGRAM
from mccompile.passes.lower import lower
from mccompile.passes.program.choose_kernels.choose_kernels import Search
from mccompile.passes.program.choose_kernels.trial_plans import Trial, TrialPlans
from mccompile.pipeline import chosen
from mccompile.targets.api import LEAST
from tests.small_quantized import convolutions
from tests.thorough import some

DEPTHWISE = "conv/i8_nhwc_depthwise_3x3__dsp"


@pytest.fixture
def target(tmp_path: Path) -> str:
    """Kernels of cores with DSP instructions, for this machine."""
    path = tmp_path / "dsp.toml"
    path.write_text('inherits = "generic"\nisas = ["dsp", "c"]\n')
    return str(path)


NETWORKS = {
    "separable": convolutions(12, [(8, 3, 1), (0, 3, 1), (4, 1, 1)]),
    "strided": convolutions(16, [(8, 3, 2), (0, 3, 2), (16, 3, 1)]),
    "narrow": convolutions(6, [(4, 3, 1), (24, 3, 2), (6, 3, 1)]),
}


def plans(made: onnx.ModelProto, options: Options) -> TrialPlans:
    manager = pass_manager(options)
    graph = load_proto(made, Path())
    graph_passes, program_passes = chosen(True)
    manager.run(GRAPH, graph, graph_passes)
    program = lower(graph)
    manager.run(PROGRAM, program, takewhile(lambda step: step.name != "choose_kernels", program_passes))
    return TrialPlans(program, manager.context)


@some(1, "network", NETWORKS)
def test_no_combination_of_kernels_is_better(network: str, target: str) -> None:
    found = plans(NETWORKS[network], Options(target=target, budget={"ram": LEAST}))
    combinations = list(product(*(range(len(candidates)) for candidates in found.among)))
    trials = {picks: found.trial(picks) for picks in combinations}
    alone = trials[combinations[0]]
    assert len(trials) > 16

    def best(enough: int) -> tuple[int, float]:
        return min((max(0, trial.bytes - enough), trial.time) for trial in trials.values())

    with limited(trials=16):  # too few to try all
        for enough in (0, alone.bytes - 1):
            search = Search(found)
            search.enough = enough
            trial: Trial = trials[search.best()]
            assert (max(0, trial.bytes - enough), trial.time) == best(enough)
        for worth in (1, 2):
            search = Search(found)
            search.worth = worth
            trial = trials[search.best()]
            assert not any(t.bytes <= trial.bytes and t.time < trial.time for t in trials.values())
            assert trial.bytes**worth * trial.time <= alone.bytes**worth * alone.time


@pytest.mark.thorough
def test_every_call_of_a_deep_network_is_tried_with_a_faster_kernel(target: str) -> None:
    same, wider = (8, 3, 1), (12, 3, 1)
    deep = convolutions(16, [same, same, same, (12, 3, 2), wider, wider, (16, 3, 2), (16, 3, 1)])
    found = plans(deep, Options(target=target, budget={"ram": LEAST}))
    search = Search(found)
    search.enough = 0
    picks = search.best()
    best = found.trial(picks)
    faster = [(*picks[:n], other, *picks[n + 1 :]) for n, pick in enumerate(picks) for other in range(pick)]
    assert len(faster) > 5
    assert not any(trial.bytes <= best.bytes and trial.time < best.time for trial in map(found.trial, faster))


def test_without_a_trial_each_call_gets_what_it_would_alone(target: str) -> None:
    found = plans(NETWORKS["narrow"], Options(target=target, prefer="ram"))
    with limited(tried_calls=1):
        assert not any(Search(found).best())


def test_plans_compute_the_same_in_less_memory(target: str) -> None:
    x = np.random.default_rng(1).integers(-128, 128, (1, 1, 12, 12)).astype(np.int8)
    arenas, results, by_rows = [], [], []
    for prefer, without in (("time", ""), ("ram", "choose_kernels"), ("ram", "")):
        options = Options(target=target, prefer=prefer, without=frozenset({without} - {""}))
        package = compile_graph(load_proto(NETWORKS["separable"], Path()), options, "m")
        (result,) = build(package, options.resolved_target()).run({"x": x}).values()
        arenas.append(package.plan.arena_bytes)
        results.append(result)
        functions = [step.function for step in package.plan.steps()]
        by_rows.append([f.call.outs[0].lines for f in functions if f.kernel.id == DEPTHWISE and f.call.rows == 2])
    assert arenas[0] > arenas[1] > arenas[2]
    assert any(by_rows[1])  # rings of rows of a kernel for pairs of rows
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
