"""schemathesis against the local stack: no 5xx, and no answer outside the published document."""

import json
from importlib.resources import files
from typing import Any

import pytest
import schemathesis
from duetick.domain.schedule import Schedule
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from tests.integration.local_product import Product, set_again

DOCUMENT = json.loads(files("duetick.api").joinpath("openapi.json").read_text())
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OF_ANY_USER = "^/api/users/"
"""Routes of operators that ask a store what the users' own routes ask it."""

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
MET = Schedule("ann", "0", "0 9 * * *", "reminders", "remind", input={"text": "good morning"})

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unhurried")]


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may write as often as the examples do."""
    set_again(monkeypatch, "QUOTA_WRITES", "1000000")


QUIET: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "phases": (Phase.explicit, Phase.generate),
    "suppress_health_check": list(HealthCheck),
}


# Without a parameter of its own all cases of a test would have one id.
@SCHEMA.parametrize()
@settings(max_examples=8, **QUIET)
@pytest.mark.parametrize("anywhere", ["sqlite"], indirect=True)
def test_no_answer_is_outside_the_document(case: schemathesis.Case[Any], anywhere: Product) -> None:
    keeps_to_the_document(case, anywhere)


# The cases of each bound and each wrong type are the document's, whatever the store: above they are
# sent once.
@SCHEMA.exclude(path_regex=OF_ANY_USER).parametrize()
@settings(max_examples=8, **QUIET | {"phases": [Phase.generate]})
@pytest.mark.parametrize("anywhere", ["postgres", "dynamodb"], indirect=True)
def test_no_answer_is_outside_the_document_on_any_store(
    case: schemathesis.Case[Any], anywhere: Product
) -> None:
    keeps_to_the_document(case, anywhere)


def keeps_to_the_document(case: schemathesis.Case[Any], product: Product) -> None:
    """Send the case as a caller of its route, while there is a schedule for it. Check the
    answer.
    """
    product.store.schedules.put(MET, now=product.clock())
    operator = not case.path.startswith(("/api/schedules", "/api/actions"))
    token = product.stack.operator if operator else product.stack.token_of("ann")
    case.headers["Authorization"] = f"Bearer {token}"
    for name in ("Content-Length", "Transfer-Encoding"):  # a drawn one is for the gateway to refuse
        case.headers.pop(name, None)
    response = case.call(base_url=product.stack.server.url)
    case.validate_response(response, checks=CHECKS)
