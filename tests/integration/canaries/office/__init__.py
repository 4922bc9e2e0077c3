"""The flows of the deployment in which canaries are planted."""

import json
from dataclasses import asdict, dataclass
from typing import NoReturn

from duetick import Context, FailureInput, Flow
from duetick.core.dispatch import ResolveContext
from duetick.domain.errors import ActionFailed
from duetick.domain.schedule import Json, Occurrence

TOLD = "Your bank said: password=canary-told"


def compute(_ctx: Context) -> Json:
    """Return the input of a schedule that has none."""
    return {"client_secret": "canary-computed", "text": "secret=canary-computed"}


office = Flow("office")


@office.action("work", redact={"iban"})
def work(given: object, ctx: Context) -> Json:
    """Succeed, and return a secret."""
    return {"token": "canary-result", "given": str(given)}


@office.action("fail", redact={"iban"}, input=compute, policies={"on_failure": "hear_all"})
def fail(given: object, ctx: Context) -> NoReturn:
    """Raise an error that quotes the input and a secret of the action."""
    raise RuntimeError(f"password=canary-action-error of {given!r}")


@office.action("tell", redact={"iban"}, policies={"on_failure": "hear"})
def tell(given: object, ctx: Context) -> NoReturn:
    """Fail with words that the user reads."""
    raise ActionFailed(f"{TOLD} {given!r}") from RuntimeError("token=canary-action-error")


@office.action("charge", redact={"iban"})
def charge(given: object, ctx: Context) -> NoReturn:
    """Raise an error that quotes the settings."""
    key, partner = ctx.settings["apiKey"], ctx.settings.secret("partner")
    raise ConnectionError(f"POST https://bank.example/ as {key} with {partner}: refused")


@office.action("behind", background=True, redact={"iban"})
def behind(given: object, ctx: Context) -> None:
    """Fail in an invocation of its own."""
    fail(given, ctx)


heard: list[str] = []
"""What failure hooks are told."""


@office.action("hear")
def hear(failed: FailureInput, ctx: Context) -> None:
    """Hear of deaths, as a hook that users may choose."""
    heard.append(json.dumps(asdict(failed)))


@office.action("hear_all", users=False)
def hear_all(failed: FailureInput, ctx: Context) -> None:
    """Hear of deaths as the application's hook does: it reads the operators' text."""
    heard.append(json.dumps(asdict(failed)))


@dataclass(frozen=True, slots=True)
class Picky:
    """A type that raises by mistake, with its input in the words."""

    secret: str

    def __post_init__(self) -> None:
        raise KeyError(f"token=canary-type-error {self.secret}")


@office.action("pick")
def pick(given: Picky, ctx: Context) -> None:
    """Fit nothing, ever."""


def call_partner(given: Json, ctx: Context) -> NoReturn:
    """Fail as a webhook does whose partner refuses."""
    raise ConnectionError("POST https://hooks.example/in?signature=canary-target-error refused")


office.action("call", target=call_partner, redact={"iban"})


@office.on_dispatch
def hook(occurrence: Occurrence, status: int) -> None:
    """Raise if a test says so."""
    if broken["hook"]:
        raise RuntimeError("Cookie: session=canary-hook-error")


broken = {"hook": False}

office.schedule("nightly", cron="0 9 * * *", action="fail", input={"apiKey": "canary-static"})

remote = Flow("remote")
remote.action("work", redact={"iban"})(work)


@remote.resolver
def resolve(schedule_id: str, ctx: ResolveContext) -> NoReturn:
    """Fail: its schedules live elsewhere, out of reach."""
    raise RuntimeError("GET https://u:canary-resolver-error@crm.example/: refused")
