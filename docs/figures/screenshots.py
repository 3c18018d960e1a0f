"""
Photograph the report of a poll of six products that is over, and the dashboard of one that is not.

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


def visit(study: eq.SharedStudy) -> None:
    """Let visitors come and answer."""
    rng = random.Random(1)
    for _ in range(VISITORS // 20):
        study.tell_many([(ticket, rng.random() < TASTE[ticket.arm.lower()]) for ticket in study.ask(20)])


def finish(store: str) -> None:
    """Ask visitors until the budget is spent."""
    with eq.open(store, arms=list(TASTE), budget=VISITORS, support="binary") as study:
        visit(study)


def begin(address: str, store: str) -> None:
    """Create a poll on a service, and ask the first visitors."""
    products = [product.capitalize() for product in TASTE]
    origins = ["https://shop.example"]
    with eq.connect(address, TOKEN) as service:
        service.create(
            "six-products",
            title="Six products",
            arms=products,
            budget=2 * VISITORS,
            precision=0.04,
            poll={"question": "Would you buy this?", "origins": origins},
        )
    with eq.open(store) as study:
        visit(study)
        study.ask(5)  # who have not answered yet


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
        over, live, html = (Path(scratch) / name for name in ("polls.db", "live.db", "report.html"))
        finish(f"{over}#six-products")
        command = [sys.executable, "-m", "equipoise", "report", f"{over}#six-products", "--html", str(html)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1400})
        page.goto(html.as_uri())
        photograph(page, folder / "report.png", 1400)
        with serving(live) as address:
            begin(address, f"{live}#six-products")
            page.goto(f"{address}/login")
            page.get_by_label("Token").fill(TOKEN)
            page.get_by_role("button", name="Log in").click()
            page.goto(f"{address}/studies/six-products", wait_until="load")
            photograph(page, folder / "dashboard.png", 1260)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
