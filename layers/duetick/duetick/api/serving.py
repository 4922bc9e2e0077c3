"""The way from API Gateway's events to the operations, and back."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from duetick.api.calls import ApiCall, TooLarge
from duetick.api.routes import AGENTS, OWN, Route
from duetick.api.routing import find, methods
from duetick.core.answers import Answer, error, wrong_method
from duetick.core.operations import Asked, in_words, pseudonym, record_around
from duetick.core.refusals import answer_to
from duetick.core.schedules import UserSchedules
from duetick.domain.errors import DuetickError, Flaw, InvalidSchedule, OccurrenceNotFound
from duetick.domain.group_pauses import user_of
from duetick.domain.identity import InvalidId, check_user, from_path, from_signed_path
from duetick.domain.operations import DRY_RUN
from duetick.domain.schedule import FLOW_USER, Json
from duetick.runtime import gateway, wiring
from duetick.runtime.telemetry import logger

NO_ROUTE: Final = "There is no such route; openapi.json lists them all."


def serve(event: dict[str, Any]) -> gateway.Response:
    """Answer an API Gateway REST event."""
    if event["path"].rstrip("/") == OWN + AGENTS and wiring.settings().agents:
        return _serve_agent(event)
    try:
        return _respond(_answer_event(event))
    except Exception as problem:
        return _respond(_broken(event, problem))


def _serve_agent(event: dict[str, Any]) -> gateway.Response:
    """Answer an agent. Its tools call the routes of the API, as the same caller."""
    from duetick.api.agents.endpoint import serve as serve_agent  # for this route alone

    def ask(sent: Mapping[str, object]) -> Answer:
        call = {**event, **sent}
        try:
            return _answer_event(call)
        except Exception as problem:
            return _broken(call, problem)

    try:
        return serve_agent(event, _refuse_caller(event, operator=False), ask)
    except Exception as problem:
        return _respond(_broken(event, problem))


def _answer_event(event: dict[str, Any]) -> Answer:
    """Return the answer of the route that the event calls, or its refusal if there is none."""
    found = find(str(event["httpMethod"]).upper(), event["path"])
    return _call_route(*found, event) if found else _refuse_path(event["path"])


def _call_route(route: Route, base: str, names: dict[str, str], event: dict[str, Any]) -> Answer:
    """Return the route's answer to the call."""
    user = names.pop("user", "")
    operator = route.is_of_operators(base) or (route.of_any and _is_machine(event))
    refusal = _refuse_caller(event, operator=operator)
    answer = refusal or _answer(route, event, names, user, operator=operator)
    if operator and route.is_logged:
        result = {"action": route.name, "status": answer.status}
        logger.info("operator", extra=_describe(event) | result)
    return answer


def _is_machine(event: dict[str, Any]) -> bool:
    """Return True if a signature vouches for the caller, and no token does."""
    return not _subject(event) and gateway.caller(event) is not None


def _describe(event: dict[str, Any]) -> dict[str, object]:
    """Return the caller and the call, for the log. It does not name a user."""
    operator = gateway.caller(event)
    return {
        "who": operator and operator.user_id,
        "method": event["httpMethod"],
        "path": event["path"],
    }


def _respond(answer: Answer) -> gateway.Response:
    """Return the answer in the form that API Gateway takes."""
    made = gateway.respond(answer)
    headers = {**answer.headers, "Content-Type": "application/json"}
    return {
        "statusCode": answer.status,
        "body": "" if answer.status == HTTPStatus.NO_CONTENT else made["body"],
        "isBase64Encoded": False,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
    }


def _refuse_caller(event: dict[str, Any], *, operator: bool) -> Answer | None:
    """Return a refusal, or None. The gateway checks callers first, unless it lets everyone in."""
    subject = _subject(event)
    if operator and (subject or not gateway.caller(event)):
        return error("forbidden", "These routes are for machines and operators, by IAM.")
    if not operator and not subject:
        return error("unauthorized", "This route needs a user's token.")
    if not _is_for_us(event):
        return error("forbidden", "The token is another application's; sign in to this one.")
    if subject.startswith(FLOW_USER):
        return error(
            "forbidden", f"{FLOW_USER}… is how flows are called, and may be no user's name."
        )
    return None


def _subject(event: dict[str, Any]) -> str:
    """Return the user that an authorizer vouches for: Cognito's, or a function of your own.

    A function's other texts are beside its principal, under names of its choice.
    """
    granted = event["requestContext"].get("authorizer") or {}
    claims = granted.get("claims")
    user = claims.get("sub") if isinstance(claims, dict) else granted.get("principalId")
    return str(user or "")


def _is_for_us(event: dict[str, Any]) -> bool:
    """Return True if the client of a pool's token may call: clients of a pool share its users.

    An ID token names the client as `aud`, an access token as `client_id`.
    """
    wanted = wiring.settings().user_clients
    claims = (event["requestContext"].get("authorizer") or {}).get("claims")
    if not wanted or not isinstance(claims, dict):
        return True
    return (claims.get("aud") or claims.get("client_id")) in wanted


