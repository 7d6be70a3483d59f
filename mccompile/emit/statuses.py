"""What functions answer: the one list of statuses. mcc.h has them as an enum and as sentences (a test compares them),
wrappers in other languages in their own ways.

Invariant: numbers are never given anew; a status that is no longer used keeps its place.
"""

from __future__ import annotations

from typing import NamedTuple


class Status(NamedTuple):
    number: int
    name: str
    comment: str  # in the enum
    short: str = ""  # where mcc_status_text says something else

    @property
    def text(self) -> str:
        """What mcc_status_text says."""
        return self.short or self.comment


STATUSES = (
    Status(0, "MCC_OK", "", "ok"),
    Status(1, "MCC_ERR_NULL", "a pointer is null"),
    Status(2, "MCC_ERR_NOT_INIT", "the model struct has not been initialised", "the model has not been initialised"),
    Status(
        3,
        "MCC_ERR_SIZE",
        "a size given at run time is outside the bounds the model was compiled for",
        "a size is outside the bounds the model was compiled for",
    ),
    Status(4, "MCC_ERR_ARENA_SIZE", "the arena is smaller than <MODEL>_ARENA_BYTES", "the arena is too small"),
    Status(
        5,
        "MCC_ERR_ARENA_ALIGN",
        "the arena does not lie at a multiple of <MODEL>_ARENA_ALIGN",
        "the arena is not aligned",
    ),
    Status(
        6,
        "MCC_ERR_BLOB_SIZE",
        "the blob is truncated, has bytes too many, or its sizes contradict each other",
        "the blob has the wrong size",
    ),
    Status(7, "MCC_ERR_BLOB_ALIGN", "the blob does not lie at the alignment it asks for", "the blob is not aligned"),
    Status(8, "MCC_ERR_BLOB_MAGIC", "not a blob at all", "this is not a blob"),
    Status(9, "MCC_ERR_BLOB_VERSION", "a blob in a format of another time", "the blob has another format version"),
    Status(10, "MCC_ERR_BLOB_BYTE_ORDER", "the blob is little-endian, this machine is not"),
    Status(11, "MCC_ERR_BLOB_CRC", "the blob is damaged"),
    Status(12, "MCC_ERR_BLOB_IDENTITY", "a sound blob, but of another model", "the blob belongs to another model"),
    Status(13, "MCC_ERR_BRANCH", "the model cannot run the branch that its condition asks for"),
    Status(
        14,
        "MCC_ERR_STRING_ROOM",
        "the strings of a run need more room than the model was compiled for",
        "the strings of a run need more room than there is",
    ),
    Status(15, "MCC_ERR_STRING_NUMBER", "a string that is to be read as a number is none"),
    Status(
        16,
        "MCC_ERR_IMAGE",
        "a file is not an image of a known format, or not of the declared size",
        "the file is not a plain BMP or PNM, or not of the declared size",
    ),
    Status(
        17,
        "MCC_ERR_IO_ALIGN",
        "an input or output outside the arena does not lie at its alignment",
        "an input or output outside the arena is not aligned",
    ),
    Status(
        18,
        "MCC_MORE",
        "no error: <model>_run_steps has more steps, <model>_push wants more frames",
        "more steps are to run, or frames to come",
    ),
    Status(
        19,
        "MCC_ERR_NOT_BEGUN",
        "<model>_run_steps without <model>_begin, or after the last step",
        "no run has begun",
    ),
    Status(
        20,
        "MCC_ERR_CANARY",
        "something wrote just before or behind the arena during a run (MCC_CANARY)",
        "something wrote just before or behind the arena",
    ),
    Status(21, "MCC_ERR_BLOB_VALUE", "a number in the blob would have a run read or write outside"),
    Status(22, "MCC_ERR_MODULE_SIZE", "a module is truncated", "the module is truncated"),
    Status(
        23,
        "MCC_ERR_MODULE_ALIGN",
        "a module does not lie at the alignment it asks for",
        "the module is not aligned",
    ),
    Status(24, "MCC_ERR_MODULE_MAGIC", "not a module at all", "this is not a module"),
    Status(
        25,
        "MCC_ERR_MODULE_VERSION",
        "a module for another version of mcc_module.h",
        "the module is of another version",
    ),
    Status(
        26,
        "MCC_ERR_MODULE_MACHINE",
        "a module for another machine, or for a core that has more than this one",
        "the module is for another machine",
    ),
    Status(27, "MCC_ERR_MODULE_CRC", "a module is damaged", "the module is damaged"),
    Status(
        28,
        "MCC_ERR_MODULE_FUNCTION",
        "a module calls a function that the program does not give",
        "the program lacks a function of the module",
    ),
    Status(
        29,
        "MCC_ERR_MODULE_CALL",
        "a module was compiled without what it is asked for",
        "the module was compiled without what it is asked for",
    ),
    Status(30, "MCC_ERR_ROWS", "the program's function did not give rows of an input", "rows of an input did not come"),
    Status(
        31,
        "MCC_ERR_STORE",
        "nothing whole is in the store of what was learned, or it failed",
        "the store is empty or failed",
    ),
    Status(32, "MCC_ERR_READ", "the program's function did not read weights", "weights could not be read"),
    Status(
        33,
        "MCC_ERR_UPDATE_OLD",
        "weights with a lower counter than those that run",
        "the update is older than what may run",
    ),
    Status(34, "MCC_ERR_UPDATE_SIGNATURE", "the signature of weights is wrong", "the signature is wrong"),
    Status(35, "MCC_ERR_ACCELERATOR", "the accelerator did not compute its region", "the accelerator failed"),
)
ERRORS = tuple(status for status in STATUSES if status.number)  # and what is not an error, but not the end


def enum_c() -> str:
    """The members of the enum."""
    members = [f"    {each.name} = {each.number}{',' * (each != STATUSES[-1])}" for each in STATUSES]
    width = max(map(len, members)) + 1
    commented = zip(members, STATUSES, strict=True)
    return "\n".join(f"{line:{width}}/* {each.comment} */" if each.comment else line for line, each in commented)


def cases_c() -> str:
    """The cases of mcc_status_text."""
    return "\n".join(f'    case {each.name}: return "{each.text}";' for each in STATUSES)
