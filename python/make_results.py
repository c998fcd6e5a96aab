#!/usr/bin/env python3
"""Makes the classes of the results: `make_results.py SCHEMAS FILE` writes a module with a dataclass for each object of
every SCHEMAS/<name>.schema.json. A file whose text stays the same is left alone."""

import json
import keyword
import re
import sys
import textwrap
from pathlib import Path

SUFFIX = ".schema.json"
PLAIN = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}
# Keywords that narrow values without changing their type, and those that are read below.
KNOWN = {"minimum", "maximum", "exclusiveMinimum", "pattern", "dependentRequired", "if", "then", "minItems", "maxItems",
         "$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "anyOf", "oneOf", "properties",
         "required", "additionalProperties", "items"}
# Names of Result's own.
RESERVED = {"from_json", "to_dict", "to_numpy", "to_pandas", "plot", "save"}
HEAD = '''"""Results of the core, as its functions return them and as the command writes them with --json.

Made by make_results.py from docs/schemas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from typing import Any, Dict, List, Literal, Optional, Union

from ._check import path, shown
from ._result import Result

'''
READER = '''

def parse(document: Any, name: str = "document") -> Document:
    """The result that a JSON document holds; `name` is what messages call it.

    Errors    ValueError for a document of no known schema
    """
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or schema not in SCHEMAS:
        raise ValueError(f"results: {name}: the schema is {schema!r}, expected one of {', '.join(sorted(SCHEMAS))}")
    try:
        return SCHEMAS[schema].from_json(document)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"results: {name}: not as {schema} says: {error}") from None


def loads(text: str) -> Any:
    """The result in a JSON text.

    Errors    TypeError for what is no text; ValueError for what is no document of a known schema
    """
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"results: {shown(text)} is no text")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ValueError(f"results: {error}, expected a JSON document") from None
    return parse(document)


def read(file: Union[str, PathLike[str]]) -> Document:
    """The result in `file`, which the command wrote with --json.

    Errors    OSError; ValueError for a file that holds no document of a known schema
    """
    with open(path("results", "file", file), encoding="utf-8") as opened:
        try:
            document = json.load(opened)
        except ValueError as error:
            raise ValueError(f"results: {file}: {error}, expected a JSON document") from None
    return parse(document, str(file))
'''


def pascal(name):
    """"select-table" and "score_or_null" as SelectTable and ScoreOrNull."""
    return re.sub(r"(?:^|[-_])([a-z])", lambda match: match.group(1).upper(), name)


def union(types):
    distinct = list(dict.fromkeys(types))
    return distinct[0] if len(distinct) == 1 else f"Union[{', '.join(distinct)}]"


