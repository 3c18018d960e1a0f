"""
Photograph a report and the dashboard of a poll of six products.

`python docs/figures/screenshots.py docs/figures` writes report.png and dashboard.png there. It needs Playwright and a
Chromium, as the browser tests do.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

import equipoise as eq
from equipoise.demo import TASTE

VISITORS: Final = 3000
WIDTH: Final = 1180
TOKEN: Final = "a token for one picture"


def poll(store: str) -> None:
    """Ask visitors until the budget is spent."""
    rng = random.Random(1)
    study = eq.open(store, arms=list(TASTE), budget=VISITORS, support="binary")
    while tickets := study.ask(20):
        study.tell_many([(ticket, rng.random() < TASTE[ticket.arm]) for ticket in tickets])
    study.close()


@contextmanager
def serving(db: Path) -> Iterator[str]:
    """Serve a database at a free port."""
    command = [sys.executable, "-m", "equipoise", "serve", "--db", str(db), "--port", "0"]
    environment = os.environ | {"EQUIPOISE_ADMIN_TOKEN": TOKEN}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        try:
            yield re.findall(r"http://[\d.]+:\d+", process.stderr.readline())[0]
        finally:
            process.terminate()


def photograph(page: Page, path: Path, height: int) -> None:
    """Save what is at the top of a page, once its charts are drawn."""
    page.wait_for_selector("svg, canvas")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}, full_page=True)


def main(folder: Path) -> None:
    """Poll, and take both pictures."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        db, html = Path(scratch) / "polls.db", Path(scratch) / "report.html"
        poll(f"{db}#six-products")
        command = [sys.executable, "-m", "equipoise", "report", f"{db}#six-products", "--html", str(html)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1400})
        page.goto(html.as_uri())
        photograph(page, folder / "report.png", 1400)
        with serving(db) as address:
            page.goto(f"{address}/login")
            page.get_by_label("Token").fill(TOKEN)
            page.get_by_role("button", name="Log in").click()
            page.goto(f"{address}/studies/six-products", wait_until="load")
            photograph(page, folder / "dashboard.png", 1260)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
