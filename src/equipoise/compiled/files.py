"""The files of compiled code, in a folder of the user's."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

# Compiled code that nobody has used for so long is thrown away; its last use is known to the day.
KEPT_DAYS = 90
DAY = 24 * 3600.0


def cache_directory() -> Path:
    """Where compiled code is kept: EQUIPOISE_CACHE_DIR, or `equipoise` in the user's cache folder."""
    chosen = os.environ.get("EQUIPOISE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "equipoise"


def can_keep() -> bool:
    """Return whether compiled code can be kept on disk; makes the folder for it."""
    with contextlib.suppress(Exception):
        cache_directory().mkdir(parents=True, exist_ok=True)
        return os.access(cache_directory(), os.R_OK | os.W_OK | os.X_OK)
    return False


def anything_kept() -> bool:
    """Return whether there is compiled code on disk, of whatever make."""
    with contextlib.suppress(Exception):
        return any(cache_directory().glob("*.nbc"))
    return False


_pruned = False


def prune_once(folder: Path) -> None:
    """The first time in a process that something is filed, which took a compilation anyway: throw old files away."""
    global _pruned
    if not _pruned:
        _pruned = True
        prune(folder)


def prune(folder: Path) -> None:
    """Remove compiled code that was not used for KEPT_DAYS, and what writers that died left behind."""
    oldest = time.time() - KEPT_DAYS * DAY
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            # Another process may have been quicker.
            with contextlib.suppress(OSError):
                if entry.name.endswith((".nbc", ".tmp")) and entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)
