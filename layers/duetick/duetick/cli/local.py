"""The whole product on this machine: the real handlers behind HTTP, and a tick each minute."""

import json
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from duetick.api.routes import AGENTS, OWN
from duetick.cli.context import LocalContext
from duetick.cli.door import PICKER, PageDoor, Shown, Visit
from duetick.cli.gateway import (
    UNAUTHORIZED,
    HandlerFailed,
    LocalRoute,
    PlainAnswer,
    ask,
    listen,
    other_port,
)
from duetick.cli.local_flows import LocalFlows
from duetick.cli.local_note import LocalNote, leave
from duetick.cli.plain_log import speak_plainly
from duetick.cli.problem import CliProblem
from duetick.cli.reloading import Watch
from duetick.cli.store_address import advice, from_anywhere, hide_secrets
from duetick.cli.tokens import BYTES, TOKEN_HOURS, USER, mint, operator_of, verify
from duetick.cli.tree import PACKAGE, handler_of
from duetick.core.rights import BY_EXTERNAL
from duetick.core.static import register
from duetick.core.witness import keep_witness
from duetick.domain.errors import DuetickError, StoreUnavailable, WitnessUnavailable
from duetick.domain.redaction import redact_text
from duetick.runtime import wiring
from duetick.runtime.secrets import read_secret
from duetick.runtime.settings import LOCAL_QUEUE

logger = logging.getLogger("duetick.local")

LocalTransport: TypeAlias = Literal["api", "queue"]

PACKS_AT_ONCE: Final = 4
"""The packs that the local stack dispatches side by side."""

OPERATOR: Final = "arn:aws:iam::000000000000:user/local"
MINUTE: Final = 60.0
OUTSIDE_IDS: Final = f"/api/schedules/{BY_EXTERNAL}/"
DOCUMENT: Final = "/openapi.json"
OPERATORS: Final = (
    "This path is for machines and operators: in AWS they sign with IAM, and here they send "
    "`Authorization: Bearer` with the operator's token, which the local stack prints at its start "
    "(DUETICK_OPERATOR)."
)


