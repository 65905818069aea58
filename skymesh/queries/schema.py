"""The JSON Schema of query files, for editors that complete and check while one types.

The models know the long forms; what the loader also takes (short forms, templates) is added here, in one place.
"""

from __future__ import annotations

from typing import Any

from .models import QuerySet

_TEMPLATED: dict[str, Any] = {"type": "string", "pattern": r"\$\{", "description": "a value of for_each"}
_FOR_EACH = {
    "description": "one query for each row: an inline list, or a CSV file beside this one",
    "anyOf": [
        {"type": "array", "items": {"type": "object"}, "minItems": 1},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ],
}
_WEIGHTS = {"type": "object", "additionalProperties": {"anyOf": [{"type": "number"}, _TEMPLATED]}, "minProperties": 1}


def json_schema() -> dict[str, Any]:
    """The schema of a query file."""
    schema = QuerySet.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    for name in ("TopK", "Threshold"):
        definition = definitions[name]
        definition["properties"]["for_each"] = _FOR_EACH
        for field, part in list(definition["properties"].items()):
            definition["properties"][field] = _templated(part)
    definitions["Threshold"]["required"].append("kind")
    window = definitions["Window"]
    window["properties"]["tumbling"] = window["properties"]["slide"]
    definitions["Window"] = {"anyOf": [{"const": "landmark"}, window]}
    definitions["IdColumn"] = {"anyOf": [{"type": "string"}, definitions["IdColumn"]]}
    definitions["Keep"] = {"anyOf": [{"type": ["string", "number"]}, definitions["Keep"]]}
    definitions["Distance"]["properties"]["distance"] = {
        "anyOf": [_WEIGHTS, definitions["Distance"]["properties"]["distance"]]
    }
    stream = definitions["Stream"]["properties"]
    names = {"type": "array", "items": {"type": "string"}}
    stream["attributes"] = {"anyOf": [names, stream["attributes"]]}
    stream["columns"] = {"anyOf": [names, stream["columns"]]}
    attribute = definitions["Attribute"]
    definitions["Attribute"] = {"anyOf": [{"type": "null"}, attribute]}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "skymesh query file"
    schema["required"] = ["version", "streams", "queries"]
    return schema


def _templated(part: dict[str, Any]) -> dict[str, Any]:
    """A number may also be a value of for_each."""
    kinds = str(part.get("type", "")) + str([choice.get("type", "") for choice in part.get("anyOf", [])])
    if "integer" not in kinds and "number" not in kinds:
        return part
    kept: dict[str, Any] = {key: part[key] for key in ("description", "default", "title") if key in part}
    return {**kept, "anyOf": [{k: v for k, v in part.items() if k not in kept}, _TEMPLATED]}
