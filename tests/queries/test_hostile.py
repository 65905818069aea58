"""Files made to do harm are refused, each in under a second."""

from __future__ import annotations

import os
import time

import pytest

import skymesh as sm

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)
STREAM = "version: 1\nstreams: {s: {id: i, attributes: [x]}}\nqueries:\n"


def template(file: str) -> str:
    return (
        STREAM
        + f"  - {{name: 'q${{a}}', stream: s, for_each: {{file: {file}}}, k: 1, score: x, window: {{count: 9}}}}\n"
    )


HOSTILE = {
    "an alias bomb": (BOMB, "is an alias"),
    "depth in brackets": ("[" * 5000 + "]" * 5000, "nests deeper"),
    "depth in braces": ("{a: " * 5000 + "1" + "}" * 5000, "nests deeper"),
    "depth in blocks": ("".join(" " * i + "a:\n" for i in range(5000)), "nests deeper"),
    "code in a tag": ("!!python/object/apply:os.system ['true']", "is a tag|a query file is a mapping"),
    "code in a query": (STREAM + "  - {name: !!python/name:os.system q, stream: s}\n", "is a tag"),
    "a path upwards": (template("../../etc/passwd"), "outside the directory"),
    "an absolute path": (template("/etc/passwd"), "outside the directory"),
    "a device": (template("/dev/zero"), "outside the directory"),
    "a deep expression": (
        STREAM + f"  - {{name: q, stream: s, k: 1, score: '{'(' * 4000}x{')' * 4000}', window: {{count: 9}}}}\n",
        "cannot be read",
    ),
    "a long expression": (
        STREAM + f"  - {{name: q, stream: s, k: 1, score: '{'x+' * 10**5}x', window: {{count: 9}}}}\n",
        "at most 10,000",
    ),
    "a power tower": (
        STREAM + "  - {name: q, stream: s, k: 9**9**9**9, score: x, window: {count: 9}}\n",
        "is not a count",
    ),
    "a number of a million digits": (
        STREAM + f"  - {{name: q, stream: s, k: {'9' * 10**6}, score: x, window: {{count: 9}}}}\n",
        "is not a count",
    ),
    "a duration of a million digits": (
        STREAM + f"  - {{name: q, stream: s, k: 1, score: x, window: {{time: {'9' * 10**6}h}}}}\n",
        "is not a duration",
    ),
    "merge keys": (STREAM + "  - {<<: {name: q}, stream: s, k: 1, score: x, window: {count: 9}}\n", "unknown key '<<'"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_at_once(tmp_path, name):
    content, expected = HOSTILE[name]
    path = tmp_path / "f.yaml"
    path.write_text(content)
    began = time.perf_counter()
    with pytest.raises(sm.QueryFileError, match=expected) as error:
        sm.load(path)
    assert time.perf_counter() - began < 1.0
    assert max(len(str(problem)) for problem in error.value.problems) < 1_500


def test_a_hundred_megabytes_are_refused_at_once(tmp_path):
    path = tmp_path / "f.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    began = time.perf_counter()
    with pytest.raises(sm.QueryFileError, match="larger than 16 MiB"):
        sm.load(path)
    assert time.perf_counter() - began < 1.0


def test_a_link_out_of_the_directory_is_not_followed(tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (tmp_path / "queries").mkdir()
    os.symlink(tmp_path / "secret.csv", tmp_path / "queries" / "rows.csv")
    path = tmp_path / "queries" / "f.yaml"
    path.write_text(template("rows.csv"))
    with pytest.raises(sm.QueryFileError, match="outside the directory"):
        sm.load(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    path = tmp_path / "f.yaml"
    path.write_text(template("rows.csv"))
    with pytest.raises(sm.QueryFileError, match="no such file beside"):
        sm.load(path)
