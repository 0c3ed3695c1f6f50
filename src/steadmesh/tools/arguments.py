"""Arguments: declared as a class, published as a flat schema, read as models really send them.

Null means absent. A JSON string where a list, object, number or flag is declared is read as one. NaN,
NUL and lone surrogates are refused by the name of the field they stand in.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.text import flaw, is_blank, size, truncated

INTEGER_LIMIT = 2**63
DEPTH_LIMIT = 100
SHOWN_PROBLEMS = 10
SHOWN_NAME_BYTES = 100


class BadArguments(Invalid):
    """{problems}"""


@dataclass(frozen=True, slots=True)
class Doc:
    """What a field means, in the words that callers read."""

    text: str


@dataclass(frozen=True, slots=True)
class Size:
    """A limit in bytes of UTF-8. It stands in the description: `maxLength` counts characters."""

    max_bytes: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: str) -> str:
        found = size(value)
        if found > self.max_bytes:
            raise PydanticCustomError(
                "size",
                "is {size} bytes long; at most {limit} are allowed. Shorten it or send it in parts",
                {"size": found, "limit": self.max_bytes},
            )
        return value


@dataclass(frozen=True, slots=True)
class NotBlank:
    """At least one character that can be seen."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, value: str) -> str:
        if is_blank(value):
            raise PydanticCustomError("blank", "is blank; say something")
        return value


@dataclass(frozen=True, slots=True)
class Clamped:
    """A paging limit: below 1 means the default, above the maximum means the maximum."""

    maximum: int
    default: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._clamp, handler(source))

    def _clamp(self, value: int) -> int:
        return self.default if value < 1 else min(value, self.maximum)


class Args(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    shapes: ClassVar[dict[str, type]] = {}
    """For each field that is no string, the JSON type to read a string as."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.shapes = {
            field.alias or name: shape
            for name, field in cls.model_fields.items()
            if (shape := _json_shape(field.annotation)) is not str
        }

    @classmethod
    def read(cls, arguments: Mapping[str, Any]) -> Self:
        """Arguments as they came, or `BadArguments` that names every field that is wrong."""
        given: dict[str, Any] = {}
        for name, value in arguments.items():
            if name not in cls.model_fields and (trouble := _trouble(name)) is not None:
                raise BadArguments(problems=f"the name of an argument {trouble}")
            if value is None:
                continue
            if (shape := cls.shapes.get(name)) is not None and type(value) is not shape:
                value = _tolerate(value, shape)
            if (trouble := _trouble(value)) is not None:
                raise BadArguments(problems=f"{name}: {trouble}")
            given[name] = value
        try:
            return cls.model_validate(given)
        except ValidationError as problem:
            raise BadArguments(problems=_problems(problem, cls)) from None


class NoArgs(Args):
    """No arguments."""


def _json_shape(annotation: Any) -> type:
    """The JSON type behind an annotation such as `list[str] | None`."""
    if get_origin(annotation) is Annotated:
        return _json_shape(get_args(annotation)[0])
    origin = get_origin(annotation) or annotation
    for shape in (bool, int, float, list, dict):
        if origin is shape:
            found: type = shape
            return found
    members = [member for member in get_args(annotation) if member is not type(None)]
    if members and isinstance(members[0], type | type(list[str])):
        return _json_shape(members[0])
    return str


def _tolerate(value: Any, shape: type) -> Any:
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return value
        value = read if isinstance(read, shape | int | float) else value
    if shape is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _trouble(value: Any, depth: int = 0) -> str | None:
    """What makes a value unfit to be stored or compared, anywhere inside it."""
    if isinstance(value, str):
        found = flaw(value)
        return found and f"holds {found}; remove it"
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a number that JSON knows (NaN or infinite); send a finite one"
    if isinstance(value, int) and not -INTEGER_LIMIT <= value < INTEGER_LIMIT:
        return "is an integer of more than 64 bits; send a smaller one"
    if not isinstance(value, list | dict):
        return None
    if depth >= DEPTH_LIMIT:
        return f"is nested more than {DEPTH_LIMIT} levels deep; make it flatter"
    inside = value if isinstance(value, list) else (i for pair in value.items() for i in pair)
    return next((found for item in inside if (found := _trouble(item, depth + 1))), None)


_EXPECTED = {
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "float_type": "must be a number",
}


def _problems(problem: ValidationError, model: type[Args]) -> str:
    """The first mistakes in our words, the name of its field first, and how many more there are."""
    errors = problem.errors(include_url=False, include_input=False)
    lines = []
    for error in errors[:SHOWN_PROBLEMS]:
        where = ".".join(str(part) for part in error["loc"]) or "arguments"
        complaint = _complaint(error["type"], error, model)
        lines.append(f"{truncated(where, SHOWN_NAME_BYTES)}: {complaint}")
    if len(errors) > SHOWN_PROBLEMS:
        lines.append(f"and {len(errors) - SHOWN_PROBLEMS} more mistakes")
    return "; ".join(lines)


def _complaint(kind: str, error: Any, model: type[Args]) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        known = [field.alias or name for name, field in model.model_fields.items()]
        near = difflib.get_close_matches(str(error["loc"][-1])[:SHOWN_NAME_BYTES], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(known) or 'none'}"
        return f"is not an argument of this tool; {hint}"
    if kind == "literal_error":
        return f"must be one of {error['ctx']['expected']}"
    if kind == "too_long":
        return f"has {error['ctx']['actual_length']} entries; at most {error['ctx']['max_length']}"
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    return str(error["msg"][:1].lower() + error["msg"][1:])


def input_schema(model: type[Args]) -> dict[str, Any]:
    """The flat schema that is published: every property typed, no `$ref`, no `anyOf`."""
    properties = {}
    required = []
    whole = model.model_json_schema()
    definitions = whole.get("$defs", {})
    for name, field in model.model_fields.items():
        key = field.alias or name
        properties[key] = _property(whole["properties"][key], field, definitions)
        if field.is_required():
            required.append(key)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def _property(raw: dict[str, Any], field: FieldInfo, definitions: dict[str, Any]) -> dict[str, Any]:
    flat = flattened(raw, definitions)
    texts = [item.text for item in field.metadata if isinstance(item, Doc)]
    for item in field.metadata:
        if isinstance(item, Size):
            texts.append(f"At most {item.max_bytes} bytes.")
        if isinstance(item, Clamped):
            flat |= {"minimum": 1, "maximum": item.maximum, "default": item.default}
    if flat.get("default") is None:
        flat.pop("default", None)
    ordered: dict[str, Any] = {"type": flat.pop("type")} | flat
    if texts:
        ordered["description"] = " ".join(texts)
    return ordered


def flattened(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A schema with its references put in place, and `X or null` as X."""
    if isinstance(schema, list):
        return [flattened(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return flattened(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        others = [item for item in schema["anyOf"] if item.get("type") != "null"]
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return flattened(others[0] | rest, definitions)
    if "const" in schema:
        schema = {k: v for k, v in schema.items() if k != "const"} | {"enum": [schema["const"]]}
    return {
        key: _flattened_part(key, value, definitions)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str)) and key != "$defs"
    }


def _flattened_part(key: str, value: Any, definitions: Mapping[str, Any]) -> Any:
    if key == "properties":  # a property may be called "title" or "$ref"
        return {name: flattened(part, definitions) for name, part in value.items()}
    if key in ("default", "enum", "required"):
        return value
    return flattened(value, definitions)
