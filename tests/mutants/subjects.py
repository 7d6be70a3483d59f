"""What is changed, and which tests should notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """Files that decide something, and the tests that hold what they decide."""

    name: str
    files: tuple[str, ...]  # globs
    tests: tuple[str, ...]  # arguments of pytest, the quickest first


_MATRIX = "tests/kernels/test_matrix.py"
_UNTIMED = "not seconds and not minute and not quick"  # a machine under load fails the others without any change
SUBJECTS = (
    Subject(
        "memory",
        ("mccompile/memory/*.py",),
        ("tests/memory", "tests/passes/planning/test_plan_memory.py", "-k", _UNTIMED),
    ),
    Subject(
        "expr",
        ("mccompile/expr/*.py",),
        ("tests/expr", "tests/golden", _MATRIX, "-k", "not test_matrix or map"),
    ),
    Subject("plan", ("mccompile/plan/*.py",), ("tests/plan", "tests/golden")),
    Subject("registry", ("mccompile/kernels/registry.py",), ("tests/kernels/test_registry.py",)),
    Subject(
        "in_place",
        ("mccompile/passes/memory/in_place.py", "mccompile/passes/memory/accesses.py"),
        (
            "tests/passes/memory/test_accesses.py",
            "tests/passes/memory/test_in_place.py",
            "tests/passes/program/test_bufferize.py",
            "tests/passes/memory/test_sharing.py",
            "tests/passes/planning/test_plan_memory.py",
        ),
    ),
    Subject("blob", ("mccompile/emit/blob.py",), ("tests/emit/test_blob.py", "tests/emit/test_carriers.py")),
    Subject(
        "runtime",
        tuple(f"runtime_c/include/mcc_{name}.h" for name in ("int", "quant", "float", "narrow", "init", "math")),
        ("tests/runtime_c", "-k", "gcc or quant or init"),
    ),
    Subject("dsp", ("runtime_c/include/mcc_dsp*.h",), (_MATRIX, "-k", "dsp-generic")),
    Subject("scalar", ("runtime_c/include/mcc_scalar*.h",), (_MATRIX, "-k", "scalar-generic")),
    Subject("helium", ("runtime_c/include/mcc_helium*.h",), (_MATRIX, "-k", "helium-generic")),
    Subject(
        "dot",
        ("runtime_c/include/mcc_dot*.h",),
        ("tests/runtime_c/test_dot.py", _MATRIX, "-k", "test_dot and gcc or native and dot"),
    ),
    Subject(
        "vec",
        ("runtime_c/include/mcc_vec*.h",),
        (
            "tests/runtime_c/test_vec.py",
            "tests/runtime_c/test_vec_narrow.py",
            _MATRIX,
            "-k",
            "test_vec and gcc or native and vec",
        ),
    ),
)