class LocalStack:
    """API and tick of the project in a folder, on one store."""

    def __init__(
        self,
        project: Path,
        store: str,
        port: int,
        clock: Callable[[], float] = time.time,
        key: bytes | None = None,
        *,
        transport: LocalTransport = "api",
    ) -> None:
        """Listen on the port. `clock` returns seconds since the epoch, for tokens and ticks. `key`
        signs the tokens; without it they end with this stack.
        """
        self._transport = transport
        self._clock = clock
        self._key = key or secrets.token_bytes(BYTES)
        chosen = os.environ.get("DUETICK_DISPATCH_SECRET")
        self.secret = read_secret(chosen or secrets.token_hex(32))
        self.operator = operator_of(self._key)
        self._stopping = threading.Event()
        self._ticking = False
        self._flows = LocalFlows(project)
        self.store = store
        other = other_port(port)
        self.server = listen(port, f"`make run PORT={other}`, or `duetick local --port {other}`")
        try:
            self._wire(store)
        except BaseException:
            self.server.server_close()
            raise
        speak_plainly()

    def _wire(self, store: str) -> None:
        self._set_environment(store)
        flows = self._flows.load()  # a wrong flow fails here, before anything is changed
        taken_over = _migrate(store)
        if taken_over:
            print(flows.home.describe(taken_over), flush=True)
        self.server.origin = wiring.settings().allowed_origin
        self._dispatch = handler_of("dispatch")
        schedules, dispatch = handler_of("schedules"), self._deliver
        self.server.routes += [
            LocalRoute("/api/schedules", schedules, self._authorize_user, self._refuse_user),
            LocalRoute("/api/actions", schedules, self._authorize_user, self._refuse_user),
            LocalRoute("/api/flows", schedules, self._authorize_anybody, self._refuse_user),
            LocalRoute("/api/upcoming", schedules, self._authorize_anybody, self._refuse_user),
            LocalRoute("/api/forecast", schedules, self._authorize_anybody, self._refuse_user),
            LocalRoute("/api/jobs", schedules, self._authorize_user, self._refuse_user),
            LocalRoute(OWN + AGENTS, schedules, self._authorize_user, self._refuse_user),
            LocalRoute("/api/flows/", dispatch, lambda _header: {}),
            LocalRoute(
                OUTSIDE_IDS, self._with_secret(dispatch), self._note_operator, suffix="/dispatch"
            ),
            LocalRoute(OUTSIDE_IDS, schedules, self._authorize_anybody, self._refuse_user),
            LocalRoute("/api/", schedules, self._authorize_operator, self._refuse_operator),
            LocalRoute(DOCUMENT, _show_document, lambda _header: {}),
        ]
        self._tick = handler_of("tick")
        if self._transport == "queue":
            wiring.local_queue().start(lambda event: dispatch(event, LocalContext()), PACKS_AT_ONCE)
        api, port = self._as_operator(schedules), self.server.server_port
        self.door = self.server.door = PageDoor(port, api, self._is_operator)

    @property
    def console(self) -> str:
        """A link that opens the console once."""
        return self.door.link()

    @property
    def example(self) -> str:
        """A link that opens the example of the picker once, as `USER`."""
        return self.door.link(PICKER, lambda: {"token": self.token, "user": USER})

    def tick(self) -> dict[str, int]:
        """Run one tick. Return its report."""
        self._ticking = True
        try:
            context = LocalContext(stopped=self._stopping.is_set)
            report: dict[str, int] = self._tick({"source": "duetick.local"}, context)
        finally:
            self._ticking = False
        _keep_witness()
        return report

    @property
    def token(self) -> str:
        """A token for `USER`."""
        return self.token_of(USER)

    def token_of(self, user_id: str) -> str:
        """Return a token for any user."""
        return mint(self._key, user_id, int(self._clock()) + TOKEN_HOURS * 3_600)

    def run(self) -> None:
        """Serve and tick until `stop`. A tick that runs finishes the attempts that have begun.

        The flows' static schedules are registered at the start, as by a deployment. Meanwhile a
        note lets the command find the stack.
        """
        _register()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        watch = Watch(self._flows.files)
        following = (self._stopping, self.reload)
        threading.Thread(target=watch.follow, args=following, daemon=True).start()
        note = _leave_note(self)
        try:
            self._tick_each_minute()
        finally:
            if note:
                note.unlink(missing_ok=True)
            self.close()

    def reload(self, changed: Sequence[Path]) -> None:
        """Load the flows again, and say so. If they cannot be loaded, the flows of before stay.

        A running action goes on with the flows that it has. Later ones have the new flows.
        """
        named = ", ".join(map(self._flows.show, changed))
        try:
            flows = self._flows.load_again()
            self._dispatch = handler_of("dispatch")
            _register()
        except (
            BaseException
        ) as problem:  # no error of a flow's module may end the thread that looks
            told = redact_text(str(problem)) or type(problem).__name__
            print(f"{named}: not loaded, the flows of before stay. {told}", file=sys.stderr)
        else:
            print(f"{named}: loaded again, {flows.describe()}.", flush=True)

    def _deliver(self, event: dict[str, Any], context: LocalContext) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._dispatch(event, context)
        return answer

    def close(self) -> None:
        """Stop serving, once the messages that the queue has given out are done."""
        if self._transport == "queue":
            wiring.local_queue().close()
        self.server.shutdown()
        self.server.server_close()

    def stop(self) -> None:
        """Begin no more; end `run` after the attempts under way. A second call exits at once."""
        if self._stopping.is_set():
            os._exit(130)
        self._stopping.set()
        if self._ticking:
            print("Finishing the begun actions; Ctrl-C again stops at once.", file=sys.stderr)

    def _tick_each_minute(self) -> None:
        while True:
            try:
                _report_remaining(self.tick()["left"], stopping=self._stopping.is_set())
            except DuetickError as error:
                told = redact_text(str(error))
                print(f"tick failed, the next one tries again: {told}", file=sys.stderr)
            except Exception:
                logger.exception("tick failed, the next one tries again")
            if self._stopping.wait(MINUTE - self._clock() % MINUTE):
                return

    def _authorize_user(self, header: str) -> dict[str, Any] | None:
        claims = verify(self._key, header.removeprefix("Bearer "), int(self._clock()))
        return {"authorizer": {"claims": claims}} if claims else None

    def _authorize_operator(self, header: str) -> dict[str, Any] | None:
        known = f"Bearer {self.operator}".encode()
        if not secrets.compare_digest(header.encode(), known):
            return None
        return {"identity": {"userArn": OPERATOR}}

    def _is_operator(self, header: str) -> bool:
        return self._authorize_operator(header) is not None

    def _as_operator(self, handler: Callable[..., Any]) -> Callable[[Visit], Shown]:
        """Return the API as the console calls it: with the rights of an operator."""

        def call(visit: Visit) -> Shown:
            try:
                return ask(handler, visit, {"identity": {"userArn": OPERATOR}})
            except HandlerFailed:
                failed = {"error": "handler_failed", "message": "The function raised."}
                return Shown(502, json.dumps(failed).encode(), {})

        return call

    def _authorize_anybody(self, header: str) -> dict[str, Any] | None:
        return self._authorize_user(header) or self._authorize_operator(header)

    def _note_operator(self, header: str) -> dict[str, Any]:
        return self._authorize_operator(header) or {}

    def _with_secret(self, dispatch: Callable[..., Any]) -> Callable[..., Any]:
        """Return the handler of dispatch, for which an operator's token is as good as the secret.

        In a deployed stack, the gateway checks signatures, and an operator signs instead.
        """

        def handle(event: dict[str, Any], context: LocalContext) -> Mapping[str, Any]:
            if event["requestContext"]["identity"].get("userArn"):
                event["headers"] |= {"authorization": f"Bearer {self.secret}"}
            answer: Mapping[str, Any] = dispatch(event, context)
            return answer

        return handle

    def _refuse_user(self, header: str) -> PlainAnswer:
        if self._authorize_operator(header) is None:
            return UNAUTHORIZED
        return 401, "unauthorized", "This is the operator's token; a user's route takes a user's."

    def _refuse_operator(self, header: str) -> PlainAnswer:
        """Refuse a caller. Name the right route to one with a user's token, even an expired one."""
        if verify(self._key, header.removeprefix("Bearer "), 0):
            users = "This is a user's token, and the token's own routes begin with /api/schedules."
            return 401, "unauthorized", f"{users} {OPERATORS}"
        missing = "The operator's token is missing, or wrong."
        return 401, "unauthorized", f"{missing} {OPERATORS}"

    def _set_environment(self, store: str) -> None:
        os.environ |= {
            "DUETICK_STORE": store,
            "DUETICK_API_URL": self.server.url,
            "DUETICK_LOCAL": "1",
            "DUETICK_AGENTS": "true",
            "DUETICK_DISPATCH_AUTH": "secret",
            "DUETICK_DISPATCH_SECRET": self.secret,
            "POWERTOOLS_METRICS_DISABLED": "true",
        }
        if self._transport == "queue":
            os.environ["DUETICK_QUEUE"] = LOCAL_QUEUE


