"""The text that the local stack prints at its start: commands to paste."""

import json
from dataclasses import is_dataclass
from types import NoneType
from typing import TYPE_CHECKING, Final, NamedTuple

from duetick.core.inputs import hints_of, is_anything
from duetick.domain.errors import InvalidSchedule

if TYPE_CHECKING:
    from duetick.core.action import Action
    from duetick.core.flows import Flows
    from duetick.domain.schedule import Json

WELCOME: Final = """
Duetick listens on {url} and ticks each minute. Schedules are kept in {store}.
{first}
The command, in this folder, speaks to it by itself, as "you" and as an operator:

  .venv/bin/duetick schedules list
  .venv/bin/duetick overview

Elsewhere it does after this. The operator's token opens what is operators', and no deployed stack:

  export DUETICK_URL={url} DUETICK_TOKEN={token}
  export DUETICK_OPERATOR={operator}

In a browser of this machine: the console, for operators; and the schedule picker, as "you". Each
link opens once; `duetick console` prints another of the console.

  {console}
  {example}

Tokens hold when this is started again; `duetick token --user bob` prints another user's.
The API's document is {url}/openapi.json. A flow that you change is loaded again by itself.

Ctrl-C stops.
"""

FIRST: Final = """A first schedule, in another terminal (you are the user "you"):

  curl -X PUT {url}/api/schedules/hello \\
    -H "Authorization: Bearer {token}" \\
    -d '{{"cron": "* * * * *", "flow": "{flow}", "action": "{action}",
         "input": {given}}}'

At the next full minute it fires: a line appears here. Its history:

  curl {url}/api/schedules/hello/history \\
    -H "Authorization: Bearer {token}"
"""

SAMPLES: Final[dict[object, "Json"]] = {
    str: "hello",
    int: 1,
    float: 1.0,
    bool: True,
    None: None,
    NoneType: None,
}


class _Example(NamedTuple):
    """An action with an input that it takes; the one that sorts first is shown."""

    without_text: bool
    size: int
    flow: str
    action: str
    given: str


def welcome(flows: "Flows", *, url: str, token: str, **told: str) -> str:
    """Return the text, with a first schedule of an action that is there. `told` fills it."""
    found = sorted(filter(None, (_example(*one) for one in flows.list_offered(to_users=True))))
    first = ""
    if found:
        one = found[0]
        named = {"flow": one.flow, "action": one.action, "given": one.given}
        first = FIRST.format(url=url, token=token, **named)
    return WELCOME.format(url=url, token=token, first=first, **told)


def _example(flow: str, action: "Action") -> _Example | None:
    """Return an input of samples, if the action takes it. A text shows best that it arrived."""
    try:
        given = _sample(action.takes.annotation)
        action.read(given)
    except (InvalidSchedule, KeyError, TypeError):
        return None
    text = json.dumps(given)
    return _Example('"hello"' not in text, len(text), flow, action.name, text)


def _sample(wanted: object) -> "Json":
    """Return a sample of a type, or raise KeyError."""
    if isinstance(wanted, type) and is_dataclass(wanted):
        return {name: SAMPLES[hint] for name, hint in hints_of(wanted).items()}
    return None if is_anything(wanted) else SAMPLES[wanted]
