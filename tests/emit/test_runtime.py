"""What generated code says of the runtime's headers is what these say themselves."""

from __future__ import annotations

from mccompile.emit import runtime


def test_the_version_is_that_of_the_header() -> None:
    (contents,) = (text for path, text in runtime.runtime_headers(["mcc.h"]).items() if path == "runtime/mcc.h")
    assert f"#define MCC_RUNTIME_VERSION {runtime.VERSION}\n" in contents


def test_headers_come_with_all_that_they_include() -> None:
    assert {*runtime.runtime_headers(["mcc_text.h", "a_model.h"])} == {
        "runtime/mcc_text.h",
        "runtime/mcc_string.h",
        "runtime/mcc.h",
        "runtime/mcc_port.h",
    }