def _register() -> None:
    """Register the flows' static schedules, as a deployment does."""
    register(wiring.store(), wiring.flows().static(), wiring.settings().deployment)


def _show_document(_event: object, _context: object) -> Mapping[str, Any]:
    """Answer with the OpenAPI document."""
    text = (PACKAGE / "api/openapi.json").read_text()
    return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": text}


def _leave_note(stack: LocalStack) -> Path | None:
    """Leave the note by which the command finds the stack. Without the note, options name the
    stack.
    """
    address = from_anywhere(stack.store)
    note = LocalNote(stack.server.url, stack.token, stack.operator, os.getpid(), address)
    try:
        return leave(Path(), note)
    except OSError as error:
        print(f"The command will not find this stack by itself: {error}", file=sys.stderr)
        return None


def _keep_witness() -> None:
    """Keep the witness each hour, as `migrate` does in a deployed stack."""
    witness, store = wiring.witness(), wiring.store()
    try:
        if witness:
            keep_witness(store, witness, store.now())
    except WitnessUnavailable as error:
        told = redact_text(str(error))
        print(f"A restore from a backup will not be told: {told}", file=sys.stderr)


def _report_remaining(left: int, *, stopping: bool) -> None:
    if left and stopping:
        print(f"Stopped before {left} were begun; they are due at the next start.", file=sys.stderr)


def _migrate(address: str) -> int:
    try:
        return wiring.migrate()
    except StoreUnavailable as error:
        raise CliProblem(
            f"The store {hide_secrets(address)} cannot be used: {redact_text(str(error))} "
            f"{advice(address)}"
        ) from error
