"""From API Gateway's events to the operations, and back."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from duetick.api.calls import Call, TooLarge
from duetick.api.routes import ANY, ROUTES, Route
from duetick.core.answers import Answer, error, wrong_method
from duetick.core.refusals import refused
from duetick.core.schedules import UserSchedules
from duetick.domain.errors import DuetickError
from duetick.domain.identity import from_path
from duetick.domain.schedule import FLOW_USER
from duetick.runtime import gateway, wiring
from duetick.runtime.telemetry import logger

app: Final = APIGatewayRestResolver()
NO_ROUTE: Final = "There is no such route; openapi.json lists them all."


def _serve(route: Route, base: str) -> Callable[..., Response[str]]:
    """The route's handler, as the resolver calls it."""

    def serve(key: str = "", user: str = "") -> Response[str]:
        event = app.current_event.raw_event
        stop = _stopped(event, operator=base == ANY)
        return _response(stop or _answer(route, event, key, user, operator=base == ANY))

    return serve


def _response(answer: Answer) -> Response[str]:
    """The answer as the resolver takes it."""
    made = gateway.respond(answer)
    body = "" if answer.status == HTTPStatus.NO_CONTENT else str(made["body"])
    return Response(answer.status, "application/json", body, headers=dict(answer.headers))


def _stopped(event: dict[str, Any], *, operator: bool) -> Answer | None:
    """The gateway decides who calls; this holds where it was told to let everyone in."""
    subject = _subject(event)
    if operator and subject:
        return error("forbidden", "These routes are for machines and operators, by IAM.")
    if not operator and not subject:
        return error("unauthorized", "This route needs a user's token.")
    if subject.startswith(FLOW_USER):
        return error(
            "forbidden", f"{FLOW_USER}… is how flows are called, and may be no user's name."
        )
    return None


def _subject(event: dict[str, Any]) -> str:
    """The user that an authorizer vouches for: Cognito's, or a function's own.

    What else a function tells stands beside its principal as texts, under names of its choice.
    """
    granted = event["requestContext"].get("authorizer") or {}
    claims = granted.get("claims")
    user = claims.get("sub") if isinstance(claims, dict) else granted.get("principalId")
    return str(user or "")


def _answer(route: Route, event: dict[str, Any], key: str, user: str, *, operator: bool) -> Answer:
    try:
        user_id = from_path(user) if operator else _subject(event)
        return route.run(
            Call(
                schedules=UserSchedules(
                    wiring.store(),
                    wiring.flows(),
                    user_id,
                    wiring.store().now,
                    wiring.quotas(),
                    owns_names=operator,
                ),
                transport=wiring.runs,
                operator=operator,
                key=from_path(key),
                query=event.get("queryStringParameters") or {},
                headers=gateway.headers(event),
                text=gateway.body(event),
            )
        )
    except TooLarge as problem:
        return error("too_large", str(problem))
    except RecursionError:
        return error("invalid_schedule", "body: is nested too deeply; make it flatter.")
    except (ValueError, DuetickError) as problem:
        return _refusal(problem)


def _refusal(problem: Exception) -> Answer:
    answer = refused(problem)
    if answer is None:
        raise problem
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error(str(problem), action=str(answer.body["error"]))
    return answer


def _not_found(_problem: Exception) -> Response[str]:
    """No route, or not by that method."""
    path = app.current_event.path
    allowed = {
        route.method
        for route in ROUTES
        for base in route.bases
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", base + route.path), path)
    }
    return _response(wrong_method(*allowed) if allowed else error("not_found", NO_ROUTE))


def _broken(problem: Exception) -> Response[str]:
    """Ours to mend; the log says more."""
    logger.exception("a route failed", action="route_failed", exc_info=problem)
    return _response(error("internal", "Something unexpected happened; the log says more."))


def _register() -> None:
    for route in ROUTES:
        for base in route.bases:
            rule = re.sub(r"\{(\w+)\}", r"<\1>", base + route.path)
            app.route(rule, method=route.method)(_serve(route, base))
    app.not_found(_not_found)
    app.exception_handler(Exception)(_broken)


_register()
