"""Pictures of a page for people to look at, and what axe says about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize

# Ignored by git.
FOLDER: Final = Path(__file__).parents[3] / "build" / "screenshots"

SIZES: Final[dict[str, ViewportSize]] = {
    "desktop": {"width": 1280, "height": 800},
    "phone": {"width": 390, "height": 780},
}
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


def faults(page: Page) -> list[str]:
    """Return the serious and critical faults that axe finds, one line each."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [
        f"{fault['id']}: {fault['help']}: {[node['html'] for node in fault['nodes']]}"
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]


def check(page: Page, name: str) -> None:
    """Photograph a page at each width, light and dark, and fail on a serious fault or a page wider than the screen."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    page.emulate_media(reduced_motion="reduce")
    for width, size in SIZES.items():
        page.set_viewport_size(size)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=FOLDER / f"{name}-{width}-{scheme}.png", full_page=True)
            assert faults(page) == [], f"{name} at {width} width, {scheme}"
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (
            f"{name} is too wide on a {width}"
        )
