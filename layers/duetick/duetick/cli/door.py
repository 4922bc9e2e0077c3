"""The door of the pages on this machine: it lets in one user, and bounds a page's rights (V-01).

The console acts with the rights of an operator. Nobody else shall use them: no web page of another
origin, no name that somebody points at this machine, no other user of it.

- The door answers on the loopback interface alone, and only to a Host that is this machine.
- A call of the API needs this start's token in a header. A page of another origin knows no token,
  and cannot send the header.
- The token is in no URL. A link has a code behind its `#`, which no browser sends to any server.
  The page hands in the code and gets the token. A code opens once.
- Pages are files without data. Their policy lets them load and call this server alone, and run no
  script but their own.
"""

import gzip
import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple, TypeAlias

CONSOLE: Final = "/console"
PICKER: Final = "/picker"
API: Final = f"{CONSOLE}/api"
LINKS: Final = f"{CONSOLE}/links"
PROOF: Final = "duetick-console"
"""The header that has the token."""

HERE: Final = ("127.0.0.1", "localhost")
USUAL_PORT: Final = ":80"
"""The port of HTTP: a browser names it neither in Host nor in Origin."""

TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
PAGES: Final = {
    CONSOLE: "console.html",
    f"{CONSOLE}/opening.js": "opening.js",
    f"{CONSOLE}/console.js": "console.js",
    f"{CONSOLE}/console.css": "console.css",
    f"{CONSOLE}/icon.svg": "icon.svg",
    PICKER: "example.html",
    f"{PICKER}/example.js": "example.js",
    f"{PICKER}/example.css": "example.css",
    f"{PICKER}/picker.js": "picker.js",
}
POLICY: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""The headers of every answer."""

MOST_CODES: Final = 100
"""The most codes that wait to be handed in: the oldest is forgotten."""

OLD_LINK: Final = (
    "This link was opened before, or is of an earlier start. `duetick console` prints a new one: "
    "for a local stack in its folder, for a deployed one with --stack NAME."
)
UNPROVED: Final = (
    "The token of the console is missing, or of an earlier start: open the link that was printed "
    "last, or ask `duetick console` for a new one."
)


class Visit(NamedTuple):
    """A request, as it came. The names of its headers are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Shown(NamedTuple):
    """An answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]


CallApi: TypeAlias = Callable[[Visit], Shown]
"""A function that calls the API as an operator."""

Grant: TypeAlias = Callable[[], Mapping[str, str]]
"""A function that returns what a page gets for its code."""


class PageDoor:
    """The door of one server, on one port."""

    def __init__(
        self, port: int, api: CallApi, vouch: Callable[[str], bool] = lambda _header: False
    ) -> None:
        """`vouch` says of an Authorization header whether its bearer may have a new link."""
        self._hosts = frozenset(f"{name}:{port}".removesuffix(USUAL_PORT) for name in HERE)
        self._url = f"http://127.0.0.1:{port}"
        self._api = api
        self._vouch = vouch
        self._token = secrets.token_urlsafe(32)
        self._codes: dict[str, Grant] = {}
        self._lock = threading.Lock()

    def link(self, page: str = CONSOLE, grant: Grant | None = None) -> str:
        """Return a link that opens a page once. A console gets the token of this start."""
        code = secrets.token_urlsafe(24)
        with self._lock:
            self._codes[code] = grant or (lambda: {"token": self._token})
            while len(self._codes) > MOST_CODES:
                del self._codes[next(iter(self._codes))]
        return f"{self._url}{page}#open={code}"

    @staticmethod
    def takes(path: str) -> bool:
        """Return True if a path is a page's, or leads to the API behind it."""
        return path in ("/", CONSOLE, PICKER) or path.startswith((f"{CONSOLE}/", f"{PICKER}/"))

    def answer(self, visit: Visit) -> Shown:
        """Answer a request."""
        shown = self._refuse(visit) or self._show(visit)
        return shown._replace(headers={**POLICY, **shown.headers})

    def _refuse(self, visit: Visit) -> Shown | None:
        """Refuse a name that is not this machine's, and a page of another origin."""
        host = visit.headers.get("host", "").lower().removesuffix(USUAL_PORT)
        if host not in self._hosts:
            return _error(
                421, "wrong_host", "The console answers to 127.0.0.1 and localhost alone."
            )
        if visit.path in PAGES or visit.path == "/":
            return None
        origin = visit.headers.get("origin", f"http://{host}")
        site = visit.headers.get("sec-fetch-site", "same-origin")
        if origin != f"http://{host}" or site != "same-origin":
            return _error(403, "wrong_origin", "Pages of other origins may not call the console.")
        return None

    def _show(self, visit: Visit) -> Shown:
        if visit.path in PAGES:
            return _page(PAGES[visit.path], visit)
        if visit.path.startswith(f"{API}/"):
            return self._call(visit)
        if visit.path in (f"{CONSOLE}/open", f"{PICKER}/open"):
            return self._open(visit)
        if visit.path == LINKS and self._vouch(visit.headers.get("authorization", "")):
            return _json(200, {"link": self.link()})
        if visit.path == "/":
            return Shown(303, b"", {"location": CONSOLE})
        return _error(404, "not_found", f"No such page; the console is at {CONSOLE}.")

    def _call(self, visit: Visit) -> Shown:
        """Call the API for a page that has the token."""
        given = visit.headers.get(PROOF, "")
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return _error(401, "no_token", UNPROVED)
        return self._api(visit._replace(path=visit.path.removeprefix(CONSOLE)))

    def _open(self, visit: Visit) -> Shown:
        """Hand out the token for a code, once."""
        with self._lock:
            grant = self._codes.pop(_code_of(visit), None) if visit.method == "POST" else None
        return _json(200, grant()) if grant else _error(403, "old_link", OLD_LINK)


def _code_of(visit: Visit) -> str:
    try:
        given = json.loads(visit.body)
    except (ValueError, RecursionError):
        return ""
    return str(given.get("code", "")) if isinstance(given, dict) else ""


def _page(name: str, visit: Visit) -> Shown:
    """Show a file, or say that the browser's copy is as new."""
    if visit.method != "GET":
        return _error(405, "method_not_allowed", "A page is read by GET.")
    content, packed, tag = _contents(name)
    headers = {
        "content-type": TYPES[name.rpartition(".")[2]],
        "cache-control": "no-cache",
        "etag": tag,
        "vary": "accept-encoding",
    }
    if visit.headers.get("if-none-match") == tag:
        return Shown(304, b"", headers)
    if "gzip" in visit.headers.get("accept-encoding", ""):
        return Shown(200, packed, {**headers, "content-encoding": "gzip"})
    return Shown(200, content, headers)


@cache
def _contents(name: str) -> tuple[bytes, bytes, str]:
    """Return a file, the same packed, and its tag."""
    content = files("duetick").joinpath("pages", name).read_bytes()
    return content, gzip.compress(content, mtime=0), f'"{hashlib.sha256(content).hexdigest()[:16]}"'


def _json(status: int, body: Mapping[str, str]) -> Shown:
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return Shown(status, json.dumps(body).encode(), headers)


def _error(status: int, code: str, message: str) -> Shown:
    return _json(status, {"error": code, "message": message})
