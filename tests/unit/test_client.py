"""The client's types are the published document's: each operation, condition and field of it."""

import inspect
import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from duetick.api import views
from duetick.client import Client
from duetick.occurrences import OccurrencesClient
from duetick.operators import Operators
from duetick.statics import StaticClient

DOCUMENT = json.loads(files("duetick.api").joinpath("openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = {
    described["operationId"].removesuffix("_for_user"): described
    for item in DOCUMENT["paths"].values()
    for described in item.values()
}
METHODS: dict[str, Callable[..., object]] = {
    "list_actions": Client.actions,
    "list_flows": Client.flows,
    "preview": Client.preview,
    "forecast": Client.forecast,
    "list_schedules": Client.list,
    "create_schedule": Client.create,
    "get_by_external": Client.by_external,
    "get_schedule": Client.get,
    "put_schedule": Client.put,
    "put_schedules": Client.put_many,
    "put_all_schedules": Operators.put_many,
    "change_schedule": Client.change,
    "delete_schedule": Client.delete,
    "pause_schedule": Client.pause,
    "resume_schedule": Client.resume,
    "run_schedule": Client.run,
    "upcoming": Client.upcoming,
    "create_job": Client.enqueue,
    "create_jobs": Client.enqueue_many,
    "list_jobs": Client.jobs,
    "get_job": Client.job,
    "cancel_job": Client.cancel_job,
    "job_history": Client.job_history,
    "explain_job": Client.explain_job,
    "history": Client.history,
    "explain": Client.explain,
    "show_timeline": Client.timeline,
    "start_backfill": Client.start_backfill,
    "list_backfills": Client.backfills,
    "get_backfill": Client.backfill,
    "stop_backfill": Client.stop_backfill,
    "continue_backfill": Client.continue_backfill,
    "export_user": Client.export,
    "erase_user": Client.erase,
    "mend_schedule": Client.mend,
    "show_overview": Operators.overview,
    "list_workers": Operators.workers,
    "recover_store": Operators.recover,
    "list_locks": Operators.locks,
    "list_all_schedules": Operators.schedules,
    "list_unreadable": Operators.unreadable,
    "list_operations": Operators.operations,
    "list_occurrences": OccurrencesClient.list,
    "get_occurrence": OccurrencesClient.get,
    "retry_occurrence": OccurrencesClient.retry,
    "cancel_occurrence": OccurrencesClient.cancel,
    "delete_occurrence": OccurrencesClient.delete,
    "retry_occurrences": OccurrencesClient.retry_many,
    "cancel_occurrences": OccurrencesClient.cancel_many,
    "delete_occurrences": OccurrencesClient.delete_many,
    "list_pauses": Operators.pauses,
    "pause_group": Operators.pause,
    "resume_group": Operators.resume,
    "get_static_schedule": StaticClient.get,
    "static_history": StaticClient.history,
    "static_timeline": StaticClient.timeline,
    "explain_static": StaticClient.explain,
    "pause_static_schedule": Operators.pause_static,
    "resume_static_schedule": Operators.resume_static,
    "list_limits": Operators.limits,
    "set_limit": Operators.limit,
    "lift_limit": Operators.unlimit,
}
CONDITIONS = {"If-Match": "if_match", "Idempotency-Key": "idempotency_key"}
ANSWERS = {shape.__name__: shape for shape in vars(views).values() if is_typeddict(shape)}


def answered(described: dict[str, Any]) -> object:
    """Return the type of an operation's answer in success."""
    contents = [
        answer.get("content")
        for status, answer in described["responses"].items()
        if status.startswith("2")
    ]
    assert all(content == contents[0] for content in contents)
    if contents[0] is None:
        return type(None)
    return ANSWERS[contents[0]["application/json"]["schema"]["$ref"].rpartition("/")[2]]


def test_the_client_has_each_operation_of_the_document() -> None:
    assert METHODS.keys() == OPERATIONS.keys()


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_method_takes_the_conditions_of_its_operation(name: str) -> None:
    taken = {one["name"] for one in OPERATIONS[name]["parameters"] if one["in"] == "header"}
    known = inspect.signature(METHODS[name]).parameters
    elsewhere = {"If-None-Match", "Duetick-Why"}  # a method of its own; given with the client
    assert {header for header, given in CONDITIONS.items() if given in known} == taken - elsewhere


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_method_answers_what_its_operation_answers(name: str) -> None:
    told = get_type_hints(METHODS[name])["return"]
    shape = next(iter(get_args(told)), told)
    answer = answered(OPERATIONS[name])
    if get_origin(told) is Iterator:  # of a page's one list, page after page
        (answer,) = (
            get_args(inner)[0]
            for inner in get_type_hints(answer).values()
            if get_origin(inner) is list
        )
    assert shape is answer


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_has_the_fields_of_the_document(name: str) -> None:
    described = SCHEMAS[name]
    assert get_type_hints(ANSWERS[name]).keys() == described["properties"].keys()
    assert ANSWERS[name].__required_keys__ == frozenset(described["required"])
    assert described["additionalProperties"] is False
