"""A call of the API: its body, its query and its condition."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import unquote

from duetick.api.conditions import Condition
from duetick.core.accepting import Quotas
from duetick.core.definitions import read_draft
from duetick.core.flows import Flows
from duetick.core.operations import check_why
from duetick.core.schedules import UserSchedules
from duetick.core.store import Store
from duetick.core.wire import LARGEST_BODY, is_too_large, require_object
from duetick.domain.creation import Repeatable
from duetick.domain.errors import InvalidSchedule, refusals_of
from duetick.domain.policies import DAY
from duetick.domain.schedule import Json, Schedule
from duetick.ports import RunTransport, Witness

if TYPE_CHECKING:
    from pydantic import BaseModel

LONGEST_IDEMPOTENCY_KEY: Final = 256
WHY: Final = "Duetick-Why"
"""The header of an operator's reason, percent-encoded if it has other than plain characters."""

USUAL_PAGE: Final = 50
"""The most schedules of a page for which a caller names no number."""

OF_ITEMS: Final = frozenset({"key", "user", "ifVersion"})
"""The fields of a body, or of an item of a batch, that are no part of the definition."""

Read = TypeVar("Read", bound="BaseModel")


class TooLarge(Exception):
    """A body that is too large to be read."""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call as it came, except that its user is already identified. `own` are the user's
    schedules; None if the route names no user. `own_of` gives those of any user to an operator.

    If `operator`, a machine or an operator makes the call, for any user: `who` is the caller.
    `names` are the decoded parts of the path without the user; `key` is one of them, or empty.
    """

    store: Store
    flows: Flows
    quotas: Quotas
    own: UserSchedules | None
    own_of: Callable[[str], UserSchedules]
    transport: Callable[[], RunTransport]
    witness: Callable[[], Witness | None]
    operator: bool
    who: str
    names: Mapping[str, str]
    key: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    text: str

    @property
    def is_dry_run(self) -> bool:
        """True if the query asks for a dry run. Raises InvalidSchedule if it is unclear."""
        if "dryRun" not in self.query:
            return False
        from duetick.api.models import DryQuery  # pydantic costs a cold start

        return self.read_query(DryQuery).dry_run

    def dry(self) -> "ApiCall":
        """Return the call; one that stores nothing if it is a dry run."""
        if not self.is_dry_run:
            return self
        return replace(self, own=replace(self.schedules, stores=False))

    @property
    def schedules(self) -> UserSchedules:
        """The schedules of the user whom the route is about."""
        if self.own is None:
            raise TypeError("the route names no user")
        return self.own

    def why(self) -> str:
        """Return the reason that an operator gives, or an empty text. The header is decoded."""
        try:
            text = unquote(self.headers.get(WHY.lower(), ""), errors="strict")
        except UnicodeDecodeError:
            wrong = "is not UTF-8 in percent-encoding."
            raise InvalidSchedule((WHY,), wrong, "invalid_header") from None
        return check_why(text.strip(), WHY)

    def condition(self) -> Condition:
        """Read the condition in If-Match and If-None-Match."""
        return Condition.read(self.headers)

    def read_body(self) -> dict[str, Json]:
        """Read the body, an empty one as {}. Raise if it is too large, or no JSON object."""
        if is_too_large(self.text):
            raise TooLarge(f"A body may have {LARGEST_BODY // 1024} KB.")
        return require_object(self.text or "{}")

    def definition(
        self,
        shape: "type[BaseModel]",
        key: str,
        merged: Mapping[str, Json] | None = None,
        *,
        given: Mapping[str, Json] | None = None,
        header: Callable[[], object] = lambda: None,
        new: bool = False,
    ) -> Schedule:
        """Return the schedule that the body describes. In a batch, `given` is its body. A patch has
        the `merged` fields instead.

        Raise InvalidSchedule naming everything that is wrong with the body and with the header.
        """
        from duetick.api.checking import check_shape  # pydantic costs a cold start

        body = self.read_body() if given is None else given
        misfits = refusals_of([header, lambda: check_shape(shape, body)])
        whole = merged or body
        fields = {name: value for name, value in whole.items() if name not in OF_ITEMS}
        draft = read_draft(self.schedules.user_id, key, fields, misfits)
        draft = draft.with_defaults(self.schedules.flows.with_defaults)
        return draft.schedule(partial(self.schedules.find_refusals, new=new))

    def read_query(self, shape: type[Read]) -> Read:
        """Read the query. Raise InvalidSchedule naming all that is wrong with it."""
        from duetick.api.checking import check_shape  # pydantic costs a cold start

        return check_shape(shape, dict(self.query))

    def idempotent_key(self) -> str | None:
        """Return the schedule key that the Idempotency-Key stands for, or None without one."""
        header = self.headers.get("idempotency-key")
        if header is None:
            return None
        if not 0 < len(header) <= LONGEST_IDEMPOTENCY_KEY or not header.isprintable():
            wanted = f"expected 1 to {LONGEST_IDEMPOTENCY_KEY} plain characters."
            raise InvalidSchedule(("Idempotency-Key",), wanted, "invalid_header")
        return f"i-{hashlib.sha256(header.encode()).hexdigest()[:24]}"

    def is_repeat(self) -> bool:
        """Return True if it repeats a creation: it writes nothing and gets the first answer."""
        with suppress(TooLarge, InvalidSchedule):
            name = self.idempotent_key()
            earlier = self.schedules.find_creation(name) if name else None
            current = self.repeatable() if earlier else None
            return earlier is not None and current is not None and current.digest == earlier.digest
        return False

    def repeatable(self) -> Repeatable | None:
        """Return the creation that the Idempotency-Key names for a day, or None without one."""
        name = self.idempotent_key()
        if name is None:
            return None
        text = json.dumps(self.read_body(), sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        return Repeatable(name, digest, self.schedules.clock() + DAY * 1_000)
