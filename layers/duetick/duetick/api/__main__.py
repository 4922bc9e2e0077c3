"""Print the OpenAPI document: `python -m duetick.api`."""

from duetick.api.openapi import as_text

print(as_text(), end="")
