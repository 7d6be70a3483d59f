"""A spelling as a job that any worker can do."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from . import families  # noqa: F401 - fills FAMILIES
from .spelling import FAMILIES, problems


@dataclass(frozen=True)
class Job:
    family: str
    position: int
    counted: bool  # are instructions compared?

    @property
    def name(self) -> str:
        return f"{self.family}/{FAMILIES[self.family][self.position].name}"


@dataclass(frozen=True)
class Judged:
    job: Job
    problems: tuple[str, ...]


def judged(job: Job) -> Judged:
    try:
        return Judged(job, tuple(problems(FAMILIES[job.family][job.position], job.counted)))
    except Exception:
        return Judged(job, (traceback.format_exc(limit=-2),))
