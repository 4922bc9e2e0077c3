"""The things that a page must never do: run a foreign text, break its policy, fail."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from playwright.sync_api import ConsoleMessage, Page, Response

from tests.lab.node import node_modules

REFUSED: Final = range(400, 500)
WCAG: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass
class Watched:
    """A page, and the lines of its console.

    A refusal of the API is no flaw of the page: each test judges what the page shows then.
    """

    page: Page
    said: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda problem: self.said.append(f"raised: {problem}"))
        self.page.on("response", self._look)

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.said.append(f"{message.type}: {message.text}")

    def _look(self, response: Response) -> None:
        if response.status in REFUSED:
            self.refused.append(f"{response.status} {response.request.method} {response.url}")
        elif response.status >= 500:
            self.said.append(f"{response.status} {response.request.method} {response.url}")

    def flaws(self) -> list[str]:
        """Everything that went wrong."""
        hacked = self.page.evaluate("window.hacked")
        return [*self.said, *([f"a text ran as script: {hacked}"] if hacked else [])]


@cache
def _axe() -> str:
    return (node_modules() / "axe-core" / "axe.min.js").read_text()


def inaccessible(page: Page) -> list[str]:
    """Return axe's findings, each with its elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    found: dict[str, Any] = page.evaluate(
        "tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']})", WCAG
    )
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found["violations"]
    ]


def overflow(page: Page) -> int:
    """Return the pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
