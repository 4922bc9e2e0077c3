"""As much of the `aws` command as the READMEs use, where AWS's own is not installed.

python -m tests.lab.aws_command cognito-idp admin-create-user --user-pool-id … --username …
"""

import sys
from importlib import import_module
from typing import Any, Final, cast

import boto3
from botocore.model import Shape, StructureShape

RENAMED: Final = {"Endpoint": "notification-endpoint"}
"""What the command calls otherwise, because `--endpoint…` are options of its own."""


def option(name: str) -> str:
    """Return the option of a parameter: `UserPoolId` is `user-pool-id`."""
    if name in RENAMED:
        return RENAMED[name]
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in name).lstrip("-")


def given(shape: Shape, values: list[str]) -> object:
    """Return the words behind an option."""
    if shape.type_name == "boolean":
        return True
    (text,) = values
    if shape.type_name == "map":
        return dict(pair.split("=", 1) for pair in text.split(","))
    return text


def options(words: list[str]) -> dict[str, list[str]]:
    """Return each option, with the words behind it."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            found[word[2:]] = []
        else:
            found[list(found)[-1]].append(word)
    return found


def call(service: str, operation: str, asked: dict[str, list[str]]) -> dict[str, Any]:
    """Call the operation."""
    client: Any = cast("Any", boto3).client(service)
    method = operation.replace("-", "_")
    model = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method])
    shape: StructureShape = model.input_shape
    known = {option(name): name for name in shape.members}
    values = {known[one]: given(shape.members[known[one]], words) for one, words in asked.items()}
    answer: dict[str, Any] = getattr(client, method)(**values)
    return answer


def main(service: str, operation: str, *words: str) -> str:
    """Return the command's output with `--output text`."""
    asked = options(list(words))
    query = asked.pop("query", ["@"])[0]
    asked.pop("output", None)
    search: Any = cast("Any", import_module("jmespath")).search
    found = search(query, call(service, operation, asked))
    return "\t".join(found) if isinstance(found, list) else str(found)


if __name__ == "__main__":
    sys.stdout.write(f"{main(*sys.argv[1:])}\n")
