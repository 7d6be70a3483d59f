"""The named mutants are still mutants of the code as it is."""

from __future__ import annotations

import pytest

from .named import NAMED, Named


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.name)
def test_one_place_is_changed_by_it(named: Named) -> None:
    mutant = named.mutant()
    assert mutant.changes()
    if mutant.file.endswith(".py"):
        compile(mutant.text, mutant.file, "exec")
