#!/usr/bin/env python3
"""Holds the JSON Schema against the loader: every case of its tests that a schema can judge is judged
the same. The argument is the program that prints the schema and the cases.

The part of draft-07 that the schema uses is evaluated here; a keyword beyond it is an error. Where
Debian's python3-jsonschema is installed, it is asked as well."""

import json
import re
import subprocess
import sys

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: (isinstance(v, int) and not isinstance(v, bool))
    or (isinstance(v, float) and v.is_integer()),
}
NUMBER = TYPES["number"]


def same(a, b):
    return isinstance(a, bool) == isinstance(b, bool) and a == b


class Validator:
    def __init__(self, schema):
        self.root = schema

    def fits(self, value, schema):
        return all(self.holds(key, limit, value, schema) for key, limit in schema.items())

    def holds(self, key, limit, value, schema):
        if key == "type":
            return any(TYPES[t](value) for t in (limit if isinstance(limit, list) else [limit]))
        if key == "const":
            return same(value, limit)
        if key == "enum":
            return any(same(value, one) for one in limit)
        if key == "$ref":
            return self.fits(value, self.root["definitions"][limit.rsplit("/", 1)[1]])
        if key == "anyOf":
            return any(self.fits(value, one) for one in limit)
        if key == "oneOf":
            return sum(self.fits(value, one) for one in limit) == 1
        if key == "allOf":
            return all(self.fits(value, one) for one in limit)
        if key == "if":
            return not self.fits(value, limit) or self.fits(value, schema["then"])
        if key == "pattern":
            return not isinstance(value, str) or re.search(limit, value) is not None
        if key == "minLength":
            return not isinstance(value, str) or len(value) >= limit
        if key == "minimum":
            return not NUMBER(value) or value >= limit
        if key == "maximum":
            return not NUMBER(value) or value <= limit
        if key == "items":
            return not isinstance(value, list) or all(self.fits(one, limit) for one in value)
        if key == "minItems":
            return not isinstance(value, list) or len(value) >= limit
        if key in ("$schema", "title", "description", "definitions", "then"):
            return True
        return not isinstance(value, dict) or self.object_holds(key, limit, value, schema)

    def object_holds(self, key, limit, value, schema):
        if key == "required":
            return all(name in value for name in limit)
        if key == "minProperties":
            return len(value) >= limit
        if key == "propertyNames":
            return all(self.fits(name, limit) for name in value)
        if key == "properties":
            return all(self.fits(value[name], one) for name, one in limit.items() if name in value)
        if key == "additionalProperties":
            others = [value[name] for name in value if name not in schema.get("properties", {})]
            return not others if limit is False else all(self.fits(one, limit) for one in others)
        raise SystemExit(f"the schema uses {key}, which this test does not know")


def debian_jsonschema(schema):
    """A judge, or None where the package is not installed."""
    query = ["dpkg-query", "-W", "-f", "${Status}", "python3-jsonschema"]
    try:
        installed = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        installed = ""
    if "install ok installed" not in installed:
        print("python3-jsonschema is not installed: only our own evaluation is used")
        return None
    import jsonschema  # pylint: disable=import-outside-toplevel

    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema).is_valid


def main():
    output = subprocess.run(sys.argv[1:2], capture_output=True, check=True).stdout
    schema_line, *lines = output.decode().splitlines()
    schema = json.loads(schema_line)
    ours = Validator(schema)
    judges = {"our evaluation": lambda value: ours.fits(value, schema)}
    if (theirs := debian_jsonschema(schema)) is not None:
        judges["jsonschema"] = theirs
    wrong = 0
    for line in lines:
        verdict, text = line.split(" ", 1)
        for name, judge in judges.items():
            if judge(json.loads(text)) != (verdict == "good"):
                wrong += 1
                print(f"{name} does not find this {verdict}: {text}")
    print(f"{len(lines)} cases, {wrong} judged otherwise than the loader judges them")
    return 1 if wrong or len(lines) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
