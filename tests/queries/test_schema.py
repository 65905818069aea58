"""The JSON Schema of query files: current, and right about the examples."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from skymesh.queries.schema import json_schema
from skymesh.queries.yaml_reader import read_yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "configs" / "queries").glob("*.yaml"))


def test_the_schema_file_is_what_the_command_prints():
    assert json.loads((ROOT / "configs" / "skymesh.schema.json").read_text()) == json_schema()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_follow_the_schema_and_name_it(path):
    text = path.read_text()
    assert text.startswith("# yaml-language-server: $schema=../skymesh.schema.json\n")
    data, mistakes = read_yaml(text)
    assert not mistakes
    jsonschema.validate(data, json_schema())


@pytest.mark.parametrize(
    "query",
    [
        {"name": "q", "stream": "s", "score": "x", "window": {"count": 9}},
        {"name": "q", "stream": "s", "k": 1, "score": "x", "window": {"cuont": 9}},
        {"name": "q", "stream": "s", "k": 1, "score": "x", "window": {"count": 9}, "emit": "some"},
        {"name": "q", "stream": "s", "k": 1, "score": 7, "window": {"count": 9}},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(query):
    data = {"version": 1, "streams": {"s": {"id": "i", "attributes": ["x"]}}, "queries": [query]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema())
