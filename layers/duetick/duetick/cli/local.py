"""The whole product on this machine: the real handlers behind HTTP, and a tick each minute."""

import errno
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from duetick.cli.context import LocalContext
from duetick.cli.gateway import LocalServer, Route
from duetick.cli.plain_log import speak_plainly
from duetick.cli.problem import Problem
from duetick.core.static import register
from duetick.domain.errors import DuetickError, StoreUnavailable
from duetick.runtime import wiring
from duetick.runtime.tokens import TOKEN_HOURS, mint, verify

logger = logging.getLogger("duetick.local")

USER: Final = "you"
MINUTE: Final = 60.0


class LocalStack:
    """API and tick of the project in a folder, on one store."""

    def __init__(
        self, project: Path, store: str, port: int, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` says in seconds since the epoch when tokens end, and when a minute begins."""
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self.secret = secrets.token_hex(32)
        self._stopping = threading.Event()
        self._ticking = False
        self._project = project
        self.server = _listen(port)
        self._set_environment(store)
        _migrate(store)
        self.server.origin = wiring.settings().allowed_origin
        schedules, dispatch = self._handler("schedules"), self._handler("dispatch")
        self.server.routes += [
            Route("/api/schedules", schedules, self._user),
            Route("/api/users/", schedules, self._operator),
            Route("/api/flows/", dispatch, lambda _header: {}),
        ]
        self._tick = self._handler("tick")
        speak_plainly()

    def tick(self) -> dict[str, int]:
        """One tick; its report."""
        self._ticking = True
        try:
            context = LocalContext(stopped=self._stopping.is_set)
            report: dict[str, int] = self._tick({"source": "duetick.local"}, context)
        finally:
            self._ticking = False
        return report

    @property
    def token(self) -> str:
        """A user token for `USER`."""
        return self.token_of(USER)

    def token_of(self, user_id: str) -> str:
        """A user token for anyone."""
        return mint(self._key, user_id, int(self._clock()) + TOKEN_HOURS * 3_600)

    def run(self) -> None:
        """Serve and tick until stopped; a tick that runs finishes what it has begun.

        The flows' static schedules are there from the start, as after a deployment.
        """
        register(wiring.store(), wiring.flows().static(), wiring.settings().deployment)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        try:
            self._tick_each_minute()
        finally:
            self.close()

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def stop(self) -> None:
        """End `run` when what runs is finished, and begin nothing more; asked again, at once."""
        if self._stopping.is_set():
            os._exit(130)
        self._stopping.set()
        if self._ticking:
            print("Finishing what has begun; Ctrl-C again stops at once.", file=sys.stderr)

    def _tick_each_minute(self) -> None:
        while True:
            try:
                _tell_what_is_left(self.tick()["left"], stopping=self._stopping.is_set())
            except DuetickError as error:
                print(f"tick failed, the next one tries again: {error}", file=sys.stderr)
            except Exception:
                logger.exception("tick failed, the next one tries again")
            if self._stopping.wait(MINUTE - self._clock() % MINUTE):
                return

    def _user(self, header: str) -> dict[str, Any] | None:
        claims = verify(self._key, header.removeprefix("Bearer "), int(self._clock()))
        return {"claims": claims} if claims else None

    def _operator(self, header: str) -> dict[str, Any] | None:
        known = f"Bearer {self.secret}".encode()
        return {} if secrets.compare_digest(header.encode(), known) else None

    def _set_environment(self, store: str) -> None:
        os.environ |= {
            "DUETICK_STORE": store,
            "DUETICK_API_URL": self.server.url,
            "DUETICK_LOCAL": "1",
            "DUETICK_DISPATCH_AUTH": "secret",
            "DUETICK_DISPATCH_SECRET": self.secret,
            "POWERTOOLS_METRICS_DISABLED": "true",
        }

    def _handler(self, name: str) -> Callable[..., Any]:
        path = self._project / "functions" / name / "app.py"
        if not path.is_file():
            raise Problem(
                f"There is no {path}. Run this in the folder of template.yaml, or name it "
                "with --project."
            )
        spec = spec_from_file_location(f"duetick_function_{name}", path)
        if spec is None or spec.loader is None:
            raise Problem(f"{path} cannot be imported.")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        handler: Callable[..., Any] = module.handler
        return handler


def _tell_what_is_left(left: int, *, stopping: bool) -> None:
    if left and stopping:
        print(f"Stopped before {left} were begun; they are due at the next start.", file=sys.stderr)


def _migrate(address: str) -> None:
    try:
        wiring.store().migrate()
    except StoreUnavailable as error:
        raise Problem(
            f"The store {shown(address)} cannot be used: {error} {_advice(address)}"
        ) from error


def _advice(address: str) -> str:
    if address.startswith("sqlite"):
        return (
            "Is its folder there, and may you write to it? Name another with "
            "--store sqlite:///path/to/file.db."
        )
    return "Is its server up, is the address right, and are its credentials set?"


def shown(address: str) -> str:
    """The address of a store without what may be a secret."""
    parts = urlsplit(address)
    if not parts.password:
        return address
    return address.replace(f":{parts.password}@", ":…@", 1)


def _listen(port: int) -> LocalServer:
    try:
        return LocalServer(port, [])
    except (OSError, OverflowError) as error:
        used = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        other = port + 1 if 1_023 < port < 65_535 else 8_080
        raise Problem(
            f"Port {port} {'is in use' if used else f'cannot be used ({error})'}. Stop what "
            f"listens there, or choose another: `make run PORT={other}`, or "
            f"`duetick local --port {other}`."
        ) from error
