"""The types of the command's results are those of their schemas."""

import dataclasses
import importlib.util
import json
import os
import sys
import tempfile
import types
import typing
import unittest
from pathlib import Path

import numpy as np
from normscope import results

SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
SCHEMAS = {path.name[:-len(".schema.json")]: json.loads(path.read_text())
           for path in (SOURCE / "docs/schemas").glob("*.schema.json")}
spec = importlib.util.spec_from_file_location("make_results", SOURCE / "python/make_results.py")
make_results = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_results)


def made(schema, name="thing"):
    """The module of one schema, executed."""
    module = types.ModuleType("normscope.made")
    sys.modules[module.__name__] = module
    module.__package__ = "normscope"
    exec(make_results.module_of({name: schema}), vars(module))
    return vars(module)


def json_names(made_class, names):
    return {made_class._json_names.get(name, name) for name in names}


def thing(properties, *required, **more):
    return {"type": "object", "properties": {"schema": {"const": "thing/1"}, **properties},
            "required": ["schema", *required], **more}


class Types(unittest.TestCase):
    def test_every_document_has_the_fields_of_its_schema(self):
        self.assertEqual(len(SCHEMAS), len(list((SOURCE / "docs/schemas").glob("*.json"))))
        for name, schema in SCHEMAS.items():
            objects = {"": schema, **schema.get("$defs", {})}
            for definition, value in objects.items():
                if "properties" not in value:
                    continue
                made_class = getattr(results, make_results.pascal(name) + make_results.pascal(definition))
                self.assertEqual(json_names(made_class, made_class._required), set(value.get("required", [])), made_class)
                self.assertEqual(json_names(made_class, [field.name for field in dataclasses.fields(made_class)]),
                                 set(value["properties"]), made_class)

    def test_every_schema_that_a_document_names_has_its_class(self):
        tags = {schema["properties"]["schema"]["const"]: make_results.pascal(name)
                for name, schema in SCHEMAS.items() if "const" in schema.get("properties", {}).get("schema", {})}
        self.assertEqual({tag: made_class.__name__ for tag, made_class in results.SCHEMAS.items()}, tags)

    def test_every_type_can_be_evaluated(self):
        for made_class in vars(results).values():
            if isinstance(made_class, type) and made_class.__module__ == results.__name__:
                typing.get_type_hints(made_class)

    def test_values_have_their_types(self):
        module = made(thing({"in": {"type": "integer"}, "b": {"type": ["number", "null"]},
                             "c": {"type": "array", "items": {"$ref": "#/$defs/part"}},
                             "d": {"type": "object", "additionalProperties": {"type": "string"}}}, "in",
                            **{"$defs": {"part": {"type": "object", "properties": {"x": {"enum": ["p", None]}},
                                                  "required": ["x"]}}}))
        hints = typing.get_type_hints(module["Thing"])
        self.assertEqual(hints["in_"], int)
        self.assertEqual(hints["c"], typing.Optional[typing.List[module["ThingPart"]]])
        self.assertEqual(hints["d"], typing.Optional[typing.Dict[str, str]])
        self.assertEqual(module["Thing"]._required, {"schema", "in_"})
        self.assertEqual(hints["b"], typing.Optional[float])
        document = {"schema": "thing/1", "in": 3, "c": [{"x": "p"}, {"x": None}], "b": None}
        result = module["parse"](document)
        self.assertEqual((result.in_, result["in"], result.c[1].x, result.d), (3, 3, None, None))
        self.assertEqual(result.to_dict(), document)
        self.assertEqual(repr(result), "Thing(schema='thing/1', in_=3, c=[2 ThingPart])")
        self.assertIn(">p</td>", result._repr_html_())
        with self.assertRaises(KeyError):
            result["absent"]
        self.assertEqual(typing.get_type_hints(module["ThingPart"])["x"], typing.Literal["p", None])

    def test_numbers_are_arrays(self):
        numbers = {"type": "array", "items": {"type": ["number", "null"]}}
        module = made(thing({"a": numbers, "rows": {"type": "array", "items": numbers}, "name": {"type": "string"},
                             "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}}},
                            **{"$defs": {"part": {"type": "object", "properties": {"x": {"type": "integer"}},
                                                  "required": ["x"]}}}))
        result = module["parse"]({"schema": "thing/1", "a": [1.5, None], "rows": [[1, 2], [3, 4]], "name": "n",
                                  "parts": [{"x": 3}, {"x": 5}]})
        np.testing.assert_array_equal(result.to_numpy("a"), [1.5, np.nan])
        np.testing.assert_array_equal(result.to_numpy("rows"), [[1, 2], [3, 4]])
        self.assertEqual(result.to_numpy("parts.x").tolist(), [3, 5])
        ragged = module["parse"]({"schema": "thing/1", "rows": [[1], [3, 4]]})
        for refused, message in ((lambda: result.to_numpy("b"), "Thing has no field 'b'"),
                                 (lambda: result.to_numpy("parts.y"), "Thing has no field 'parts.y'"),
                                 (lambda: result.to_numpy("name"), "name holds <U1, expected numbers"),
                                 (lambda: ragged.to_numpy("rows"), "rows has rows of different lengths")):
            with self.assertRaisesRegex(ValueError, f"^to_numpy: {message}$"):
                refused()

    def test_what_has_no_type_is_named(self):
        for schema, message in ((thing({"a": {"allOf": []}}), 'thing.schema.json: the keyword "allOf" has no type yet'),
                                (thing({}, "a"), 'thing.schema.json: "a" is required and not among the properties'),
                                (thing({"a": {"$ref": "other.json"}}),
                                 'thing.schema.json: "other.json" is not one of its own definitions')):
            with self.assertRaises(ValueError) as caught:
                make_results.module_of({"thing": schema})
            self.assertEqual(str(caught.exception), message)


class Reader(unittest.TestCase):
    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "result.json"
            path.write_text(text)
            return results.read(path)

    def test_documents_are_read(self):
        document = {"schema": "normscope.apply/1", "version": "1.2.3", "output": "y.npy", "dtype": "float32", "rows": 3,
                    "width": 4, "source": None}
        self.assertEqual(self.read(json.dumps(document)).to_dict(), document)
        with self.assertRaisesRegex(ValueError, "not as normscope.apply/1 says"):
            self.read('{"schema": "normscope.apply/1"}')

    def test_other_files_are_refused_in_one_line(self):
        for text, message in (("[", "expected a JSON document"), ("[]", "the schema is None, expected one of"),
                              ('{"schema": ["x"]}', "the schema is ['x'], expected one of"),
                              ('{"schema": "normscope.apply/9"}', "normscope.apply/9', expected one of")):
            with self.assertRaises(ValueError) as caught:
                self.read(text)
            self.assertIn(message, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