def _answer(
    route: Route, event: dict[str, Any], names: Mapping[str, str], user: str, *, operator: bool
) -> Answer:
    user_id = ""
    try:
        read = from_signed_path if operator else from_path
        names_user = bool(user) if operator else not route.of_all
        user_id = read(user) if operator else _subject(event)
        read_names = {name: read(text) for name, text in names.items()}
        own = _own_of(user_id, operator=operator) if names_user else None
        call = _call(event, read_names, own, operator=operator)
        if operator and route.is_logged:
            return _run_recorded(route, call, user_id)
        if route.writes and not operator and not _stores_nothing(route, call):
            call.schedules.count_write()
        return _run(route, call)
    except TooLarge as problem:
        return error("too_large", str(problem))
    except RecursionError:
        deep = "The body is nested too deeply; make it flatter."
        return _refusal(InvalidSchedule((), deep, "not_json"), user_id, operator=operator)
    except (ValueError, DuetickError) as problem:
        return _refusal(problem, user_id, operator=operator)


def _stores_nothing(route: Route, call: ApiCall) -> bool:
    """Return True if a call of a route that writes is a dry run, or repeats a creation."""
    if route.may_be_dry and call.is_dry_run:
        return True
    return route.idempotent and call.is_repeat()


def _run(route: Route, call: ApiCall) -> Answer:
    """Run a call. A write refuses parameters that its route does not have: a `dryRun` in vain would
    write.
    """
    if route.method != "GET" and route.query and call.query:
        from duetick.api import models  # pydantic costs a cold start

        call.read_query(getattr(models, route.query))
    elif route.method != "GET" and call.query:
        said = "is not a parameter of this call, which has none."
        raise InvalidSchedule.of(Flaw((name,), "unknown_field", said) for name in call.query)
    return route.run(call)


def _run_recorded(route: Route, call: ApiCall, user_id: str) -> Answer:
    """Run an operator's call, and record it. A refusal is its outcome.

    The record of an erasure names the user no more than the store does afterwards.
    """
    told = _pick_told(route, call)
    target = " ".join(filter(None, ["/".join(call.names.values()), in_words(told)]))
    about = user_id or user_of(call.names.get("scope", "")) or _user_in(told)
    if route.finds and not about:
        about = _user_of_found(call)
    if route.erases:
        about, target = None, pseudonym(user_id)
    asked = Asked(call.who, route.name, about, target, call.why())
    with record_around(call.store, asked) as recording:
        try:
            answer = _run(route, call)
        except (ValueError, DuetickError) as problem:
            answer = _refusal(problem, user_id, operator=True)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            recording.outcome = str(answer.body["error"])
        elif answer.body.get("dryRun") is True:
            recording.outcome = DRY_RUN
    return answer


def _pick_told(route: Route, call: ApiCall) -> dict[str, Json]:
    """Return the fields of a call that its record tells; none if its body cannot be read."""
    given: dict[str, Json] = dict(call.query)
    with suppress(TooLarge, InvalidSchedule, RecursionError):
        given |= call.read_body() if route.told else {}
    return {name: given[name] for name in route.told if given.get(name) is not None}


def _user_in(told: Mapping[str, Json]) -> str | None:
    """Return the user that the fields of a call name, or None."""
    user_id = told.get("user")
    if not isinstance(user_id, str) or not user_id:
        return None
    with suppress(InvalidId):
        check_user(user_id)
        return user_id
    return None


def _user_of_found(call: ApiCall) -> str | None:
    """Return the user of the occurrence that a call names by its id alone, or None. An erasure of
    the user takes the operation with it.
    """
    from duetick.core.occurrences import AllOccurrences  # for these routes alone

    with suppress(OccurrenceNotFound):
        return AllOccurrences(call.store).get(call.names["id"]).user_id or None
    return None


def _own_of(user_id: str, *, operator: bool) -> UserSchedules:
    store = wiring.store()
    return UserSchedules(
        store, wiring.flows(), user_id, store.now, wiring.quotas(), owns_names=operator
    )


def _call(
    event: dict[str, Any], names: Mapping[str, str], own: UserSchedules | None, *, operator: bool
) -> ApiCall:
    caller = gateway.caller(event) if operator else None
    return ApiCall(
        store=wiring.store(),
        flows=wiring.flows(),
        quotas=wiring.quotas(),
        own=own,
        own_of=partial(_own_of, operator=operator),
        transport=wiring.runs,
        witness=wiring.witness,
        operator=operator,
        who=caller.user_id if caller else "",
        names=names,
        key=names.get("key", ""),
        query=_query(event),
        headers=gateway.headers(event),
        text=gateway.body(event),
    )


def _query(event: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the parameters. Raise InvalidSchedule naming each that comes twice: the gateway would
    drop all but its last value.
    """
    several: Mapping[str, list[str]] = event.get("multiValueQueryStringParameters") or {}
    doubled = [name for name, values in several.items() if len(values) > 1]
    if doubled:
        why = "comes twice in the query; leave one of them out."
        raise InvalidSchedule.of(Flaw((name,), "duplicate_key", why) for name in doubled)
    return event.get("queryStringParameters") or {}


def _refusal(problem: Exception, user_id: str, *, operator: bool) -> Answer:
    answer = answer_to(problem, user_id, operator=operator)
    if answer is None:
        raise problem
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error(str(problem), action=str(answer.body["error"]))
    return answer


def _refuse_path(path: str) -> Answer:
    """Refuse a path that no route has, or a method that its routes do not have."""
    allowed = methods(path)
    return wrong_method(*allowed) if allowed else error("not_found", NO_ROUTE)


def _broken(event: dict[str, Any], problem: Exception) -> Answer:
    """Log an unexpected error and answer it."""
    described = _describe(event) | {"action": "route_failed"}
    logger.exception("a route failed", exc_info=problem, extra=described)
    return error("internal", "Something unexpected happened; the log says more.")
