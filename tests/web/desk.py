"""The hands of somebody at the console: open an action, read it, give the reason, confirm it."""

import re
from collections.abc import Mapping

from playwright.sync_api import Locator, Page, expect

from tests.integration.local_product import Product
from tests.web.seeding import operators


class Desk:
    """The console of a running product, and its operator."""

    def __init__(self, page: Page, running: Product) -> None:
        self.page = page
        self.running = running
        self.main = page.locator("main")

    def go(self, place: str, shows: str) -> None:
        """Go to a page, and wait until it shows something."""
        self.page.goto(f"{self.running.stack.server.url}/console#/{place}")
        expect(self.main).to_contain_text(shows)
        expect(self.main).to_have_attribute("aria-busy", "false")

    def press(self, name: str | re.Pattern[str], within: Locator | None = None) -> None:
        """Press a button of the page."""
        exact = isinstance(name, str)
        (within or self.main).get_by_role("button", name=name, exact=exact).first.click()

    def act(
        self,
        name: str | re.Pattern[str],
        verb: str,
        *,
        why: str,
        touches: str = "",
        fields: Mapping[str, str] | None = None,
        within: Locator | None = None,
    ) -> None:
        """Press a button, fill in its dialog, read the names that it will touch, and confirm."""
        self.press(name, within)
        dialog = self.page.get_by_role("dialog")
        for label, value in (fields or {}).items():
            fill(dialog.get_by_label(label, exact=True), value)
        if touches:
            expect(dialog.locator(".touches")).to_contain_text(touches)
        dialog.get_by_label("Why", exact=True).fill(why)
        dialog.get_by_role("button", name=verb, exact=True).click()
        expect(dialog).to_be_hidden()

    def recorded(self, verb: str, why: str) -> None:
        """Expect that an operation of that name was recorded as done, with the reason."""
        found = [(one["verb"], one["why"], one["outcome"]) for one in self._operations()]
        assert (verb, why, "done") in found, found[:5]

    def _operations(self) -> list[dict[str, object]]:
        listed = operators(self.running).operations(limit=50)
        return [dict(one) for one, _ in zip(listed, range(50), strict=False)]


def fill(field: Locator, value: str) -> None:
    """Fill a field, or choose from a list."""
    if field.evaluate("one => one.tagName") == "SELECT":
        field.select_option(value)
    elif field.get_attribute("type") == "checkbox":
        field.set_checked(value == "yes")
    else:
        field.fill(value)
