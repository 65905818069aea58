"""The documentation holds: its snippets run and print what it shows, its files load, its links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skymesh as sm

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
README = ROOT / "README.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block."""
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


def snippets() -> list[tuple[str, str, str | None]]:
    """Where a Python block stands, what it is, and the output that is shown right after it."""
    found = []
    for page in PAGES:
        parts = blocks(page)
        for number, (language, text) in enumerate(parts):
            if language == "python":
                shown = (
                    parts[number + 1][1] if parts[number + 1 : number + 2] and parts[number + 1][0] == "text" else None
                )
                found.append((f"{page.name} {number}", text, shown))
    return found


def query_files() -> list[tuple[str, str]]:
    return [
        (f"{page.name} {number}", text)
        for page in PAGES
        for number, (language, text) in enumerate(blocks(page))
        if language == "yaml"
    ]


@pytest.mark.parametrize(("place", "text", "shown"), snippets(), ids=lambda value: str(value)[:20])
def test_python_snippets_print_what_is_shown(place, text, shown):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, place, "exec"), {"__name__": "snippet"})
    assert shown is None or printed.getvalue() == shown


@pytest.mark.parametrize(("place", "text"), query_files(), ids=lambda value: str(value)[:20])
def test_query_files_load(place, text):
    assert sm.loads(text, place).queries


def test_the_readme_shows_a_snippet_with_its_output():
    assert [place for place, _, shown in snippets() if place.startswith("README") and shown]


def test_the_session_of_the_readme_goes_as_shown(tmp_path):
    """The commands of the README, one after the other in an empty directory."""
    parts = blocks(README)
    query_file = next(text for language, text in parts if language == "yaml")
    (tmp_path / "london.yaml").write_text(query_file)
    wrong = query_file.replace("k: 3", "k: 0").replace("* volume", "* volum").replace("carry:", "cary:")
    (tmp_path / "wrong.yaml").write_text(wrong)
    sessions = "".join(text for language, text in parts if language == "console")
    commands = re.findall(r"^\$ skymesh (.*)\n((?:(?!\$ ).*\n)*)", sessions, re.MULTILINE)
    assert len(commands) == sessions.count("$ ")
    for command, shown in commands:
        done = subprocess.run(
            [sys.executable, "-c", "from skymesh.cluster.cli import main; main()", *command.split()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout + done.stderr == shown, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in _LINK.findall(re.sub(_BLOCK, "", page.read_text(encoding="utf-8"))):
        if re.match(r"https?://", target):
            continue
        path, _, heading = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} is not there"
        if heading:
            assert heading in {anchor(line) for line in there.read_text(encoding="utf-8").splitlines()}, target


def anchor(line: str) -> str | None:
    """The name by which a link finds a heading."""
    if not line.startswith("#"):
        return None
    return re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_pages_are_there(name):
    assert (ROOT / name).read_text(encoding="utf-8").startswith("# ")
