"""Query files: everything that is wrong at once, with lines; templates; the same models as in Python."""

from __future__ import annotations

import pickle
import re
import textwrap
from pathlib import Path

import pytest
from pydantic import ValidationError

import skymesh as sm
from skymesh.queries.loader import loads

HEAD = """
version: 1
streams:
  s:
    id: id
    time: t
    attributes: {x: {domain: [0, 1]}, y: {}}
    columns: [venue]
queries:
"""
GOOD = "  - {name: q, stream: s, k: 3, score: x + y, window: {count: 100, slide: 10}}\n"


def problems_of(text: str, name: str = "f.yaml") -> list[str]:
    with pytest.raises(sm.QueryFileError) as caught:
        loads(text, name)
    return str(caught.value).splitlines()


def only_problem(queries: str) -> str:
    [problem] = problems_of(HEAD + textwrap.indent(textwrap.dedent(queries).strip(), "  ") + "\n")
    return problem


def test_yaml_and_python_give_the_same_models():
    from_file = loads(
        HEAD + "  - {name: q, stream: s, k: 1e1, score: x, window: {time: 1h30m, slide: 10m}, where: {x: [0, 1]}}\n"
    )
    in_python = sm.QuerySet(
        streams={
            "s": sm.Stream(id="id", time="t", attributes={"x": {"domain": [0, 1]}, "y": {}}, columns=["venue"]),
        },
        queries=[
            sm.TopK(
                name="q", stream="s", k=10, score="x", window={"time": "1h30m", "slide": "10m"}, where={"x": [0, 1]}
            )
        ],
    )
    assert from_file == in_python
    assert sm.QuerySet.model_validate_json(in_python.model_dump_json(by_alias=True)) == in_python


