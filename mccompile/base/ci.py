"""Whether this runs where nobody watches and nothing that is written is kept."""

from __future__ import annotations

import os


def in_ci() -> bool:
    """GitHub, GitLab and most others set CI=true."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")
