"""The pictures of the docs, made by tests. With DUETICK_PICTURES=1 they go where docs show them."""

import os
from pathlib import Path
from typing import Final

from playwright.sync_api import Page

from tests.lab.node import WEB

SHOWN: Final = WEB / "pictures"
LARGEST: Final = 120_000
"""The bytes of a picture that stays in the tree."""


def picture(page: Page, name: str, folder: Path) -> None:
    """Take a picture of the page as it is now. The picture has to be small enough for the tree."""
    place = SHOWN if os.environ.get("DUETICK_PICTURES") == "1" else folder
    place.mkdir(exist_ok=True)
    taken = page.screenshot(path=place / f"{name}.png", animations="disabled", caret="hide")
    assert 10_000 < len(taken) < LARGEST, f"{name}: {len(taken)} bytes"