def test_models_are_frozen():
    query_set = loads(HEAD + GOOD)
    with pytest.raises(ValidationError):
        query_set.queries[0].k = 5


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("- {name: q, stream: s, k: 0, score: x, window: {count: 9}}", r"queries\[0\]\.k: is 0; .* set k to 1 or more"),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9, slide: 10}}",
            r"slide: \(10\) is longer than the window \(9\)",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9, slide: 1m}}",
            r"slide: is 1m, but the window is counted in rows",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {time: 9m, slide: 3}}",
            r"slide: is 3, but the window is counted in time",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9, time: 1m}}",
            r"has count and time; give exactly one",
        ),
        ("- {name: q, stream: s, k: 2, score: x, window: {slide: 3}}", r"has no size; give exactly one"),
        ("- {name: q, stream: s, k: 2, score: x, window: {count: 0}}", r"count: is 0; a window of nothing"),
        ("- {name: q, stream: s, k: 2, score: x, window: {count: 9, slide: 0}}", r"slide: is 0; leave it out"),
        ("- {name: q, stream: s, k: 2, score: x, window: {count: 9, offset: 0}}", r"offset: is 0"),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {time: 9m, offset: 1m}}",
            r"offset: shifts the points of a slide",
        ),
        ("- {name: q, stream: s, k: 2, score: x, window: {time: 10}}", r"window\.time: 10 is not a duration"),
        ("- {name: q, stream: s, k: 2, score: x, window: daily}", r"'daily' is not a window"),
        (
            "- {name: q, stream: s, k: 2, score: x + q, window: {count: 9}}",
            r"score: q is no attribute of the stream; it has x, y",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, emitt: x}",
            r"emitt: unknown key 'emitt'; did you mean 'emit'\?",
        ),
        ("- {name: q, stream: t, k: 2, score: x, window: {count: 9}}", r"stream: there is no stream 't'; there are s"),
        ("- {name: q, kind: topk2, stream: s}", r"kind: 'topk2' is no kind of query; there are topk, threshold"),
        ("- {name: q, kind: join, stream: s}", r"kind: 'join' is no kind of query; there are topk, threshold"),
        (
            "- {name: q, kind: threshold, stream: s, score: x, window: {count: 9}}",
            r"give exactly one of above and below",
        ),
        ("- {name: q, stream: s, k: 2, score: {linear: {}}, window: {count: 9}}", r"score\.linear: is empty"),
        ("- {name: q, stream: s, k: 2, score: {linar: {x: 1}}, window: {count: 9}}", r"score: is not a score"),
        ("- {name: q, stream: s, k: 2, score: {distance: {x: one}}, window: {count: 9}}", r"'one' is not a number"),
        (
            "- {name: q, stream: s, k: 2, score: {distance: {to: {x: 1}, weights: {y: 1}}}, window: {count: 9}}",
            r"does not name",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, carry: [rank]}",
            r"carry: rank is a column of every result",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, carry: [venu]}",
            r"venu is no attribute or column.*did you mean venue",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, group_by: x}",
            r"x is no column of the stream \(an attribute cannot group",
        ),
        ("- {name: q, stream: s, k: 2, score: x, window: {time: 9m}, emit: snapshot}", r"emit: snapshot needs a slide"),
        (
            "- {name: q, stream: s, k: 2, score: x, window: landmark, per_id: latest}",
            r"per_id: latest needs a window that forgets",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, active: {from: 5, until: 5}}",
            r"active: ends \(5\) before it begins",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, active: {until: 2026-01-01}}",
            r"until: is .*, but this window needs a row number",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, where: {x: [5, 1]}}",
            r"where\.x: \[5, 1\] holds nothing",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, where: {venue: [1]}}",
            r"where\.venue: 1 is not of the column's type, string",
        ),
        (
            "- {name: q, stream: s, k: 2, score: x, window: {count: 9}, where: {z: [1, 2]}}",
            r"where\.z: is no attribute or column",
        ),
        ("- {name: q, stream: s, k: 2, window: {count: 9}}", r"score is missing: what rows are ranked by"),
        ("- {name: q, stream: s, k: 2, score: x, window: {count: 9}, emit: chnges}", r"emit: is 'chnges'; it can be"),
        ("- 17", r"queries\[0\]: 17 is not a query"),
    ],
)
def test_a_mistake_is_told_with_place_value_reason_and_remedy(query, expected):
    problem = only_problem(query)
    assert re.match(r"f\.yaml:10: queries\[0\]", problem), problem
    assert re.search(expected, problem), problem


def test_mistakes_outside_queries_are_told_with_their_lines():
    text = textwrap.dedent("""\
        version: 2
        sterams: {}
        streams:
          a: {id: i, lateness: 5s, attributes: [x, x]}
          b: {id: {column: i, type: float}, attributes: {x: {domain: [3, 1]}}}
          c: {id: i, attributes: {x: {}}, columns: {x: string, y: text}}
          d: {id: i, lateness: 5s, attributes: [x]}
          e: {id: i, attributes: {v: {}}}
          f: {id: i, attributes: [x], columns: {v: int64}}
        queries: []
        """)
    found = problems_of(text)
    for expected in (
        r"f.yaml:1: version: is 2, but this skymesh reads version 1",
        r"f.yaml:2: sterams: unknown key 'sterams'; did you mean 'streams'\?",
        r"f.yaml:4: streams.a.attributes: 'x' stands twice",
        r"f.yaml:5: streams.b.id.type: is 'float'; it can be 'int64' or 'string'",
        r"f.yaml:5: streams.b.attributes.x.domain: \[3, 1\] has its ends the wrong way round",
        r"f.yaml:6: streams.c.columns.y: is 'text'; it can be",
        r"f.yaml:7: streams.d.lateness: has no meaning without an event time",
        r"f.yaml:9: streams.f.columns.v: is int64 here and float64 in stream e",
    ):
        assert any(re.match(expected, problem) for problem in found), (expected, found)


