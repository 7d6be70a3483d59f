"""stream: rewrites a window network so that it reads only the newest frames.

Each tensor that moves becomes its new elements. Where an operator needs older ones, they are an input of the graph that
is joined to the new ones, and the newest of both are an output: a state, as `--state` makes them. All that comes after
is the compiler as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...base.constant import Constant
from ...base.errors import Problem, UnsupportedModel, WrongUse
from ...base.names import new_name
from ...base.provenance import Provenance, merge
from ...base.streaming import Stream, Streamed
from ...base.tensor import TensorType
from ...graph.ir import Fact, Graph, Node, Op, Refused, Value
from ...ops.api import Operator
from ...ops.concat import Concat
from ...ops.identity import Identity
from ...ops.slice import Slice
from ...ops.transpose import Transpose
from ..graph.assign_layout import last_order
from ..graph.eliminate_dead import drop_dead
from .analysis import Analysis, contents_of, shown
from .motion import Span, Step
from .validation import Validation


def stream(graph: Graph, asked: Stream) -> tuple[Graph, Streamed]:
    """The step network, and what programs have to know of it."""
    if asked.edge not in ("", "warm"):
        fix = "write edge=warm, or leave it out"
        raise WrongUse(Problem(f"the edge cannot be {asked.edge!r}", "--stream", "it can be warm", fix))
    if asked.hop < 1:
        axes = ",".join(f"{name}={axis}" for name, axis in asked.inputs.items())
        fix = f"did you mean --stream {axes},hop=1?"
        why = "hop is 1 or more"
        raise WrongUse(Problem(f"a push cannot bring {asked.hop} frames", "--stream", why, fix))
    kept = next((name for name in asked.inputs if name in graph.states), None)
    if kept is not None:
        why = "it holds state of the previous run"
        raise WrongUse(Problem(f"no frames come in at {kept!r}", "--stream", why, "name another input"))
    drop_dead(graph)
    found = Analysis(graph, asked)
    validate = Validation(graph, found.known_contents())
    built, streamed = _built(graph, found)
    validate(built, streamed, found.compared)
    return built, _as_seen(streamed, graph)


def rewritten(graph: Graph, asked: Stream) -> tuple[Graph, Streamed]:
    """The same of what is right to be asked, and not validated."""
    drop_dead(graph)
    built, streamed = _built(graph, Analysis(graph, asked))
    return built, _as_seen(streamed, graph)


def _as_seen(streamed: Streamed, window: Graph) -> Streamed:
    """Without the outputs that are states."""
    states = set(window.states.values())
    return replace(streamed, outputs=tuple(each for each in streamed.outputs if each.name not in states))


def _built(graph: Graph, found: Analysis) -> tuple[Graph, Streamed]:
    built = _Builder(graph, found).built()
    inputs = {value.name: found.motions[value].axis for value in graph.inputs if value in found.motions}
    outputs = tuple(output for output, _ in found.outputs)
    whole = tuple(dict.fromkeys(node.op.name for node in found.whole))
    carried = tuple(dict.fromkeys(node.op.name for node, step in found.steps.items() if step.carries))
    own = tuple(graph.states)
    return built, Streamed(inputs, found.window, found.hop, found.warm_up, outputs, whole, carried, own)


class _Builder:
    def __init__(self, window: Graph, found: Analysis) -> None:
        self.window, self.found = window, found
        self.graph = Graph(window.name)
        self.graph.facts_known, self.graph.updatable = window.facts_known, window.updatable
        self.graph.interface, self.graph.assumed = window.interface, window.assumed
        self.graph.left_in_float = window.left_in_float
        self.taken = {value.name for value in window.values()}
        self.made: dict[Value, Value] = {}  # what a value of the window network is here: its new elements, or as it was
        self.parts: dict[tuple[Value, Span], Value] = {}
        self.states: dict[str, Value] = {}  # outputs that are kept, by name

    def built(self) -> Graph:
        found = self.found
        for value in self.window.inputs:
            self.made[value] = Value(value.name, self._fact(value))
        self.graph.inputs = [self.made[value] for value in self.window.inputs]
        for node in self.window.nodes:
            if not all(value in found.known for value in node.present_outputs):
                try:
                    self._copy(node)
                except Refused as refused:  # what the rules make of it is not an operator
                    what, fix = (
                        "it cannot run frame by frame",
                        "leave out --stream, and please report it with the model",
                    )
                    raise UnsupportedModel(Problem(what, shown(node), refused.why, fix)) from refused
        for value, (_, span) in zip(self.window.outputs, found.outputs, strict=True):
            self.graph.outputs.append(self._named(value, self.part(value, span) if span else self._of(value)))
        self.graph.outputs += [self.states[kept] for kept in self.graph.states.values()]
        self.graph.states = {**self.window.states, **self.graph.states}
        return self.graph

    def _fact(self, value: Value) -> Fact:
        motion = self.found.motions.get(value)
        if motion is None:
            return value.fact
        return Fact(_sized(value.type, motion.axis, self.found.hop))

    def _copy(self, node: Node) -> None:
        step = self.found.steps.get(node)
        if step is None:
            self._node(node.op, [self._of(value) if value else None for value in node.inputs], node, node.outputs)
            return
        if step.shifts:
            return
        late = all(motion is None for motion in step.results)
        operands: list[Value | None] = []
        for place, value in enumerate(node.inputs):
            if value is None or place in step.operands:
                operands.append(None)
            elif place in step.reads:
                span = step.reads[place]
                operands.append(self.part(value, self.found.late(value, span) if late else span))
            else:
                operands.append(self._of(value))
        for place, contents in step.operands.items():
            operands += [None] * (place + 1 - len(operands))
            operands[place] = self._constant(contents, f"{node.output.name}/{place}")
        if step.carries:
            self._carry(node, step, operands)
        else:
            self._node(step.op or node.op, operands, node, node.outputs)

    def _carry(self, node: Node, step: Step, operands: list[Value | None]) -> None:
        """A node that goes on with what it has got to."""
        outputs = [*node.outputs, *[None] * (1 + max(step.carries.values()) - len(node.outputs))]
        facts = node.op.infer(replace(node.site(), outputs=len(outputs)))
        for place, result in step.carries.items():
            operands += [None] * (place + 1 - len(operands))
            operands[place] = before = Value(self._free(f"{node.output.name}/{place}/past"), facts[result])
            self.graph.inputs.append(before)
            after = outputs[result] = outputs[result] or Value(f"{before.name}/kept", facts[result])
            self.graph.states[before.name] = after.name
        self._node(node.op, operands, node, outputs)
        for result in step.carries.values():
            kept = outputs[result]
            assert kept is not None
            self.states[kept.name] = self.made[kept]

    def part(self, value: Value, span: Span) -> Value:
        """Elements of a value that moves."""
        if (value, span) in self.parts:
            return self.parts[value, span]
        made = self.made.get(value)
        source = self.found.source(value, span)
        if made is not None and span == self.found.new(value):
            part = made
        elif source is not None and value in self.made:
            assert value.producer is not None  # the same operator on other elements
            others = [self._of(each) if each else None for each in value.producer.inputs[1:]]
            part = self._made(value.producer.op, [self.part(*source), *others], f"{value.name}/part", value)
        elif source is not None:
            part = self.part(*source)
        else:
            part = self._cut(self._with_past(value), value, span)
        self.parts[value, span] = part
        return part

    def _with_past(self, value: Value) -> Value:
        """The elements that are kept and the new ones."""
        low, high = self.found.new(value)
        past = self.found.past[value]
        span = low - past, high
        if past <= 0:
            return self.made[value]
        if (value, span) not in self.parts:
            axis, new = self.found.motions[value].axis, self.made[value]
            order = self._order(value, axis)
            shape = _sized(new.type, axis, past).shape
            kept_type = TensorType(new.type.dtype, tuple(shape[place] for place in order))
            before = Value(self._free(f"{value.name}/past"), Fact(kept_type))
            self.graph.inputs.append(before)
            back = tuple(order.index(place) for place in range(len(order)))
            older = self._turned(before, back, value)
            both = self._made(Concat(axis), [older, new], f"{value.name}/both", value)
            self.parts[value, span] = both
            kept = self._sliced(both, axis, high - low, high - low + past, f"{value.name}/kept", value)
            kept = self._turned(kept, order, value)
            self.states[kept.name] = kept
            self.graph.states[before.name] = kept.name
        return self.parts[value, span]

    def _order(self, value: Value, axis: int) -> tuple[int, ...]:
        """The axes of a state as they lie in memory: time outermost, so that new elements go to its end; channels last
        where those who read it want that."""
        readers = [node for node, _ in value.uses]
        readers += [after for node in readers for made in node.present_outputs for after, _ in made.uses]
        if axis > 1 and any(isinstance(node.op, Operator) and node.op.channels_last for node in readers):
            return last_order(value.type.rank)
        return (axis, *(place for place in range(value.type.rank) if place != axis))

    def _turned(self, x: Value, order: tuple[int, ...], value: Value) -> Value:
        if order == tuple(range(len(order))):
            return x
        return self._made(Transpose(perm=order), [x], f"{x.name}/turned", value)

    def _cut(self, whole: Value, value: Value, span: Span) -> Value:
        """`span` of elements out of all that there are up to the newest."""
        axis, high = self.found.motions[value].axis, self.found.motions[value].high
        size = whole.type.static_shape[axis]
        low = span[0] - (high - size)
        if (low, span[1]) == (0, high):
            return whole
        return self._sliced(whole, axis, low, low + span[1] - span[0], f"{value.name}/part", value)

    def _sliced(self, x: Value, axis: int, low: int, high: int, name: str, near: Value) -> Value:
        cut = [self._constant(np.array([each], np.int64), f"{name}/cut") for each in (low, high, axis)]
        return self._made(Slice(), [x, *cut], name, near)

    def _named(self, value: Value, made: Value) -> Value:
        """An output under the name that it has in the window network."""
        if made is self.made.get(value) and made not in self.graph.outputs:
            return made
        own = self.made.get(value)
        if own is not None:
            own.name = self._free(f"{value.name}/new")
        node = Node(Identity(), [made], [None], _provenance(value))
        output = Value(value.name, node.op.infer(node.site())[0])
        node.outputs = [output]
        self.graph.add(node)
        return output

    def _of(self, value: Value) -> Value:
        if value not in self.made:
            if value.constant is not None:
                self.made[value] = Value.of_constant(value.name, value.constant)
            else:  # known, though it is computed
                self.made[value] = Value.of_constant(value.name, contents_of(value))
        return self.made[value]

    def _node(self, op: Op, operands: Sequence[Value | None], like: Node, outputs: Sequence[Value | None]) -> None:
        node = Node(op, operands, [None] * len(outputs), like.provenance, like.regions)
        for region in like.regions:
            self._rebind(region)
        known = tuple(self._fact(value).type if value else None for value in outputs)
        facts = op.infer(replace(node.site(), results=known))
        for place, value in enumerate(outputs):
            if value is not None:
                self.made[value] = node.outputs[place] = Value(value.name, facts[place])
        self.graph.add(node)

    def _rebind(self, region: Graph) -> None:
        """What a body reads of the graph around it is here."""
        for node in list(region.nodes):
            for place, value in enumerate(node.inputs):
                if value is not None and self._is_outside(value):
                    region.set_input(node, place, self._of(value))
            for inner in node.regions:
                self._rebind(inner)
        region.outputs = [self._of(value) if self._is_outside(value) else value for value in region.outputs]

    def _is_outside(self, value: Value) -> bool:
        return value in self.made or value in self.found.known

    def _made(self, op: Op, operands: Sequence[Value | None], name: str, near: Value) -> Value:
        return self.graph.compute(op, operands, [self._free(name)], _provenance(near))[0]

    def _constant(self, contents: np.ndarray, name: str) -> Value:
        return Value.of_constant(self._free(name), Constant.of(contents))

    def _free(self, name: str) -> str:
        return new_name(name, self.taken)


def _provenance(value: Value) -> Provenance:
    """The node that makes a value of the window network; for an input, those that read it."""
    if value.producer is not None:
        return value.producer.provenance
    return merge(*(node.provenance for node, _ in value.uses))


def _sized(type: TensorType, axis: int, size: int) -> TensorType:
    return TensorType(type.dtype, (*type.shape[:axis], size, *type.shape[axis + 1 :]))
