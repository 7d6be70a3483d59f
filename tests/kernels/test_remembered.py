"""Remembered answers are those that kernels give, for every call that differs in what kernels look at."""

from __future__ import annotations

from dataclasses import replace

from mccompile.base.dtypes import f32
from mccompile.expr.ir import apply, operand
from mccompile.kernels.registry import Registry
from mccompile.kernels.remembered import RememberedKernels
from mccompile.kinds.map import Map
from mccompile.program.ir import Buffer, Call, View
from mccompile.targets import api

KIND = Map(apply("add", operand(0, f32), operand(1, f32)))


def call(one: View, other: View) -> Call:
    return Call(KIND, (one, other), (Buffer("y", f32, (4, 8)).whole(),), ())


def whole(name: str) -> View:
    return Buffer(name, f32, (4, 8)).whole()


def test_the_answers_are_those_of_the_kernels() -> None:
    plain, target = Registry.load(()), api.load("x86-64-v3")
    remembered = RememberedKernels(plain, target)
    turned = View(Buffer("t", f32, (8, 4)), (4, 8), (1, 4))
    late = replace(whole("a"), offset=3)
    same = whole("s")
    asked = [call(whole("a"), whole("b")), call(turned, whole("b")), call(late, whole("b")), call(same, same)]
    for given in [*asked, *asked]:
        assert remembered.choose(given, target) == plain.choose(given, target)
        given.kernel = plain.choose(given, target).candidates[0].kernel.id
        assert remembered.match(given, target) == plain.match(given, target)


def test_kernels_are_asked_once_for_calls_that_are_alike() -> None:
    asked: list[Call] = []

    class Counting(RememberedKernels):
        def of_kind(self, kind: object) -> list[object]:
            asked.append(KIND)
            return super().of_kind(kind)

    target = api.load("generic")
    counting = Counting(Registry.load(()), target)
    for name in "abc":
        counting.choose(call(whole(name), whole("other")), target)
    assert len(asked) == 1
    same = whole("same")
    counting.choose(call(same, same), target)
    assert len(asked) == 2
