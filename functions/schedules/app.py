"""Behind the schedules routes: a user's own, and the operators' view of any user's."""

from http import HTTPStatus

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.utilities.typing import LambdaContext
from duetick.core.answers import Answer
from duetick.core.schedules import LONGEST_PAGE, UserSchedules, refused
from duetick.core.wire import require_object
from duetick.domain.errors import DuetickError
from duetick.domain.identity import from_path
from duetick.runtime import gateway, wiring
from duetick.runtime.telemetry import logger

app = APIGatewayRestResolver()
OWN, ANY = "/api/schedules", "/api/users/<user>/schedules"


def mine(user: str | None) -> UserSchedules:
    """The user's own; on the operators' routes the path names the user, else the token does."""
    context = app.current_event.request_context.authorizer
    user_id = from_path(user) if user else str(context.claims["sub"])
    return UserSchedules(wiring.store(), wiring.flows(), user_id, wiring.store().now)


def limit() -> int:
    """How much of a list is asked for."""
    asked = app.current_event.get_query_string_value("limit", "50") or "50"
    return max(1, min(int(asked), LONGEST_PAGE)) if asked.isdecimal() else 50


@app.get(OWN)
@app.get(ANY)
def list_schedules(user: str | None = None) -> Response[str]:
    """One page."""
    cursor = app.current_event.get_query_string_value("cursor")
    return send(mine(user).list(limit(), cursor))


@app.get(f"{OWN}/<key>")
@app.get(f"{ANY}/<key>")
def get_schedule(key: str, user: str | None = None) -> Response[str]:
    """The schedule."""
    return send(mine(user).get(from_path(key)))


@app.put(f"{OWN}/<key>")
@app.put(f"{ANY}/<key>")
def put_schedule(key: str, user: str | None = None) -> Response[str]:
    """Create or replace."""
    body = require_object(gateway.body(app.current_event.raw_event))
    return send(mine(user).put(from_path(key), body))


@app.delete(f"{OWN}/<key>")
@app.delete(f"{ANY}/<key>")
def delete_schedule(key: str, user: str | None = None) -> Response[str]:
    """Delete."""
    return send(mine(user).delete(from_path(key)))


@app.get(f"{OWN}/<key>/upcoming")
@app.get(f"{ANY}/<key>/upcoming")
def upcoming(key: str, user: str | None = None) -> Response[str]:
    """The next fire times."""
    return send(mine(user).upcoming(from_path(key), limit()))


@app.get(f"{OWN}/<key>/history")
@app.get(f"{ANY}/<key>/history")
def history(key: str, user: str | None = None) -> Response[str]:
    """What became of its occurrences."""
    return send(mine(user).history(from_path(key), limit()))


def user_error(problem: Exception) -> Response[str]:
    """What a user did wrong, or what is down, as an answer that says so."""
    answer = refused(problem)
    if answer is None:
        raise problem
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error(str(problem), action=str(answer.body["error"]))
    return send(answer)


app.exception_handler([ValueError, LookupError, DuetickError])(user_error)


def send(answer: Answer) -> Response[str]:
    """An answer in the resolver's form."""
    made = gateway.respond(answer)
    empty = answer.status == HTTPStatus.NO_CONTENT
    return Response(answer.status, "application/json", "" if empty else str(made["body"]))


@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handler(event: dict[str, object], context: LambdaContext) -> dict[str, object]:
    """Answer an API Gateway REST event."""
    return app.resolve(event, context)
