"""Scan: a region that runs once for every slice of its operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.dims import Dim, symbol, upper
from ..base.records import dataclass
from ..base.tensor import TensorType, may_be_equal
from ..expr.ir import size
from ..graph.ir import Graph, Node, Value
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .rules.backward import Backward
from .rules.known_shapes import FIX_DIMENSIONS
from .rules.trips import LoopWriter, check_states, counter_name, slice_at, without_axis
from .rules.trips import stacked as stacked_type
from .rules.written_trips import copied, slices, stacked, trips_of


@dataclass(frozen=True)
class Scan(Operator):
    """Operands: first values, then what is cut into slices. The region: values, slices -> values, collected slices."""

    versions = (8, 9, 11, 16, 19, 21, 23, 24, 25)
    num_scan_inputs: int
    scan_input_axes: tuple[int, ...] = ()
    scan_input_directions: tuple[int, ...] = ()
    scan_output_axes: tuple[int, ...] = ()
    scan_output_directions: tuple[int, ...] = ()

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        return _over_samples(node) if node.version < 9 else make(cls, node)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        attributes, opset = super().to_onnx()
        return {name: value for name, value in attributes.items() if value != ()}, opset

    @classmethod
    def region_inputs(cls, node: OnnxNode, index: int) -> Sequence[Fact] | None:
        types = [value.type for value in node.inputs if value is not None]
        if node.version < 9:
            types = [_sample(type) for type in types]
        count = node.attributes["num_scan_inputs"]
        axes = node.attributes.get("scan_input_axes", ())
        if not 0 < count <= len(types):
            raise Invalid(f"it has {len(types)} operands, of which {count} shall be cut into slices")
        states, cut = types[:-count], types[-count:]
        axes = _axes(axes, [type.rank for type in cut])
        slices = [TensorType(t.dtype, without_axis(t.shape, axis)) for t, axis in zip(cut, axes, strict=True)]
        return [Fact(type) for type in (*states, *slices)]

    def infer(self, site: Site) -> list[Fact]:
        body = site.regions[0]
        states = len(site.facts) - self.num_scan_inputs
        if len(body.inputs) != len(site.facts) or not states <= len(body.outputs):
            raise Invalid(
                f"its body has {len(body.inputs)} inputs and {len(body.outputs)} outputs for {len(site.facts)} operands"
            )
        check_states([site.type(n) for n in range(states)], body.outputs[:states])
        trips = self.trips(site)
        facts = [Fact(value.type) for value in body.outputs[:states]]
        collected = [value.type for value in body.outputs[states:]]
        for type, axis in zip(collected, self.collected_axes(site), strict=True):
            facts.append(Fact(stacked_type(type, axis, trips, body)))
        return facts

    def cut(self, site: Site) -> list[tuple[int, int]]:
        """Operand and axis of what is cut into slices."""
        first = len(site.facts) - self.num_scan_inputs
        operands = range(first, len(site.facts))
        axes = _axes(self.scan_input_axes, [site.type(n).rank for n in operands])
        _check_directions(self.scan_input_directions, len(axes))
        return list(zip(operands, axes, strict=True))

    def collected_axes(self, site: Site) -> list[int]:
        """Along which results are put together."""
        outputs = site.regions[0].outputs[len(site.facts) - self.num_scan_inputs :]
        _check_directions(self.scan_output_directions, len(outputs))
        return _axes(self.scan_output_axes, [value.type.rank + 1 for value in outputs])

    def trips(self, site: Site) -> Dim:
        sizes = [site.shape(number)[axis] for number, axis in self.cut(site)]
        text = f"its operands have {', '.join(map(str, sizes))} slices"
        if not all(may_be_equal(size, sizes[0]) for size in sizes):
            raise Invalid(text)
        if any(size != sizes[0] for size in sizes):
            raise Unsupported(f"{text}: equal only for some sizes", FIX_DIMENSIONS)
        return sizes[0]

    def gradient(self, back: Backward) -> None:
        site, body = back.site, back.forward.regions[0]
        states = len(site.facts) - self.num_scan_inputs
        values = [back.input(n) for n in range(states)]
        trips = trips_of(back, body, self.trips(site))
        cut = [
            slices(back, back.input(n), axis)[:: -1 if backwards else 1]
            for (n, axis), backwards in zip(
                self.cut(site), self.scan_input_directions or (0,) * self.num_scan_inputs, strict=True
            )
        ]
        collected = list[list[Value]]()
        for trip in trips:
            made = copied(back, body, [*values, *(each[trip] for each in cut)])
            values = made[:states]
            collected.append(made[states:])
        axes = self.collected_axes(site)
        directions = self.scan_output_directions or (0,) * len(axes)
        results = zip(zip(*collected, strict=True), axes, directions, strict=True)
        stacks = [stacked(back, parts[:: -1 if backwards else 1], axis) for parts, axis, backwards in results]
        back.instead([*values, *stacks], everywhere=True)

    def fixed_trips(self, site: Site) -> bool:
        return isinstance(self.trips(site), int)

    def lower(self, to: Lowering) -> None:
        site, body = to.site, to.node.regions[0]
        states = len(site.facts) - self.num_scan_inputs
        trips = self.trips(site)
        writer = LoopWriter(to, body, [to.input(n) for n in range(states)])
        counter = symbol(counter_name(to.provenance[0]), 0, max(upper(trips) - 1, 0))
        for number in range(states):
            writer.state(number, number)
        directions = self.scan_input_directions or (0,) * self.num_scan_inputs
        for (number, axis), backwards in zip(self.cut(site), directions, strict=True):
            writer.bind(number, slice_at(to.input(number), axis, counter, trips, bool(backwards)))
        count = len(body.outputs) - states
        axes = self.collected_axes(site)
        directions = self.scan_output_directions or (0,) * count
        parts = zip(range(states, states + count), axes, directions, strict=True)
        writer.collect([(number, axis, bool(backwards)) for number, axis, backwards in parts])
        writer.counter, writer.room = counter, trips
        writer.run(trips if isinstance(trips, int) else to.map(size(trips), []), states, None)


def _sample(type: TensorType) -> TensorType:
    if not type.rank:
        raise Invalid(f"{type} has no axis for samples")
    return TensorType(type.dtype, type.shape[1:])


def _over_samples(node: OnnxNode) -> Scan:
    """Scan as opset 8 had it, one sample after the other: a Scan over the samples, with a Scan in it."""
    lengths, *operands = node.inputs
    present = [value for value in operands if value is not None]
    if lengths is not None or len(present) < len(operands):
        raise Unsupported("the sequences have lengths of their own", "export the model with opset 9 or later")
    directions = tuple(node.attributes.get("directions", ()))
    each = Scan(node.attributes["num_scan_inputs"], scan_input_directions=directions)
    inputs = [Value(f"{node.name}/sample_{n}", Fact(_sample(value.type))) for n, value in enumerate(present)]
    inner = Node(each, inputs, [None] * node.outputs, (f"{node.name}/sample",), node.regions)
    facts = each.infer(inner.site())
    results = [Value(f"{node.name}/sample_result_{n}", fact) for n, fact in enumerate(facts)]
    inner.outputs = [*results]
    samples = Graph(f"{node.name}/samples", inputs, results)
    samples.add(inner)
    node.inputs, node.regions = [*present], (samples,)
    return Scan(len(present))


def _check_directions(directions: Sequence[int], count: int) -> None:
    if directions and len(directions) != count:
        raise Invalid(f"there are {len(directions)} directions for {count} tensors")


def _axes(axes: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """One axis for each tensor, counted from 0; 0 where none are given."""
    if axes and len(axes) != len(ranks):
        raise Invalid(f"there are {len(axes)} axes for {len(ranks)} tensors")
    if 0 in ranks:
        raise Invalid("a scalar cannot be cut into slices")
    return [normal_axis(axis, rank) for axis, rank in zip(axes or [0] * len(ranks), ranks, strict=True)]
