"""C is printed once, and only where somebody asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from mccompile.driver import Options
from mccompile.emit import output
from tests.small_models import compiled, conv


@pytest.mark.parametrize("options", [Options(), Options(single_file=True), Options(module=True)])
def test_c_is_printed_when_it_is_asked_for(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = []

    def counted(*args: Any) -> Any:
        printed.append(args)
        return kernel_files(*args)

    kernel_files = output.kernel_files
    monkeypatch.setattr(output, "kernel_files", counted)
    package = compiled(conv(), options)
    assert package.macs and package.weights_bytes and not printed
    assert package.files and package.identity and package.includes and len(printed) == 1
