"""The canaries: each place that holds a secret, with the readers who may see it. One line each.

A new place is a line here, and the act that plants it in `acts.py` or `office`.
"""

from typing import Final, Literal, TypeAlias

Reader: TypeAlias = Literal["owner", "operator", "anybody"]
"""A reader of an outlet. `anybody` reads logs, metrics, queues and events."""

NOBODY: Final = frozenset[Reader]()
OWNER: Final = frozenset[Reader]({"owner"})
"""What users wrote themselves, they see as they wrote it."""

PLACES: Final[dict[str, frozenset[Reader]]] = {
    "canary-input": OWNER,
    "canary-deep-input": OWNER,
    "canary-input-text": OWNER,
    "canary-declared": OWNER,
    "canary-label": OWNER,
    "canary-label-text": OWNER,
    "canary-note": OWNER,
    "canary-computed": NOBODY,
    "canary-static": NOBODY,
    "canary-command": OWNER,
    "canary-result": NOBODY,
    "canary-action-error": NOBODY,
    "canary-told": NOBODY,
    "canary-type-error": NOBODY,
    "canary-resolver-error": NOBODY,
    "canary-hook-error": NOBODY,
    "canary-target-error": NOBODY,
    "canary-transport-error": NOBODY,
    "canary-store-error": NOBODY,
    "canary-database": NOBODY,
    "canary-option": NOBODY,
    "canary-header": NOBODY,
    "canary-cookie": NOBODY,
    "canary-idempotency": NOBODY,
    "canary-callers-key": NOBODY,
    "canary-token": NOBODY,
    "canary-dispatch-secret": NOBODY,
    "canary-query": NOBODY,
    "canary-why": NOBODY,
    "canary-setting": NOBODY,
    "canary-partner": NOBODY,
}
"""Each text stands in one place, so that a leak names where it came from."""

DISPATCH: Final = "canary-dispatch-secret-0123456789"
DATABASE: Final = "postgresql://duetick:canary-database@127.0.0.1:1/d?passfile=canary-option"
"""A database at which nothing listens."""

FAULT: Final = (
    "no way to postgresql://duetick:canary-database@db.internal/d: password=canary-store-error, "
    "sent Authorization: Bearer canary-token"
)
"""The words of a driver that tells too much."""

SETTINGS: Final = {"apiKey": "canary-setting"}
PARTNER: Final = {"partner": "canary-partner"}
"""The settings of the deployment, and the secret beside them."""

INPUT: Final = {
    "text": "call them with canary-input; password=canary-input-text",
    "apiKey": "canary-input",
    "to": [{"auth": {"access_token": "canary-deep-input"}}],
    "iban": {"parts": ["canary-declared"]},
}
LABELS: Final = {"password": "canary-label", "team": "token=canary-label-text"}
NOTE: Final = "while we rotate it: password=canary-note"
HEADERS: Final = {
    "X-Api-Key": "canary-header",
    "Cookie": "session=canary-cookie",
    "Idempotency-Key": "canary-idempotency",
    "Duetick-Why": "password=canary-why",
}


def leaks(text: str, reader: Reader) -> set[str]:
    """Return the canaries in a text that its reader may not see."""
    known = {canary for canary, readers in PLACES.items() if reader not in readers}
    return {canary for canary in known if canary in text}
