"""The console in a real browser: `python -m tests.benchmarks.pages`.

Chromium slows its processor four times and its network to slow 4G as Lighthouse has it: 150 ms of
delay for each request, 1.6 Mbit/s down, 0.75 up. The store has ten thousand schedules, and one of
them a hundred thousand occurrences.
"""

import logging
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from duetick.domain.schedule import Schedule
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from tests.integration.local_product import Clock, Product, product
from tests.lab.chromium import chromium
from tests.lab.credentials import DUMMY

SLOW_4G: Final = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
SLOWER: Final = 4
ROUNDS: Final = 5
SCHEDULES, OCCURRENCES = 10_000, 100_000
MINUTE: Final = 60_000
LONG: Final = """
window.long = [];
new PerformanceObserver(all => window.long.push(...all.getEntries().map(one => one.duration)))
    .observe({type: "longtask", buffered: true});
"""
USABLE: Final = """
new MutationObserver(() => {
    if (document.querySelector('.tiles')) window.usable ??= performance.now();
}).observe(document, {childList: true, subtree: true});
"""


def main() -> None:
    """Print each figure."""
    os.environ |= DUMMY
    logging.disable(logging.CRITICAL)
    with much() as running, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        first_page(browser, running)
        smooth(browser, running)
        browser.close()


@contextmanager
def much() -> Iterator[Product]:
    """Yield a product with ten thousand schedules, and a hundred thousand occurrences of one."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Path(folder) / "much.db"
        now = int(time.time()) // 60 * MINUTE  # nothing sets the clock of the browser, it measures
        with product(f"sqlite:///{place}", Clock(now), patch) as running:
            began = time.monotonic()
            for number in range(SCHEDULES - 1):
                running.store.schedules.put(
                    Schedule(f"user-{number % 997}", f"key-{number}", "0 9 * * *", "reminders",
                             "remind", input={"text": "x"})
                )  # fmt: skip
            work = ("* * * * *", "reminders", "remind")
            busy = Schedule("busy", "each-minute", *work, input={"text": "x"})
            running.store.schedules.put(busy)
            running.clock.now += MINUTE
            running.tick()
            repeat(place)
            print(f"{SCHEDULES:,} schedules and {OCCURRENCES:,} occurrences were made in "
                  f"{time.monotonic() - began:.0f} s")  # fmt: skip
            yield running


def repeat(place: Path) -> None:
    """Copy the occurrence of the busy schedule to each minute before it."""
    with closing(sqlite3.connect(place, isolation_level=None)) as base:
        base.row_factory = sqlite3.Row
        base.execute("CREATE TEMP TABLE minutes (back integer)")
        base.executemany("INSERT INTO minutes VALUES (?)", ((n,) for n in range(1, OCCURRENCES)))
        names = [row["name"] for row in base.execute("PRAGMA table_info(occurrences)")]
        moved = {name: f"{name} - back * {MINUTE}" for name in names if name.endswith("_at")}
        fresh = moved | {"id": "printf('occ_%028x', back)"}
        columns = ", ".join(fresh.get(name, name) for name in names)
        statement = "INSERT INTO occurrences ({}) SELECT {} FROM occurrences, minutes"
        where = " WHERE user_id = 'busy'"
        base.execute(statement.format(", ".join(names), columns) + where)


def slowed(browser: Browser, running: Product, *, network: bool) -> Page:
    """Yield a page of a fresh profile, on a slow machine."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    if network:
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", SLOW_4G)
    page.add_init_script(LONG + USABLE)
    return page


def first_page(browser: Browser, running: Product) -> None:
    """Load the console into an empty cache, again and again."""
    took, sizes = [], []
    for _ in range(ROUNDS):
        page = slowed(browser, running, network=True)
        received: list[Request] = []
        page.on("requestfinished", received.append)
        page.goto(running.stack.console)
        page.wait_for_selector(".tiles")
        took.append(page.evaluate("window.usable"))
        sizes.append(sum(map(size_of, received)))
        page.context.close()
    print(f"first page, processor {SLOWER} times slower, slow 4G: usable after "
          f"{statistics.median(took):.0f} ms ({min(took):.0f} to {max(took):.0f}), "
          f"{statistics.median(sizes) / 1_000:.1f} kB with headers")  # fmt: skip


def size_of(request: Request) -> int:
    """Return the bytes of an answer, as they came over the network."""
    sizes = request.sizes()
    return int(sizes["responseBodySize"] + sizes["responseHeadersSize"])


def smooth(browser: Browser, running: Product) -> None:
    """Go through lists and a crowded timeline on the slow processor."""
    page = slowed(browser, running, network=False)
    page.goto(running.stack.console)
    page.wait_for_selector(".tiles")
    base = f"{running.stack.server.url}/console#/"
    steps = {
        "the schedules of all users": ("schedules", "tbody tr:nth-child(50)"),
        "a text among ten thousand": ("schedules?text=key-99", "tbody tr"),
        "a day of a hundred thousand": ("schedule/busy/each-minute", "path.marks.ran"),
        "1,500 times in one timeline": ("schedule/busy/each-minute?span=week", "path.marks.ran"),
    }
    for said, (place, shows) in steps.items():
        took = time_of(page, partial(show, page, base + place, shows))
        print(f"{said}: shown after {took[0]:.0f} ms, longest task {took[1]:.0f} ms")
    slider = page.get_by_role("slider")
    slider.focus()
    for said, key in (("an arrow key", "ArrowLeft"), ("ten more", "PageDown")):
        took = time_of(page, partial(press, page, key))
        print(
            f"{said} in that timeline: drawn after {took[0]:.0f} ms, longest task {took[1]:.0f} ms"
        )
    box = slider.bounding_box()
    if box:
        took = time_of(page, partial(sweep, page, box["x"], box["y"]))
        print(f"the pointer across it, 60 steps: {took[0] / 60:.0f} ms a step, "
              f"longest task {took[1]:.0f} ms")  # fmt: skip
    page.context.close()


def show(page: Page, url: str, shows: str) -> None:
    """Go to a page, and wait for an element of it."""
    page.goto(url)
    page.wait_for_selector(f"main[aria-busy=false] {shows}", state="attached")


def press(page: Page, key: str) -> None:
    """Press a key, and wait until another time is chosen."""
    slider = page.get_by_role("slider")
    before = str(slider.get_attribute("aria-valuetext"))
    page.keyboard.press(key)
    expect(slider).not_to_have_attribute("aria-valuetext", before)


def sweep(page: Page, left: float, top: float) -> None:
    """Move the pointer across."""
    for step in range(60):
        page.mouse.move(left + 80 + step * 15, top + 40)


def time_of(page: Page, act: Callable[[], None]) -> tuple[float, float]:
    """Return the milliseconds that an act takes, and the longest task of the page during it."""
    page.evaluate("window.long = []")
    began = time.monotonic()
    act()
    took = (time.monotonic() - began) * 1_000
    page.wait_for_timeout(100)
    return took, max(page.evaluate("window.long"), default=0.0)


if __name__ == "__main__":
    main()
