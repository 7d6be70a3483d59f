"""How the tensors of a window network move in time, and which past elements its operators need.

Invariant: what this refuses cannot be run frame by frame with the numbers that the window network gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import ceil, lcm

import numpy as np

from ...base.constant import Constant
from ...base.errors import Problem, UnsupportedModel, WrongUse, raise_all
from ...base.near import meant
from ...base.provenance import show
from ...base.streaming import WARM, Stream, StreamedOutput
from ...graph.ir import Graph, Node, Value, reads
from ...ops.cast import Cast
from ...ops.quantize import DequantizeLinear
from . import carried, data_movement, elementwise_motion, windows  # noqa: F401 (each tells its rules)
from .motion import Frames, Motion, NodeMotion, Span, Step, rule_of


class Analysis:
    """Of one graph. `steps` has every node that depends on what moves."""

    def __init__(self, graph: Graph, asked: Stream) -> None:
        self.graph, self.asked, self.hop = graph, asked, asked.hop
        self.motions: dict[Value, Motion] = {}
        self.steps: dict[Node, Step] = {}
        self.known: set[Value] = set()  # results that are the same for every window
        self.past: dict[Value, int] = {}  # older elements that have to be kept
        self.ends: list[tuple[Value, Span]] = []  # elements of the window that something reads as such
        self.whole: list[Node] = []  # nodes that read all of the window
        self.window = self._inputs()
        self.lasting = _lasting(graph)  # what depends on states of the network's own: it runs once in a push
        if asked.edge == WARM:
            carried.read_last(graph)
        for node in graph.nodes:
            self._visit(node)
        self._check_hop()
        self._check_use()
        self._check_steps()
        self.delay = self._delay()  # frames by which windows that are read as such lie back
        self.outputs = tuple(self._output(value) for value in graph.outputs)
        self._check_ends()
        for node, step in self.steps.items():
            for place, span in step.reads.items():
                value = node.inputs[place]
                assert value is not None
                self._keep(value, self.late(value, span) if self._is_end(step) else span)
        for value, span in self._given():
            self._keep(value, span)

    def known_contents(self) -> dict[Value, Constant]:
        """What is computed of the sizes of windows alone."""
        return {value: contents_of(value) for value in self.known}

    # -- what was asked for

    def _inputs(self) -> int:
        problems: list[Problem] = []
        lengths: dict[str, int] = {}
        inputs = {value.name: value for value in self.graph.inputs}
        for name, axis in self.asked.inputs.items():
            where = f"--stream {name}={axis}"
            value = inputs.get(name)
            if value is None:
                fix = meant(name, inputs) or "write --stream INPUT=AXIS"
                why = f"the inputs are {', '.join(inputs) or 'none'}"
                problems.append(Problem(f"there is no input {name!r}", where, why, fix))
            elif not -value.type.rank <= axis < value.type.rank:
                why = f"it is {value.type}"
                fix = f"the last one is --stream {name}={value.type.rank - 1}"
                problems.append(Problem(f"input {name!r} has no axis {axis}", where, why, fix))
            elif not all(each.type.is_static for each in self.graph.values()):
                open_one = next(each for each in self.graph.values() if not each.type.is_static)
                why = f"{open_one.name!r} is {open_one.type}"
                fix = "fix it with --dim or --shape, or leave out --stream where a run finds it out"
                problems.append(Problem("--stream needs fixed sizes", where, why, fix))
            else:
                axis %= value.type.rank
                lengths[name] = length = value.type.static_shape[axis]
                self.motions[value] = Motion(axis, length, 1, 0, length, 0)
        if len(set(lengths.values())) > 1:
            why = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            fix = "give them windows of one length with --dim or --shape, or leave one out of --stream"
            problems.append(Problem("inputs that move together need windows of one length", "--stream", why, fix))
        raise_all(WrongUse, problems)
        return next(iter(lengths.values()))

    # -- node by node

    def _visit(self, node: Node) -> None:
        changing = [value for value in reads(node) if self._depends(value)]
        if not changing:
            return
        if all(_is_known(value) for value in node.present_outputs):
            self.known.update(node.present_outputs)
            return
        inside = [value for value in changing if value not in node.inputs]
        if inside:
            why = f"{inside[0].name!r} moves, and the body of {node.op.name} reads it"
            fix = "move it out of the body, or leave out --stream"
            raise UnsupportedModel(Problem("it cannot run frame by frame", shown(node), why, fix))
        moving = tuple(self.motions.get(value) if value else None for value in node.inputs)
        found = None
        rule = rule_of(node.op)
        runs_once = any(value in self.lasting for value in node.inputs)
        if rule is not None and not runs_once and all(self.motions.get(value) for value in changing):
            found = rule(NodeMotion(node, node.site(), moving, self.hop, self.asked.edge == WARM))
        if found is None:
            spans = {place: (0, motion.length) for place, motion in enumerate(moving) if motion}
            found = Step((None,) * len(node.outputs), spans)
        self.steps[node] = found
        for value, motion in zip(node.outputs, found.results, strict=False):
            if value is not None and motion is not None:
                self.motions[value] = motion
        if self._is_end(found):
            if any(high - low > 1 for low, high in found.reads.values()):
                self.whole.append(node)
            for place, span in found.reads.items():
                operand = node.inputs[place]
                assert operand is not None
                self.ends.append((operand, span))

    def _depends(self, value: Value) -> bool:
        return value in self.motions or (value.producer in self.steps and value not in self.known)

    @staticmethod
    def _is_end(step: Step) -> bool:
        """Does it read elements of the window as such?"""
        return all(motion is None for motion in step.results)

    # -- what does not go

    def _check_hop(self) -> None:
        strides = {node: motion.stride for node, step in self.steps.items() for motion in step.results if motion}
        node = next((node for node, stride in strides.items() if self.hop % stride), None)
        if node is not None:
            every = _multiple(strides.values())
            of, made = Fraction(strides[node]).as_integer_ratio()
            elements = f"{made} elements" if made > 1 else "one element"
            why = f"it makes {elements} of {of} frames, and a push brings {self.hop}"
            fix = f"bring as many as all strides: {replace(self.asked, hop=every * -(-self.hop // every))}"
            raise UnsupportedModel(Problem("the hop is not a multiple of the network's stride", shown(node), why, fix))

    def _check_use(self) -> None:
        """Is anything computed for the new frames alone?"""
        if self.steps and (not self.whole or any(step.saves for step in self.steps.values())):
            return
        if self.lasting:
            before = next(iter(self.graph.states))
            why, fix = f"input {before!r} is what the run before left", "leave it out"
            raise WrongUse(Problem("--stream has no effect on a network that keeps state", "--stream", why, fix))
        node = next(iter(self.whole), None)
        where = shown(node) if node else f"input {', '.join(self.asked.inputs)}"
        why = f"{node.op.name} needs all of the window" if node else "nothing depends on it"
        fix = "leave out --stream, or name the axis of time"
        if node is not None and carried.goes_on(node) and self.asked.edge != WARM:
            fix = f"let it go on from push to push: {replace(self.asked, edge=WARM)}"
        raise UnsupportedModel(Problem("--stream saves no work", where, why, fix))

    def _check_steps(self) -> None:
        """A network with states of its own takes each element once, so a push has to bring all that a run reads."""
        for value, (low, high) in self.ends if self.lasting else ():
            motion = self.motions[value]
            if self.hop == (high - low) * motion.stride:
                continue
            fix = f"bring as many: {replace(self.asked, hop=ceil((high - low) * motion.stride))}"
            why = f"a run of it takes {high - low} new elements of {value.name!r}, each of {motion.stride} frames"
            what = "a push is not a run of the network, which has states of its own"
            raise UnsupportedModel(Problem(what, str(self.asked), why, fix))

    def _delay(self) -> int:
        """So many frames after the end of a window all is there that is read of it."""
        missing = [(span[1] - m.high) * m.stride for value, span in self.ends if (m := self.motions[value])]
        delay = max(0, *missing) if missing else 0
        strides = _multiple(motion.stride for motion in self.motions.values())
        return ceil(Fraction(delay) / strides) * strides if self.asked.edge == WARM else 0

    def _check_ends(self) -> None:
        """Unless windows are taken to go on at their ends, nothing may be read that depends on where these are."""
        if self.asked.edge == WARM:
            return
        for value, (low, high) in [*self.ends, *self._given()]:
            motion = self.motions[value]
            node, side = (motion.start, "start") if 0 <= low < motion.low else (motion.end, "end")
            # elements before the window are results of no window: all that it has depend on its end
            if node is not None and (low < max(motion.low, 0) or high > motion.high):
                what = "results depend on where the window lies"
                why = f"it pads the {side} of the window, and {value.name!r} depends on that"
                less = "leave out ceil_mode" if getattr(node.op, "ceil_mode", 0) else "pad less"
                fix = f"as if the window went on there: {replace(self.asked, edge=WARM)}; or {less}"
                raise UnsupportedModel(Problem(what, shown(node), why, fix))

    # -- what is read

    def late(self, value: Value, span: Span) -> Span:
        """Elements of the window that ended `delay` frames ago."""
        back = int(self.delay // self.motions[value].stride)
        return span[0] - back, span[1] - back

    def new(self, value: Value) -> Span:
        motion = self.motions[value]
        return motion.high - int(self.hop // motion.stride), motion.high

    def _output(self, value: Value) -> tuple[StreamedOutput, Span | None]:
        motion = self.motions.get(value)
        if motion is None:
            return StreamedOutput(value.name, None, 0, 0, self.delay if self._depends(value) else 0), None
        end = min(motion.high, motion.length)
        count = min(int(self.hop // motion.stride), motion.length)
        latency = ceil((motion.length - end) * motion.stride)
        return StreamedOutput(value.name, motion.axis, end - count, count, latency), (end - count, end)

    def _given(self) -> list[tuple[Value, Span]]:
        """The outputs that move, and what a push gives of them."""
        return [(v, span) for v, (_, span) in zip(self.graph.outputs, self.outputs, strict=True) if span is not None]

    def exact(self, value: Value, span: Span) -> bool:
        """Do these elements of the window depend on nothing but frames, wherever the window ends?"""
        motion = self.motions[value]
        return span[0] >= max(motion.low, 0) and span[1] <= motion.high

    @property
    def compared(self) -> tuple[Span, ...]:
        """Which elements of each output along its axis are those of the window, so many from the first that a push
        gives; all or none of an output without one. Where windows go on at their ends only those that do not depend on
        where these are."""
        counts = [output.count if span else 1 for output, span in self.outputs]
        if self.asked.edge != WARM:
            return tuple((0, count) for count in counts)
        if any(step.carries for step in self.steps.values()):
            return tuple((0, 0) for _ in counts)
        all_exact = all(self.exact(value, span) for value, span in self.ends)
        found: list[Span] = []
        for value, (_, span) in zip(self.graph.outputs, self.outputs, strict=True):
            if span is None:
                found.append((0, int(all_exact)))
                continue
            inside = [place for place in range(*span) if self.exact(value, (place, place + 1))]
            found.append((inside[0] - span[0], inside[-1] + 1 - span[0]) if inside else (0, 0))
        return tuple(found)

    @property
    def warm_up(self) -> int:
        """Pushes until everything that a result depends on has come."""
        used = [(value, self.late(value, span)) for value, span in self.ends]
        moving = [(self.motions[value], span) for value, span in [*used, *self._given()]]
        oldest = min((motion.oldest + span[0] * motion.stride for motion, span in moving), default=0)
        return max(1, -(-(self.window - ceil(oldest)) // self.hop))

    def source(self, value: Value, span: Span) -> tuple[Value, Span] | None:
        """Where elements of a value are taken from, if not from it: what it only shows, or what it is computed from at
        no cost and in fewer bytes."""
        node = value.producer
        step = self.steps.get(node) if node else None
        if node is None or step is None:
            return None
        if step.shifts:
            source, shift = node.inputs[step.source], step.shifts[node.outputs.index(value)]
            assert source is not None
            return source, (span[0] + shift, span[1] + shift)
        source = node.inputs[0]
        if source is None or source not in self.motions or list(step.reads) != [0]:
            return None
        smaller = source.type.dtype.bits < value.type.dtype.bits
        if isinstance(node.op, DequantizeLinear) or (isinstance(node.op, Cast) and smaller):
            return source, span
        return None

    def _keep(self, value: Value, span: Span) -> None:
        if span == self.new(value) and not self._is_alias(value):
            return
        found = self.source(value, span)
        if found is not None:
            self._keep(*found)
        else:
            self.past[value] = max(self.past.get(value, 0), self.new(value)[0] - span[0])

    def _is_alias(self, value: Value) -> bool:
        step = self.steps.get(value.producer) if value.producer else None
        return step is not None and bool(step.shifts)


def _multiple(strides: Iterable[Frames]) -> int:
    """The fewest frames that are whole numbers of elements of each stride."""
    return lcm(*(Fraction(stride).numerator for stride in strides))


def _lasting(graph: Graph) -> set[Value]:
    found = {value for value in graph.inputs if value.name in graph.states}
    for node in graph.nodes:
        if found.intersection(reads(node)):
            found.update(node.present_outputs)
    return found


def _is_known(value: Value) -> bool:
    known = value.fact.value
    return known is not None and all(isinstance(each, int) for each in known.reshape(-1))


def contents_of(value: Value) -> Constant:
    """Of a result that is known."""
    known = value.fact.value
    assert known is not None
    return Constant.of(np.array(known.tolist(), value.type.dtype.numpy).reshape(known.shape))


def shown(node: Node) -> str:
    """As problems name it."""
    return f'node "{show(node.provenance)}" ({node.op.name})'
