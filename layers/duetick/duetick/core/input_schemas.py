"""The JSON Schema of an action's input, as `core.inputs` reads it: for forms and agents."""

from collections.abc import Collection
from dataclasses import Field, is_dataclass
from types import NoneType, UnionType
from typing import (
    Final,
    Literal,
    Protocol,
    Union,
    get_args,
    get_origin,
    runtime_checkable,
)

from duetick.core.action import Action
from duetick.core.inputs import fields_of, hints_of, is_anything, is_required
from duetick.core.offers import Schema
from duetick.domain.redaction import is_secret, redact

_PLAIN: Final[dict[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    None: "null",
}
_SAMPLES: Final = ("default", "examples")
_VALUES: Final = (*_SAMPLES, "enum", "const")
"""The keywords of a schema that may hold a value of the field."""

PLACE: Final = "#/$defs/"


@runtime_checkable
class _Described(Protocol):
    """A pydantic model, which knows its schema."""

    def model_json_schema(self, *, ref_template: str) -> Schema:
        """Return the schema of the model."""


class Definitions:
    """The schemas of classes by name, for a document in which other schemas refer to them.

    A field whose name says that it is secret has no default in it, and is marked as `writeOnly`.
    `withheld` are names that an action adds.
    """

    def __init__(self, withheld: Collection[str] = ()) -> None:
        self.made: Final[dict[str, Schema]] = {}
        self._names: Final[dict[type, str]] = {}
        self._withheld: Final = withheld

    def of(self, wanted: object) -> Schema:
        """Return the schema of a type."""
        if is_anything(wanted):
            return {}
        if isinstance(wanted, type) and is_dataclass(wanted):
            return {"$ref": f"{PLACE}{self._define(wanted)}"}
        return self._of_model(wanted) if isinstance(wanted, _Described) else self._of_plain(wanted)

    def _of_plain(self, wanted: object) -> Schema:
        origin, inners = get_origin(wanted), get_args(wanted)
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(one) for one in inners]}
        if origin is Literal:
            return {"enum": [*inners]}
        if origin is list or wanted is list:
            return {"type": "array"} | ({"items": self.of(inners[0])} if inners else {})
        if origin is dict or wanted is dict:
            more: Schema = {"additionalProperties": self.of(inners[1])} if inners else {}
            return {"type": "object"} | more
        return {"type": _PLAIN[wanted]}

    def _define(self, wanted: type) -> str:
        if wanted not in self._names:
            taken = sum(one.__name__ == wanted.__name__ for one in self._names)
            name = self._names[wanted] = f"{wanted.__name__}{taken or ''}"
            self.made[name] = {}  # it may hold itself
            self.made[name] = self._of_dataclass(wanted)
        return self._names[wanted]

    def _of_dataclass(self, wanted: type) -> Schema:
        hints, fields = hints_of(wanted), fields_of(wanted)
        properties: Schema = {
            name: self._withhold(name, self.of(hint) | _default(fields[name]))
            for name, hint in hints.items()
        }
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name, field in fields.items() if is_required(field)],
            "additionalProperties": False,
        }

    def _of_model(self, wanted: _Described) -> Schema:
        made = wanted.model_json_schema(ref_template=PLACE + "{model}")
        inner = made.pop("$defs", {})
        for name, schema in inner.items() if isinstance(inner, dict) else ():
            if isinstance(schema, dict):
                self.made[name] = self._without_secrets(schema)
        return self._without_secrets(made)

    def _without_secrets(self, schema: Schema) -> Schema:
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return schema
        kept: Schema = {
            name: self._withhold(name, one) if isinstance(one, dict) else one
            for name, one in properties.items()
        }
        others = {name: one for name, one in schema.items() if name not in _SAMPLES}
        return others | {"properties": kept}

    def _withhold(self, name: str, schema: Schema) -> Schema:
        if is_secret(name, self._withheld):
            told = {name: one for name, one in schema.items() if name not in _VALUES}
            return told | {"writeOnly": True}
        if "default" in schema:
            return schema | {"default": redact(schema["default"], self._withheld)}
        return schema


def schema_of_input(action: Action) -> Schema:
    """Return the JSON Schema of an action's input, as a document by itself."""
    definitions = Definitions(action.withheld)
    schema = definitions.of(action.takes.annotation)
    return schema | ({"$defs": {**definitions.made}} if definitions.made else {})


def _default(field: Field[object]) -> Schema:
    value = field.default
    return {"default": value} if value is None or isinstance(value, str | int | float) else {}
