"""Results: what a tool answers, as JSON within a cap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from steadmesh.kernel.fitting import largest_that_fits
from steadmesh.tools.arguments import flattened

T = TypeVar("T")
R = TypeVar("R", bound="Result")


class Result(BaseModel):
    """A JSON object. A field that is None is left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def encoded(self) -> bytes:
        """Compact JSON in UTF-8, on which all caps are measured."""
        return self.__pydantic_serializer__.to_json(self, exclude_none=True, by_alias=True)


def output_schema(model: type[Result]) -> dict[str, Any]:
    """The schema of a result, without references."""
    whole = model.model_json_schema(mode="serialization")
    schema: dict[str, Any] = flattened(whole, whole.get("$defs", {}))
    optional = {name for name, field in model.model_fields.items() if field.default is None}
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name not in optional]
    for part in schema.get("properties", {}).values():
        if part.get("default", ...) is None:
            del part["default"]
    schema.pop("description", None)
    return schema


def fit_page(
    entries: Sequence[T],
    build: Callable[[Sequence[T], str], R],
    *,
    cursor_after: Callable[[T], str],
    more: bool,
    cap: int,
) -> R:
    """The largest page of `entries` whose whole result fits in `cap` bytes, but at least one entry.

    `more` says that there are entries beyond these; `cursor_after` makes the cursor that goes on
    behind an entry.
    """

    def page(count: int) -> R:
        rest = more or count < len(entries)
        return build(entries[:count], cursor_after(entries[count - 1]) if rest and count else "")

    whole = page(len(entries))
    if len(whole.encoded()) <= cap or len(entries) <= 1:
        return whole
    return page(
        largest_that_fits(
            len(entries) - 1, lambda count: len(page(count).encoded()) <= cap, least=1
        )
    )
