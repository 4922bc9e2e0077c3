"""The published document is the code's, and agrees with the domain about policies."""

import json
from dataclasses import fields
from importlib.resources import files

from duetick.api.models import PoliciesShape, RetryShape
from duetick.api.openapi import as_text, document
from duetick.api.routes import ROUTES
from duetick.core.wire import WRITABLE, schedule_json
from duetick.domain.policies import Policies, Retry
from duetick.domain.schedule import Record, Schedule

PUBLISHED = files("duetick.api").joinpath("openapi.json").read_text()


def test_the_document_that_is_checked_in_is_the_codes() -> None:
    assert as_text() == PUBLISHED, "run `make openapi`"


def test_every_route_is_published_for_each_who_may_call_it() -> None:
    paths = json.loads(PUBLISHED)["paths"]
    published = {(method.upper(), path) for path, item in paths.items() for method in item}
    assert published == {
        (route.method, base + route.path) for route in ROUTES for base in route.bases
    }


def test_operations_have_names_of_their_own() -> None:
    names = [one["operationId"] for item in document()["paths"].values() for one in item.values()]
    assert len(names) == len(set(names))


def test_the_policies_of_the_document_are_the_domains() -> None:
    for shape, kind in ((PoliciesShape, Policies), (RetryShape, Retry)):
        assert set(shape.model_fields) == {field.name for field in fields(kind)}
    shown = schedule_json(Record.of(Schedule("u", "k", "@daily", "f", "a")))["policies"]
    defaults = PoliciesShape().model_dump(by_alias=True)
    assert shown == defaults


def test_a_definition_has_the_fields_of_the_document() -> None:
    body = document()["components"]["schemas"]["ScheduleBody"]["properties"]
    assert set(body) == set(WRITABLE)
