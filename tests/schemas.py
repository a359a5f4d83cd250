"""As much of JSON Schema as those of traces use."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
}
_KNOWN = {
    *("$comment", "$schema", "title", "description", "type", "const", "enum", "minimum", "items"),
    *("required", "properties", "additionalProperties"),
}


def complaints(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """What in ``value`` does not fit the schema."""
    assert schema.keys() <= _KNOWN
    if "type" in schema:
        of_type = isinstance(value, _TYPES[schema["type"]]) and not isinstance(value, bool)
        if not of_type:
            return [f"{where} is no {schema['type']}"]
    found = []
    if "const" in schema and value != schema["const"]:
        found.append(f"{where} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where} is none of {schema['enum']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{where} is below {schema['minimum']}")
    for number, item in enumerate(value if "items" in schema else ()):
        found += complaints(item, schema["items"], f"{where}[{number}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where} has no {key}" for key in schema.get("required", ()) if key not in value]
        for key, part in value.items():
            if key in properties:
                found += complaints(part, properties[key], f"{where}.{key}")
            elif not schema.get("additionalProperties", True):
                found.append(f"{where} has {key}")
    return found
