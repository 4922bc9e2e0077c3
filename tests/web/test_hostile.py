"""V-01: nothing that a user wrote is markup or script in a page, and no other page gets in."""

import http.server
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from duetick.cli.door import CONSOLE
from playwright.sync_api import BrowserContext, Page, expect

from tests.integration.local_product import Product
from tests.lab.serving import serve_in_thread
from tests.web.conftest import REBOUND
from tests.web.desk import Desk
from tests.web.mailing import HOSTILE
from tests.web.seeding import HOSTILE_KEY, HOSTILE_USER, operators, order
from tests.web.watching import Watched

MARKS = ("</script>", "<svg onload=window.hacked=1>", "javascript:window.hacked=1", "{{7*7}}")


@pytest.fixture
def desk(console: Page, running: Product) -> Desk:
    return Desk(console, running)


def made_of(page: Page) -> list[str]:
    """Return the elements of a page that no text of ours makes."""
    return list(
        page.evaluate(
            "[...document.querySelectorAll('main img, main script, main iframe, main object, main "
            "embed, main b > img, main style, main [onerror], main [onload], main [style]')]"
            ".map(one => one.outerHTML)"
        )
    )


def test_v01_hostile_names_labels_notes_errors_and_reasons_are_texts(desk: Desk) -> None:
    """The watched page fails if one of them ran."""
    hostile = f"{quote(HOSTILE_USER, safe='')}/{quote(HOSTILE_KEY, safe='')}"
    job = next(desk.running.operator("ann").jobs(state="dead"))
    dead = next(iter(desk.running.store.ledger.find(HOSTILE_USER, HOSTILE_KEY)))
    of = f"user={quote(HOSTILE_USER)}&key={quote(HOSTILE_KEY)}"
    places = {
        "": HOSTILE_USER,
        f"schedules?user={quote(HOSTILE_USER)}": HOSTILE_KEY,
        f"schedules?text={quote(HOSTILE)}": HOSTILE_KEY,
        f"schedule/{hostile}?at=2026-12-02T09:00:00Z": HOSTILE,
        "occurrences": HOSTILE,
        f"occurrences?{of}&state=any": HOSTILE,
        f"occurrence/{dead.id}?{of}": HOSTILE,
        "jobs": HOSTILE,
        f"job/ann/{job['id']}": HOSTILE,
        "orders": HOSTILE,
        "record": HOSTILE,
    }
    for place, text in places.items():
        desk.go(place, text)
        assert made_of(desk.page) == [], place


@pytest.mark.parametrize("text", MARKS)
def test_v01_what_an_address_says_is_no_markup(desk: Desk, text: str) -> None:
    filtered = "schedules?text=", "week?flow=", "week?cron=", "week?user=ann&key=", "week?most="
    for place in ("nowhere", "schedule/ann", "job/ann", "occurrence", *filtered):
        slash = "" if place.endswith("=") else "/"
        where = f"{place}{slash}{quote(text, safe='')}"
        desk.page.goto(f"{desk.running.stack.server.url}{CONSOLE}#/{where}")
        expect(desk.main).not_to_be_empty()
        assert made_of(desk.page) == []


def test_v01_a_dialog_shows_hostile_texts_as_texts(desk: Desk) -> None:
    asked = operators(desk.running)
    asked.pause(f"user:{HOSTILE_USER}", note=HOSTILE)
    desk.go("orders", f"user:{HOSTILE_USER}")
    desk.press(f"Resume user:{HOSTILE_USER}")
    dialog = desk.page.get_by_role("dialog")
    expect(dialog).to_contain_text(HOSTILE_USER)
    expect(dialog.locator(".touches")).to_contain_text(f"1 schedule of {HOSTILE_USER}")
    assert dialog.locator("img").count() == 0


def test_v01_markup_from_a_text_is_impossible_in_the_page(console: Page, watched: Watched) -> None:
    """The browser itself refuses it, even if later code of the console tries."""
    tried = console.evaluate(
        "() => { try { document.body.innerHTML = '<img src=x>'; return 'done' } "
        "catch (problem) { return problem.name } }"
    )
    assert tried == "TypeError"
    inline = console.evaluate(
        "() => { const one = document.createElement('script'); "
        "try { one.text = 'window.hacked = 1'; document.body.append(one); } catch {} "
        "return window.hacked }"
    )
    assert inline is None
    assert any("TrustedHTML" in one for one in watched.said)
    watched.said.clear()


class Foreign(http.server.BaseHTTPRequestHandler):
    """Another's page, on this machine too."""

    def do_GET(self) -> None:
        body = b"<!doctype html><title>foreign</title><body></body>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log nothing."""


@pytest.fixture
def foreign(context: BrowserContext) -> Iterator[Page]:
    """A page of another origin, in the browser that has the console's token."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    with serve_in_thread(server):
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        yield page
        page.close()


def test_v01_a_page_of_another_origin_reads_nothing_and_changes_nothing(
    console: Page, foreign: Page, running: Product
) -> None:
    token = console.evaluate("localStorage.getItem('duetick-console')")
    assert token
    url = running.stack.server.url
    for path, headers in (
        ("/console/api/overview", {}),
        ("/console/api/overview", {"duetick-console": token}),
        ("/console", {}),
        ("/console/open", {}),
    ):
        got = foreign.evaluate(
            "async ([url, headers]) => { try { const one = await fetch(url, {headers}); "
            "return (await one.text()).length } catch (problem) { return problem.name } }",
            [url + path, headers],
        )
        assert got == "TypeError", path
    sent = foreign.evaluate(
        "async url => { try { return (await fetch(url, {method: 'POST', mode: 'no-cors'})).type } "
        "catch (problem) { return problem.name } }",
        f"{url}/console/api/users/ann/schedules/digest/run",
    )
    assert sent == "TypeError"
    origins = [one.origin for one in running.store.ledger.find("ann", "digest")]
    assert not [one for one in origins if one.startswith("run:")]


def test_v01_no_page_can_put_the_console_into_a_frame(foreign: Page, running: Product) -> None:
    foreign.evaluate(
        "url => new Promise(done => { const one = document.createElement('iframe'); "
        "one.src = url; one.onload = done; document.body.append(one) })",
        f"{running.stack.server.url}/console",
    )
    frame = foreign.frames[1]
    assert frame.url.startswith("chrome-error://")


def test_v01_a_name_that_was_pointed_here_gets_nothing(
    console: Page, context: BrowserContext, running: Product
) -> None:
    port = running.stack.server.server_port
    rebound = context.new_page()
    for path in ("/console", "/console/api/overview", "/"):
        answer = rebound.goto(f"http://{REBOUND}:{port}{path}")
        assert answer
        assert answer.status == 421
    rebound.close()


def test_v01_hostile_input_of_a_form_reaches_the_store_as_it_is(desk: Desk) -> None:
    hostile = f"{MARKS[0]}{MARKS[1]}"
    desk.running.operator("ann").put("odd", order("0 9 * * *", labels={"a": hostile}))
    desk.go("schedule/ann/odd", "0 9 * * *")
    desk.act("Pause", "Pause it", why=hostile, fields={"Note": hostile})
    expect(desk.main).to_contain_text(hostile)
    desk.recorded("pause_schedule", hostile)
    assert made_of(desk.page) == []
