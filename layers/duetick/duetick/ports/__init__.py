"""What the core asks of the world: a store, a transport, a clock.

Every method that depends on the time takes `now` in milliseconds since the epoch; without it the
store asks its own clock. A store raises `StoreUnavailable` where its database does not answer, and
`SchemaOutdated` where its schema is missing.
"""

from duetick.domain.attempts import SUCCEEDED, OnLost, Outcome, Refused
from duetick.ports.delivery import Delivery, Transport
from duetick.ports.index import Index, OnPoisoned
from duetick.ports.ledger import Begun, CallerKey, Clock, Event, Ledger, Transaction
from duetick.ports.schedules import Page, Schedules
from duetick.ports.store import Difference, Store

__all__ = [
    "SUCCEEDED",
    "Begun",
    "CallerKey",
    "Clock",
    "Delivery",
    "Difference",
    "Event",
    "Index",
    "Ledger",
    "OnLost",
    "OnPoisoned",
    "Outcome",
    "Page",
    "Refused",
    "Schedules",
    "Store",
    "Transaction",
    "Transport",
]
