"""non_max_suppression in portable C: boxes leave a heap, best first, and are kept unless a kept one covers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import static, upper
from mccompile.base.dtypes import f32, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.loops import index_c
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target
from mccompile.kinds.non_max_suppression import NonMaxSuppression


class GreedyBoxes(Kernel):
    kind = NonMaxSuppression
    branches = "boxes are sorted, and compared with those that are kept"

    def cases(self) -> Sequence[Case]:
        # every box is kept, so that all of the result is written; tests/ops/test_data_dependent.py has others
        scalar, boxes, scores = TensorType(f32, ()), TensorType(f32, (2, 5, 4)), TensorType(f32, (2, 3, 5))
        ins = (boxes, scores, TensorType(i64, ()), scalar, scalar)
        outs = (TensorType(i64, (30, 3)), TensorType(i64, (1,)))
        ranges = {2: (9.0, 9.0), 3: (1.0, 1.0), 4: (-9.0, -9.0)}
        many = (TensorType(f32, (1, 40, 4)), TensorType(f32, (1, 2, 40)), *ins[2:])
        of_many = (TensorType(i64, (80, 3)), TensorType(i64, (1,)))
        ties = np.random.default_rng(0).integers(0, 9, (1, 2, 40)).astype(np.float32)
        return [
            Case("corners", NonMaxSuppression(), ins, outs, ranges=ranges),
            Case("centers", NonMaxSuppression(True, False), ins[:4], outs, ranges=ranges),
            Case("ties", NonMaxSuppression(), many, of_many, values={1: ties}, ranges={**ranges, 2: (40.0, 40.0)}),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        return Needs(dense_outs=frozenset({0, 1}), scratch=4 * upper(call.ins[1].shape[2]), symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        batches, classes, boxes = (upper(dim) for dim in call.ins[1].shape)
        sifted = boxes * max(boxes, 2).bit_length()
        return Cost(batches * classes * sifted * 2 * target.machine.element, code=800)

    def context(self, call: Call) -> Mapping[str, Any]:
        boxes, scores = call.ins[:2]
        batches, classes, count = scores.shape

        def corner(box: str, number: int) -> str:
            return f"boxes[{index_c(boxes.strides, ['n', box, str(number)])}]"

        room = static(call.outs[0].shape[0])
        return {
            "room": room if room < upper(batches * classes * count) else 0,
            "batches": batches,
            "classes": classes,
            "count": count,
            "score": lambda box: f"scores[{index_c(scores.strides, ['n', 'c', box])}]",
            "corner": corner,
            "centered": call.of(NonMaxSuppression).centered,
            "thresholded": call.of(NonMaxSuppression).thresholded,
        }

    def label(self, call: Call) -> str:
        return "non_max_suppression"
