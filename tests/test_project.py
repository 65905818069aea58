"""Rules of the project that no linter knows."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skymesh

ROOT = Path(__file__).parents[1]
MODULES = sorted(module.name for module in pkgutil.walk_packages(skymesh.__path__, "skymesh."))


def sources() -> list[Path]:
    return sorted((ROOT / "skymesh").rglob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_every_module_opens_with_what_it_is_for_and_its_examples_hold(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no opening lines"
    assert doctest.testmod(module).failed == 0


def test_examples_of_the_package_hold():
    assert doctest.testmod(importlib.import_module("skymesh.actors.engine")).attempted > 0


def test_kernels_live_in_kernel_modules():
    for path in sources():
        if re.search(r"^from .*\bkernel import kernel$", path.read_text(), re.MULTILINE):
            assert path.name.endswith("_kernels.py"), f"{path} defines kernels"


def test_warming_leaves_nothing_to_compile():
    """What `make setup` compiles is all that a run needs: a second process finds every kernel in the cache."""
    code = """
import sys
from numba.core.dispatcher import Dispatcher
from skymesh.cluster.warm import warm
warm()
import numpy as np, pyarrow as pa, skymesh as sm
kept = {'time': '9us', 'count': 9}
declared = sm.Stream(id='id', time='t', attributes=['x'], columns=['c'], keep=kept, lateness='2us')
asked = {'stream': 's', 'k': 3, 'score': 'x', 'where': "c != 'b'"}
queries = [sm.TopK(name=f'{i} {p} {a}', window=w, per_id=p, algorithm=a, group_by=g, **asked)
           for i, (w, g) in enumerate([({'count': 9}, None), ({'time': '9us'}, 'c'), ({'tumbling': '5us'}, None)])
           for p, a in (('all', 'sa'), ('latest', 'scan'), ('best', 'scan'))]
table = pa.table({'id': np.arange(40) % 7, 't': pa.array(np.arange(40), pa.timestamp('us')), 'x': np.arange(40.0),
                  'c': ['a', 'b'] * 20})
for data in (table, table.to_batches()[0], table.to_pandas(), table.to_pydict()):
    engine = sm.Engine(sm.QuerySet(streams={'s': declared}, queries=queries))
    engine.push('s', data, now=10**15)
    engine.add(sm.TopK(name='late', window={'time': '5us', 'slide': '1us'}, start='window', **asked))
    engine.push('s', data, now=10**15)
    engine.flush()
modules = [module for name, module in sys.modules.items() if name.startswith('skymesh')]
kernels = {id(k): k for module in modules for k in vars(module).values() if isinstance(k, Dispatcher)}
print(len(kernels), [k.__name__ for k in kernels.values() if k.stats.cache_misses])
"""
    subprocess.run([sys.executable, "-m", "skymesh.cluster.warm"], check=True, capture_output=True)
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    count, missed = found.split(maxsplit=1)
    assert int(count) > 50
    assert missed.strip() == "[]"


def test_the_project_stands_alone():
    """No path of one machine, no registry's address, nothing outside the checkout."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    forbidden = re.compile(r"\.\./shared|/work/|/root/|pypi\.org|files\.pythonhosted|--index-url|--find-links")
    for name in listed:
        path = ROOT / name
        if (
            path.suffix in (".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".json", "")
            and name != "tests/test_project.py"
        ):
            found = forbidden.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{name} names {found[0] if found else ''}"
