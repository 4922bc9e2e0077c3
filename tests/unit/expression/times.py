"""Instants as people write them."""

import datetime


def ms(text: str) -> int:
    """Return milliseconds since the epoch; a text without an offset is UTC."""
    moment = datetime.datetime.fromisoformat(text)
    return int(moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp() * 1000)


def utc(times: list[int]) -> list[str]:
    """Return instants as texts, to the minute."""
    return [
        datetime.datetime.fromtimestamp(time / 1000, datetime.UTC).strftime("%Y-%m-%dT%H:%M")
        for time in times
    ]