def test_one_broken_query_hides_no_other_mistake():
    text = HEAD + (
        "  - name: a\n    stream: nowhere\n    k: 0\n    scor: x\n    score: x +\n"
        "    window: {count: 10, slide: 20, slid: 1}\n    emit: some\n"
        "  - {name: b, stream: s, k: 1, score: z, window: {count: 5}}\n"
        "  - {name: b, stream: s, k: 1, score: x, window: {count: 5}}\n"
    )
    found = problems_of(text)
    for expected in (
        "no stream 'nowhere'",
        "k: is 0",
        "'scor'",
        "cannot be read",
        "'slid'",
        "longer than",
        "'some'",
        "z is no attribute",
        "'b' names an earlier",
    ):
        assert any(expected in problem for problem in found), (expected, found)
    assert len(found) == 9


def test_a_wrong_domain_hides_no_mistake_in_queries_over_its_stream():
    found = problems_of(
        "version: 1\nstreams:\n  s: {id: id, attributes: {x: {domain: [1, 0]}, y: {domain: wide}}}\nqueries:\n"
        "  - {name: a, stream: s, k: 1, score: x + y, window: {count: 5}}\n"
        "  - {name: b, stream: s, k: 1, score: z, window: {count: 5}}\n"
    )
    for expected, problem in zip(("x.domain: ", "y.domain: 'wide'", "z is no attribute"), found, strict=True):
        assert expected in problem


def test_lines_are_those_of_the_file():
    found = problems_of(
        HEAD + "  - name: a\n    stream: s\n    k: 1\n    score: x\n    window:\n      count: 10\n      slide: 50\n"
    )
    assert found == [
        "f.yaml:16: queries[0].window.slide: (50) is longer than the window (10), so rows in between would reach no "
        "window; set slide to 10 or less"
    ]


def test_duplicate_keys_anchors_aliases_and_tags_are_refused():
    found = problems_of(HEAD + "  - {name: &a q, stream: s, k: 2, k: 3, score: x, window: !w {count: 9}, emit: *a}\n")
    for expected in (
        "&a is an anchor",
        "'k' stands here a second time (first on line 10)",
        "!w is a tag",
        "*a is an alias",
    ):
        assert any(expected in problem for problem in found), (expected, found)


def test_plain_scalars_mean_what_they_look_like():
    query_set = loads(
        HEAD
        + "  - {name: NO, stream: s, k: 1_000, score: x, window: {count: 1e4}, where: {venue: [ON, '12', 12:30:00]}}\n"
    )
    [query] = query_set.queries
    assert (query.name, query.k, query.window.count) == ("NO", 1000, 10_000)
    assert query.where == {"venue": ["ON", "12", "12:30:00"]}


# -- templates -------------------------------------------------------------------------------------------------


def test_a_template_makes_a_query_for_each_row_of_a_list():
    query_set = loads(HEAD + (
        "  - name: near-${place}\n    stream: s\n    for_each: [{place: a, k: 2, x: 0.5}, {place: 7, k: 3, x: 1}]\n"
        "    k: ${k}\n    score: {distance: {x: '${x}'}}\n    where: {venue: ['${place}']}\n    window: {count: 9}\n"
    ))  # fmt: skip
    assert [(q.name, q.k, q.score.distance.to, q.where) for q in query_set.queries] == [
        ("near-a", 2, {"x": 0.5}, {"venue": ["a"]}),
        ("near-7", 3, {"x": 1.0}, {"venue": ["7"]}),
    ]


def write(directory: Path, csv: str, queries: str) -> Path:
    (directory / "rows.csv").write_text(csv)
    path = directory / "f.yaml"
    path.write_text(HEAD + queries)
    return path


TEMPLATE = (
    "  - {name: 'n-${name}', stream: s, for_each: {file: rows.csv}, k: '${k}', score: 'x * ${w}', window: {count: 9}}\n"
)


