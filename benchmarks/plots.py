"""The pictures of docs/plots/ from the last sweep: `python -m benchmarks.plots` after `python -m benchmarks.sweep`.

Cost, space and rows held, each against every axis of the sweep. The same sweep gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from benchmarks.mouratidis_data import Setting
from benchmarks.sweep import AXES, BASE, FILE

mpl.use("svg")
mpl.rcParams.update(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "skymesh",
        "font.family": "sans-serif",
        "font.size": 8.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#888888",
        "axes.titlelocation": "left",
        "axes.titlesize": 9.5,
        "xtick.color": "#444444",
        "ytick.color": "#444444",
        "grid.color": "#e4e4e4",
        "grid.linewidth": 0.6,
    }
)

# Colours that are told apart with any colour vision; markers for print.
STYLES: dict[str, tuple[str, str]] = {
    "NumPy plain": ("#999999", "v"),
    "NumPy grouped": ("#444444", "^"),
    "tsl": ("#d55e00", "s"),
    "tma": ("#0072b2", "o"),
    "sma": ("#009e73", "D"),
}
TITLES = {
    "d": "attributes, d",
    "N": "window, N (r = N / 100)",
    "r": "arrivals a cycle, r",
    "Q": "queries, Q",
    "k": "rows shown, k",
    "intervals": "grid intervals an axis",
}
_LOG_AXES = ("r", "Q", "k")
_OTHER_STYLE = ("#cc79a7", "x")
_LABEL_GAP = 9.5  # points between the labels of two lines


@dataclass(frozen=True, slots=True)
class Picture:
    """One file: a figure of the sweep against all its axes."""

    file: str
    field: str
    title: str
    data: str = "ind"


PICTURES = (
    Picture("cost-ind", "ms", "Milliseconds a cycle, independent data"),
    Picture("cost-ant", "ms", "Milliseconds a cycle, anti-correlated data", "ant"),
    Picture("space-per-query", "bytes_per_query", "Bytes a query, independent data"),
    Picture("rows-held", "kept", "Rows held a query, independent data"),
    Picture("rows-held-ant", "kept", "Rows held a query, anti-correlated data", "ant"),
    Picture("memory", "megabytes", "Memory in MB, window and queries, independent data"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots", description="Draws the last sweep.")
    parser.add_argument("--sweep", type=Path, default=FILE, help="what the sweep wrote")
    parser.add_argument("--out", type=Path, default=Path("docs/plots"), help="where the pictures go")
    asked = parser.parse_args()
    if not asked.sweep.is_file():
        sys.exit(f"there is no {asked.sweep}; run `python -m benchmarks.sweep` (or `make sweep`) first")
    sweep = json.loads(asked.sweep.read_text())
    asked.out.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        rows = [row for row in sweep["rows"] if row["data"] == picture.data]
        if not rows:
            continue  # the sweep was over some of the axes only
        path = asked.out / f"{picture.file}.svg"
        figure = _drawn(picture, rows, _caption(sweep))
        figure.savefig(path, metadata={"Date": None})
        print(path)


def _caption(sweep: dict[str, Any]) -> str:
    base = Setting(**sweep["base"])
    machine = sweep["machine"]
    scale = "" if base.window == BASE.window else f": N and r are the paper's / {BASE.window // base.window}"
    return (
        f"One axis varied at a time; else d = {base.dimensions}, N = {base.window:,}, r = {base.arrivals:,}, "
        f"Q = {base.queries:,}, k = {base.k}, {base.score} scores{scale}. "
        f"Medians of {sweep['cycles']} cycles, one core, {machine['processor']}, commit {machine['commit']}."
    )


def _drawn(picture: Picture, rows: list[dict[str, Any]], caption: str) -> Figure:
    axes = [axis.name for axis in AXES if any(row["axis"] == axis.name for row in rows)]
    lines = -(-len(axes) // 3)
    columns = min(3, len(axes))
    figure = Figure(figsize=(3.6 * columns, 2.6 * lines + 0.8), layout="constrained")
    figure.suptitle(picture.title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for panel, axis in zip(panels, axes, strict=False):
        _draw_panel(panel, axis, picture.field, [row for row in rows if row["axis"] == axis])
    for panel in panels[len(axes) :]:
        panel.set_axis_off()
    told = caption if columns > 2 else caption.replace(". Medians", ".\nMedians")
    figure.supxlabel(told, x=0.01, ha="left", fontsize=7)
    figure.draw_without_rendering()  # labels stand where the layout has put the lines
    for panel in panels[: len(axes)]:
        _label_lines(panel)
    return figure


def _draw_panel(panel: Axes, axis: str, field: str, rows: list[dict[str, Any]]) -> None:
    values = sorted({row["value"] for row in rows})
    for name in _names(rows):
        color, marker = STYLES.get(name, _OTHER_STYLE)
        points = sorted((row["value"], row[field]) for row in rows if row["who"] == name and row[field] > 0)
        panel.plot(*zip(*points, strict=True), color=color, marker=marker, markersize=3.5, linewidth=1.4, label=name)
    panel.set_title(TITLES[axis])
    panel.set_yscale("log")
    if axis in _LOG_AXES:
        panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(_short))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticks(values, [_short(value) for value in values])
    panel.yaxis.set_major_formatter(FuncFormatter(_short))
    panel.yaxis.set_minor_locator(NullLocator())  # half the size of the file
    low, high = panel.get_ylim()
    if high / low < 10:  # a log scale needs two labelled values to be read
        panel.set_ylim(low / 2, high * 2)
    if high / low < 100:
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panel.grid(visible=True)
    panel.set_axisbelow(True)


def _names(rows: list[dict[str, Any]]) -> list[str]:
    found = {row["who"] for row in rows}
    return [name for name in STYLES if name in found] + sorted(found - set(STYLES))


def _label_lines(panel: Axes) -> None:
    """Each line's name at its right end, moved apart where lines end close together."""
    ends = [(panel.transData.transform(line.get_xydata()[-1]), line) for line in panel.get_lines()]
    ends.sort(key=lambda end: end[0][1])
    scale = 72 / panel.figure.dpi
    wanted = [float(position[1]) * scale for position, _ in ends]
    for (_, line), before, after in zip(ends, wanted, _spread(wanted, _LABEL_GAP), strict=True):
        panel.annotate(
            _shown(line.get_label()),
            line.get_xydata()[-1],
            xytext=(6, after - before),
            textcoords="offset points",
            color=line.get_color(),
            fontsize=7.5,
            va="center",
            annotation_clip=False,
        )


def _shown(name: object) -> str:
    text = str(name)
    return text if text.startswith("NumPy") else text.upper()


def _spread(places: Sequence[float], gap: float) -> list[float]:
    """Rising places, each at least a gap above the one before, and close to where they were."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + gap) if found else place)
    shift = sum(after - before for before, after in zip(places, found, strict=True)) / max(1, len(found))
    return [place - shift for place in found]


def _short(value: float, _: object = None) -> str:
    for size, unit in ((1e6, "M"), (1e3, "K")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


if __name__ == "__main__":
    main()
