"""An installed Chromium or Chrome, started the same way for every test."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OF_MACOS: Final = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")

# No sandbox, since CI runs as root; and no conversation with anybody but the page.
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

HOW_TO_GET_ONE: Final = (
    "no Chromium or Chrome found: run `make browser` as root on Debian or Ubuntu, install one otherwise, "
    "or name one in CHROME_PATH"
)


def find() -> str | None:
    """Return the path of an installed browser, or None."""
    if named := os.environ.get("CHROME_PATH"):
        return named
    for name in NAMES:
        if path := shutil.which(name):
            return path
    return str(OF_MACOS) if OF_MACOS.exists() else None


def launch(playwright: Playwright) -> Browser:
    """Start a browser without a window, or skip the test where there is none."""
    path = find()
    if path is None:
        pytest.skip(HOW_TO_GET_ONE)
    return playwright.chromium.launch(executable_path=path, args=list(FLAGS))