class Module:
    def __init__(self):
        self.classes = {}

    def add(self, name, schema):
        """The class of one schema's documents, and those of its definitions."""
        document = pascal(name)
        for key, definition in schema.get("$defs", {}).items():
            self.type_of(definition, document + pascal(key), document, define=True)
        return self.type_of({k: v for k, v in schema.items() if k != "$defs"}, document, document, define=True)

    def type_of(self, schema, name, document, define=False):
        """The type of the values that `schema` allows; objects become classes called after `name`."""
        for word in schema:
            if word not in KNOWN:
                raise ValueError(f'the keyword "{word}" has no type yet')
        result = self.plain_type_of(schema, name, document)
        if define and result != f'"{name}"':
            self.write(name, f"{self.about(schema)}{name} = {result}\n")
        return name if define else result

    def plain_type_of(self, schema, name, document):
        if "$ref" in schema:
            target = re.fullmatch(r"#/\$defs/([\w-]+)", schema["$ref"])
            if target is None:
                raise ValueError(f'"{schema["$ref"]}" is not one of its own definitions')
            return f'"{document}{pascal(target.group(1))}"'
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
        choices = schema.get("anyOf", schema.get("oneOf"))
        # Choices beside properties say which of these come together.
        if choices is not None and "properties" not in schema:
            many = sum("properties" in choice for choice in choices) > 1
            return union(self.type_of(choice, f"{name}{i + 1 if many else ''}", document)
                         for i, choice in enumerate(choices))
        if "type" not in schema:
            return "Any"
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return union(self.one_type(kind, schema, name, document) for kind in kinds)

    def one_type(self, kind, schema, name, document):
        if kind == "array":
            return f"List[{self.type_of(schema['items'], name + 'Item', document) if 'items' in schema else 'Any'}]"
        if kind == "object":
            return self.object_type(schema, name, document)
        if kind not in PLAIN:
            raise ValueError(f'"{kind}" is not a type of JSON Schema')
        return PLAIN[kind]

    def object_type(self, schema, name, document):
        properties, required = schema.get("properties"), schema.get("required", [])
        if properties is None:
            values = schema.get("additionalProperties")
            return f"Dict[str, {self.type_of(values, name + 'Value', document) if isinstance(values, dict) else 'Any'}]"
        if missing := [key for key in required if key not in properties]:
            raise ValueError(f'"{missing[0]}" is required and not among the properties')
        fields = {key: (self.type_of(value, name + pascal(key), document), value.get("description"))
                  for key, value in properties.items()}
        self.write(name, self.class_of(name, schema, fields, frozenset(required)))
        return f'"{name}"'

    def class_of(self, name, schema, fields, required):
        """Required fields first, the others None where the document lacks them."""
        lines, odd = "", {}
        for key in sorted(fields, key=lambda key: key not in required):
            kind, description = fields[key]
            field = identifier(key)
            if field != key:
                odd[field] = key
            if description:
                lines += "".join(f"    #: {line}\n" for line in textwrap.wrap(description, 112))
            lines += f"    {field}: {kind if key in required else f'Optional[{kind}] = None'}\n"
        doc = self.about(schema, '    """', '"""')
        lines += f"\n    _required = frozenset({sorted(identifier(key) for key in required)!r})\n"
        if odd:
            lines += f"    _json_names = {odd!r}\n"
        return f"@dataclass(repr=False)\nclass {name}(Result):\n{doc}{lines}"

    @staticmethod
    def about(schema, start="", end=""):
        text = ". ".join(schema[key].rstrip(".") for key in ("title", "description") if key in schema)
        if not text:
            return ""
        if not end:
            return "".join(f"# {line}\n" for line in textwrap.wrap(text + ".", 116))
        return textwrap.fill(text.replace("\\", "\\\\") + "." + end, 118, initial_indent=start,
                             subsequent_indent="    ") + "\n"

    def write(self, name, text):
        if self.classes.setdefault(name, text) != text:
            raise ValueError(f"two of its types are called {name}")


def identifier(key):
    """The name of a field as one of Python: "in" as in_, "head-size" as head_size."""
    name = re.sub(r"\W", "_", key)
    return name + "_" if keyword.iskeyword(name) or name in RESERVED else name


def module_of(schemas):
    """The text of the module for {name: schema}."""
    module = Module()
    documents, named = [], {}
    for name, schema in sorted(schemas.items()):
        try:
            documents.append(module.add(name, schema))
            tag = schema.get("properties", {}).get("schema", {}).get("const")
        except ValueError as error:
            raise ValueError(f"{name}{SUFFIX}: {error}") from None
        if tag is not None:
            named[tag] = documents[-1]
    entries = "".join(f"    {tag!r}: {name},\n" for tag, name in sorted(named.items()))
    body = "\n\n".join(module.classes.values())
    union_of_documents = ", ".join(f'"{name}"' for name in dict.fromkeys(named.values()))
    return (f"{HEAD}\n{body}\n\n#: The class of each schema's documents.\nSCHEMAS = {{\n{entries}}}\n\n"
            f"Document = Union[{union_of_documents}]\n{READER}")


def main(folder, target):
    schemas = {path.name[:-len(SUFFIX)]: json.loads(path.read_text()) for path in Path(folder).glob("*" + SUFFIX)}
    text = module_of(schemas)
    path = Path(target)
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except ValueError as error:
        sys.exit(f"make_results: {error}")
