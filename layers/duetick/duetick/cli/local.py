"""The whole product on this machine: the real handlers behind HTTP, and a tick each minute."""

import errno
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

from duetick.cli.context import LocalContext
from duetick.cli.gateway import LocalServer, Route
from duetick.cli.plain_log import speak_plainly
from duetick.cli.problem import Problem
from duetick.domain.errors import DuetickError, StoreUnavailable
from duetick.runtime import wiring
from duetick.runtime.tokens import mint, verify

USER: Final = "you"
TOKEN_SECONDS: Final = 12 * 3_600
MINUTE: Final = 60.0


class LocalStack:
    """API and tick of the project in a folder, on one store."""

    def __init__(self, project: Path, store: str, port: int) -> None:
        self._key = secrets.token_bytes(32)
        self.secret = secrets.token_urlsafe(32)
        self._stopping = threading.Event()
        self._project = project
        self.server = _listen(port)
        self._set_environment(store)
        _migrate(store)
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
        report: dict[str, int] = self._tick({"source": "duetick.local"}, LocalContext())
        return report

    @property
    def token(self) -> str:
        """A user token for `USER`."""
        return self.token_of(USER)

    def token_of(self, user_id: str) -> str:
        """A user token for anyone."""
        return mint(self._key, user_id, int(time.time()) + TOKEN_SECONDS)

    def run(self) -> None:
        """Serve and tick until stopped; a tick that runs is finished first."""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        try:
            self._tick_each_minute(time.time)
        finally:
            self.close()

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def stop(self) -> None:
        """End `run`."""
        self._stopping.set()

    def _tick_each_minute(self, clock: Callable[[], float]) -> None:
        while True:
            try:
                self.tick()
            except DuetickError as error:
                print(f"tick failed, the next one tries again: {error}", file=sys.stderr)
            if self._stopping.wait(MINUTE - clock() % MINUTE):
                return

    def _user(self, header: str) -> dict[str, Any] | None:
        claims = verify(self._key, header.removeprefix("Bearer "), int(time.time()))
        return {"claims": claims} if claims else None

    def _operator(self, header: str) -> dict[str, Any] | None:
        return {} if secrets.compare_digest(header, f"Bearer {self.secret}") else None

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


def _migrate(address: str) -> None:
    try:
        wiring.store().migrate()
    except StoreUnavailable as error:
        raise Problem(
            f"The store {address} cannot be opened ({error}). Is its folder there, and may you "
            "write to it? Name another with --store sqlite:///path/to/file.db."
        ) from error


def _listen(port: int) -> LocalServer:
    try:
        return LocalServer(port, [])
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        raise Problem(
            f"Port {port} is in use. Stop what listens there, or choose another: "
            f"`make run PORT={port + 1}`, or `duetick local --port {port + 1}`."
        ) from error
