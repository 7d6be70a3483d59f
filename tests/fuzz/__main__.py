"""The fuzzer of whole programs: `make fuzz SECONDS=600 SEED=1`.

Workers draw subjects by number, compile each with several options, and build and run programs of one machine in
batches. A worker that dies or hangs is replaced, and what it was at is the verdict. Status 1 says that some failed."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path

import numpy as np

from mccompile.base.errors import STRICT
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto

from . import machines, official, options, oracle, programs, rooms, shrink, strays, subject, trial, ways
from .machines import Machine
from .operators.registry import entries
from .report import Figures, Outcome, text
from .trial import BAD, CRASH, HANG, Trial, Verdict

VARIANTS = 4  # programs per subject
GROUP = 24  # subjects that a worker takes at a time
STALLED = 900.0  # seconds
TOLD = 120.0  # seconds between two lines that say how far it is
WARM = 10.0  # seconds at most, before workers part
RENEWED = 0.06  # of the programs, which are run with weights trained anew


@dataclass(frozen=True)
class Source:
    """What programs are drawn from."""

    seed: int
    machines: tuple[Machine, ...]
    having: frozenset[str] = frozenset()  # operators, one of which each graph has; none: any graph
    options: frozenset[str] = frozenset()  # fields of Options, one of which each program has; none: any program
    strays: float = strays.SHARE  # of the graphs, given values that are not finite and the like

    def drawn(self, number: int) -> subject.Subject:
        """More often over many rows where memories are asked for: these may come early; and over time for streams."""
        tall = 0.5 if "mem" in self.options else subject.TALL
        streamed = 0.7 if "stream" in self.options else subject.STREAMED
        return subject.draw(self.seed, number, self.having, tall, streamed)


def main() -> int:
    os.environ[STRICT] = "1"  # a pass that fails is a crash
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--subjects", type=int, default=0, help="end after so many, whatever the time")
    parser.add_argument("--first", type=int, default=0, help="the number of the first subject")
    parser.add_argument("--subject", type=int, help="only this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--targets", default="", help="only these, with commas between")
    parser.add_argument("--having", default="", help="only graphs with one of these operators, with commas between")
    parser.add_argument("--options", default="", help="only programs with one of these, as fields of Options are named")
    parser.add_argument("--strays", type=float, default=strays.SHARE, help="share of graphs given NaN and the like")
    parser.add_argument("--shrink", type=float, default=20.0, help="seconds for each failure")
    parser.add_argument("--out", type=Path, help="where failures are written as well")
    arguments = parser.parse_args()
    there = machines.available(tuple(_listed(arguments.targets)))
    asked = frozenset(_listed(arguments.options))
    if unknown := asked - {*options.choices()}:
        parser.error(f"no program draws {', '.join(sorted(unknown))}; --options takes {', '.join(options.choices())}")
    having, known = frozenset(_listed(arguments.having)), {*entries(), *official.cases()} if arguments.having else set()
    if unknown := having - known:
        parser.error(f"no graph has {', '.join(sorted(unknown))}; --having takes {', '.join(sorted(known))}")
    source = Source(arguments.seed, there, having, asked, arguments.strays)
    if arguments.subject is not None:
        return _one(source, arguments.subject, arguments.shrink)
    with tempfile.TemporaryDirectory(prefix="fuzz-kept-") as folder:
        programs.kept = Path(folder)
        figures, first, last, seconds = fuzz(
            source,
            arguments.first,
            arguments.subjects,
            arguments.seconds,
            arguments.jobs,
            arguments.shrink,
            arguments.out,
        )
    for line in figures.lines(arguments.seed, first, last, seconds):
        print(line)
    return int(any(figures.verdicts[kind] for kind in BAD))


def _listed(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def fuzz(
    source: Source,
    first: int,
    subjects: int,
    seconds: float,
    jobs: int,
    shrinking: float,
    out: Path | None = None,
) -> tuple[Figures, int, int, float]:
    entries(), official.cases()  # before workers part
    _warm(source, range(first, first + GROUP))
    start, figures, following = time.monotonic(), Figures(), first
    workers: list[_Worker] = []
    end = start + seconds

    def more() -> bool:
        return (not subjects or following < first + subjects) and time.monotonic() - start < seconds

    told = start
    while workers or more():
        if time.monotonic() - told > TOLD:
            told = time.monotonic()
            lines = figures.lines(source.seed, first, following - 1, told - start)[:5]
            print("\n".join(lines), file=sys.stderr, flush=True)
        while len(workers) < jobs and more():
            count = min(GROUP, first + subjects - following) if subjects else GROUP
            workers.append(_Worker(source, range(following, following + count), shrinking, end))
            following += count
        ready = wait([worker.pipe for worker in workers], timeout=5.0)
        for worker in list(workers):
            found = worker.received() if worker.pipe in ready else worker.stalled()
            for outcome in found:
                figures.add(outcome)
                if outcome.text:
                    print(outcome.text, flush=True)
                    if out is not None:
                        with out.open("a", encoding="utf-8") as file:
                            file.write(outcome.text + "\n")
            if worker.done:
                workers.remove(worker)
    return figures, first, following - 1, time.monotonic() - start


def _warm(source: Source, numbers: range) -> None:
    """Compiles some subjects, so that each worker begins with the modules and templates that all of them need."""
    start = time.monotonic()
    for number in numbers:
        if time.monotonic() - start > WARM:
            break
        machine = source.machines[number % len(source.machines)]
        with suppress(Exception), trial.limited(trial.COMPILE_SECONDS):  # a worker says what is wrong
            made = source.drawn(number)
            chosen = options.draw(np.random.default_rng(number), made, machine, source.options)
            graph = load_proto(made.model, None, chosen.dims, chosen.shapes, bounds=chosen.bounds)
            compile_graph(graph, replace(chosen, tuned=None), "warm")


class _Worker:
    """A process with a range of subjects to do."""

    def __init__(self, source: Source, numbers: range, shrinking: float, end: float) -> None:
        self.seed, self.numbers, self.done, self.heard = source.seed, numbers, False, time.monotonic()
        self.now = -1
        self.pipe, theirs = multiprocessing.Pipe(duplex=False)
        context = multiprocessing.get_context("fork")
        self.process = context.Process(target=_work, args=(theirs, source, numbers, shrinking, end), daemon=True)
        self.process.start()
        theirs.close()

    def received(self) -> list[Outcome]:
        self.heard = time.monotonic()
        try:
            message = self.pipe.recv()
        except EOFError:
            self.process.join()
            return self._ended(CRASH, f"the process ended with {self.process.exitcode}")
        if isinstance(message, int):
            self.now = message
            return []
        if message is None:
            self.done = True
            self.process.join()
            return []
        return [message]

    def stalled(self) -> list[Outcome]:
        if time.monotonic() - self.heard < STALLED:
            return []
        self.process.kill()
        return self._ended(HANG, f"nothing happened for {STALLED:.0f} s")

    def _ended(self, kind: str, why: str) -> list[Outcome]:
        self.done = True
        said = f"==== {kind}: --seed {self.seed} --subject {self.now}\n{why}"
        return [Outcome(self.now, 0, Verdict(kind, why), Options(), (), False, False, said)]


def _work(pipe: Connection, source: Source, numbers: range, shrinking: float, end: float) -> None:
    """Programs of one build are run together, as many as the machine likes. After `end` no subject is begun, and no
    failure is made smaller."""
    waiting: dict[Machine, list[Trial]] = {}
    builds: dict[Machine, machines.Build] = {}
    chance = np.random.default_rng([source.seed, numbers.start, 2])
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:

        def finish(machine: Machine) -> None:
            trials = waiting.pop(machine)
            build = builds.pop(machine)
            for each in trials:
                each.build = build
            trial.run(trials, Path(scratch, "batch"))
            for each in trials:
                pipe.send(_outcome(each, Path(scratch, "small"), min(shrinking, end - time.monotonic())))

        for number in numbers:
            if time.monotonic() > end:
                break
            pipe.send(number)
            try:
                found = trials_of(source, number)
            except Exception:  # of the fuzzer's own: one subject less, and to be mended
                why = traceback.format_exc()
                said = f"==== crash of the fuzzer: --seed {source.seed} --subject {number}\n{why}"
                pipe.send(Outcome(number, 0, Verdict(CRASH, why), Options(), (), False, False, said))
                continue
            for made in found:
                machine = made.build.machine
                waiting.setdefault(machine, []).append(made)
                builds.setdefault(machine, machines.draw(machine, chance))
                if len(waiting[machine]) >= machine.per_batch:
                    finish(machine)
        for machine in list(waiting):
            finish(machine)
    pipe.send(None)


def _outcome(made: Trial, folder: Path, shrinking: float) -> Outcome:
    assert made.verdict is not None
    if made.verdict.kind not in BAD:
        return Outcome.of(made)
    small = shrink.shrunk(made, folder, shrinking) if shrinking > 0 else made
    return Outcome.of(made, text(small))


def trials_of(source: Source, number: int) -> list[Trial]:
    """The programs of one subject."""
    seed, there = source.seed, source.machines
    made = source.drawn(number)
    runs = made.runs([seed, number])
    wanted = oracle.wanted(made, runs)
    if not wanted.is_known:
        wanted = baseline(seed, number, made, runs, wanted)
    strange = strays.drawn(made, runs, [seed, number], source.strays) if wanted.is_known else None
    chance = np.random.default_rng([seed, number, 3])
    weights = np.array([machine.weight for machine in there])
    found = []
    for variant in range(VARIANTS):
        machine = there[int(chance.choice(len(there), p=weights / weights.sum()))]
        chosen = options.draw(chance, made, machine, source.options)
        chosen = rooms.tight(np.random.default_rng([seed, number, 6, variant]), made, chosen)
        one = Trial(seed, number, variant, made, chosen, machines.draw(machine, chance), runs, wanted)
        if one.hand_over(runs):
            one.wanted = oracle.wanted(made, one.runs)
        one = one if chance.random() > RENEWED else with_other_weights(one)
        if strange is not None and one.fed is None and one.renewed is None:
            one = with_strays(one, strange)
        found.append(in_some_way(one, np.random.default_rng([seed, number, 5, variant])))
    return found


def in_some_way(made: Trial, chance: np.random.Generator) -> Trial:
    """The same program, at times written and built as a user does it."""
    machine = made.build.machine
    way = "" if made.renewed is not None else ways.draw(chance, made.options, machine)
    return replace(made, way=way, asked=ways.target(way, made.options, chance)) if way else made


def with_other_weights(made: Trial) -> Trial:
    """The same program, run with the blob of a network trained anew, where that has weights."""
    other = subject.trained_anew(made.subject, made.seed, made.number)
    if other is None:
        return made
    wanted = oracle.wanted(other, made.runs)
    return replace(made, renewed=other, wanted=wanted) if wanted.is_known else made


def with_strays(made: Trial, strange: strays.Strays) -> Trial:
    """The same program, given values that are not finite and the like."""
    if strange.kind == strays.SMALL and made.build.machine.target in strays.FLUSHING:
        return made
    seen = {"subject": strange.subject, "runs": strange.runs, "wanted": strange.wanted}
    return replace(made, **seen, strays=strange)


def baseline(
    seed: int, number: int, made: subject.Subject, runs: Sequence[subject.Arrays], wanted: oracle.Wanted
) -> oracle.Wanted:
    """What the model gives without optimization, where nobody else can say."""
    machine = machines.MACHINES[0]
    plain = Options(optimize=False, dims=options.dims(made), bounds=made.bounds, state=made.state)
    first = Trial(seed, number, 0, made, plain, machines.Build(machine, "gcc", ("-std=c99", "-O0")), runs, wanted)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        trial.run([first], Path(scratch))
    if first.item is None or not isinstance(first.item.outcome, list):
        return wanted
    found = [
        {name: answers or [run[name]] for name, answers in per_run.items() if name in run or answers}
        for per_run, run in zip(wanted.runs, first.item.outcome[0], strict=True)
    ]
    return oracle.Wanted(found, wanted.disagreed)


def _one(source: Source, number: int, shrinking: float) -> int:
    bad = False
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        for made in trials_of(source, number):
            trial.run([made], Path(scratch, "batch"))
            assert made.verdict is not None
            bad |= made.verdict.kind in BAD
            small = shrink.shrunk(made, Path(scratch, "small"), shrinking) if made.verdict.kind in BAD else made
            print(text(small))
    return int(bad)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.exit(130)
