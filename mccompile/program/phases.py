"""Phases of a program: parts that run at calls of their own."""

from __future__ import annotations

from collections.abc import Mapping

from ..base.records import dataclass


@dataclass(frozen=True)
class Phase:
    """Items of a program that run at one call of it, which is not that of the others. Between phases nothing is alive
    but inputs and what is kept."""

    name: str  # of the call
    items: int  # so many, behind those of the phase before
    states: Mapping[str, str]  # as of the program: what it changes of what is kept
    outputs: tuple[str, ...] = ()  # that it makes, besides
    inputs: tuple[str, ...] = ()  # that the program gives before it
    arguments: tuple[str, ...] = ()  # inputs that the call is handed as numbers
    after: str = ""  # a state that is 0 as long as there is nothing to do
    stored: tuple[str, ...] = ()  # states that begin with zeros, and that outlive the power where a program saves

    def takes(self, name: str) -> bool:
        """Is the program given an input of that name before it?"""
        return name in self.inputs or name in self.arguments
