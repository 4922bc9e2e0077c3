"""Greets over the API, with code of one layer that needs the other; leaves a row for a tick."""

import json
import os
from typing import Any

import boto3
from sample.greeting import greet

table = boto3.resource("dynamodb").Table(os.environ["TABLE"])


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer an API call, or record a scheduled one."""
    if "httpMethod" not in event:
        table.put_item(Item={"id": "tick", "event": json.dumps(event)})
        return {"ticked": True}
    body = {"greeting": greet(event["pathParameters"]["name"]), "said": event["body"]}
    return {"statusCode": 200, "body": json.dumps(body)}