def test_a_template_reads_a_csv_file_beside_the_query_file(tmp_path):
    query_set = sm.load(write(tmp_path, "name,k,w\na,2,0.5\n07,1e1,-3\n", TEMPLATE))
    assert [(q.name, q.k, q.score) for q in query_set.queries] == [("n-a", 2, "x * 0.5"), ("n-07", 10, "x * -3")]


@pytest.mark.parametrize(
    ("csv", "expected"),
    [
        ("name,k,w\na,2\n", "rows.csv: line 2 has 2 cells, the header 3"),
        ("name,k\na,2\n", r"\$\{w\} is not among the values of for_each; there are name, k"),
        ("name,k,w\n", "rows.csv has no rows"),
        ("name,name,w\na,b,c\n", "has to name the columns, each once"),
        ("", "has to name the columns"),
        ("name,k,w\na,zero,1\nb,nil,1\nc,1,1\n", r"'zero' is not a count.*\(rows.csv line 2\), and 1 more rows"),
    ],
)
def test_mistakes_in_template_rows_are_told(tmp_path, csv, expected):
    with pytest.raises(sm.QueryFileError, match=expected):
        sm.load(write(tmp_path, csv, TEMPLATE))


def test_a_thousand_bad_template_rows_give_one_message(tmp_path):
    rows = "name,k,w\n" + "".join(f"r{i},0,1\n" for i in range(1000))
    with pytest.raises(sm.QueryFileError) as caught:
        sm.load(write(tmp_path, rows, TEMPLATE))
    assert len(caught.value.problems) == 1


def test_a_dollar_can_be_written():
    query_set = loads(
        HEAD + "  - {name: 'a$${b}', stream: s, for_each: [{c: 1}], k: 1, score: x, window: {count: 9}}\n"
    )
    assert query_set.queries[0].name == "a${b}"


# -- files that cannot be read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b"a: [", "this is not YAML"),
        (b"- 1\n- 2\n", "a query file is a mapping"),
        (b"", "a query file is a mapping"),
        (b"version: 1\n---\nversion: 1\n", "one document"),
        (b"version: 1\nstreams: {}\nqueries: []\n", "streams: has to be a mapping of stream names"),
        (b"version: 1\nstreams: {s: {id: i, attributes: [x]}}\n", "queries: has to be a list"),
        (b"a: b\x00c\n", "this is not YAML"),
        (b"? {a: b}\n: c\n", "is not a name"),
        (b"1: 2\n", "1 is not a name"),
    ],
)
def test_unreadable_files_are_refused_with_the_reason(tmp_path, content, expected):
    path = tmp_path / "f.yaml"
    path.write_bytes(content)
    with pytest.raises(sm.QueryFileError, match=expected):
        sm.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(sm.QueryFileError, match="there is no such file"):
        sm.load(tmp_path / "none.yaml")
    with pytest.raises(sm.QueryFileError, match="this is not a file"):
        sm.load(tmp_path)


def test_errors_survive_pickling():
    with pytest.raises(sm.QueryFileError) as caught:
        loads("version: 1\nstreams: {}\nqueries: []\n")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.problems == caught.value.problems


def test_python_models_tell_the_same(tmp_path):
    with pytest.raises(ValidationError, match="longer than the window"):
        sm.TopK(name="q", stream="s", k=1, score="x", window={"count": 5, "slide": 6})
    stream = sm.Stream(id="id", attributes=["x"])
    query = sm.TopK(name="q", stream="s", k=1, score="y", window={"count": 5})
    with pytest.raises(ValidationError, match=r"queries\.0\.score\n  y is no attribute"):
        sm.QuerySet(streams={"s": stream}, queries=[query])


def test_ten_thousand_queries_load_in_seconds():
    """Guards against work per expression that grows, such as compiling; the time itself is in benchmarks/."""
    lines = [
        f"  - {{name: q{i}, stream: s, k: 3, score: '{i} * x + log(y + {i})', window: {{count: 100}}}}\n"
        for i in range(10_000)
    ]
    assert len(loads(HEAD + "".join(lines)).queries) == 10_000
