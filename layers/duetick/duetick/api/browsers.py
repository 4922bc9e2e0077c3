"""Calls out of a web page: what a browser has to be told before it makes them (CORS)."""

from collections.abc import Mapping
from typing import Any, Final

METHODS: Final = "GET, POST, PUT, PATCH, DELETE"
SENT: Final = "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match"
SHOWN: Final = "Allow, ETag, Location, Retry-After, Warning"
KEPT_SECONDS: Final = "7200"
"""As long as any browser keeps it."""


def asks_first(event: Mapping[str, Any], origin: str) -> bool:
    """Whether it is a browser's question, which carries no token."""
    return bool(origin) and event["httpMethod"] == "OPTIONS"


def told(origin: str) -> dict[str, object]:
    """The answer: what a page of that origin may do. Nothing of anybody's is in it."""
    headers = {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": SENT,
        "Access-Control-Max-Age": KEPT_SECONDS,
    }
    return {"statusCode": 204, "headers": headers, "body": ""}


def readable(answer: dict[str, Any], origin: str) -> dict[str, Any]:
    """The answer, which a page of that origin may read."""
    if not origin:
        return answer
    headers = {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": SHOWN}
    return {**answer, "headers": {**(answer.get("headers") or {}), **headers}}
