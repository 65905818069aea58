"""`for_each`: one template, many queries.

The rows come from an inline list or from a CSV file beside the query file. `${name}` stands for a row's value; where
it is the whole scalar the value keeps its type, inside a longer text it is spliced in. `$${` is a literal `${`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .yaml_reader import YamlList, YamlMap, plain_scalar

ROWS_MAX = 1_000_000
FILE_BYTES_MAX = 64 * 2**20
_VARIABLE = re.compile(r"\$(\$\{)|\$\{\s*([^{}]*?)\s*\}")


class TemplateError(Exception):
    """A for_each that gives no rows, or names what they do not have."""


@dataclass(frozen=True, slots=True)
class TemplateRow:
    """Values by name, and how messages refer to the row."""

    values: Mapping[str, Any]
    label: str


def rows_of(for_each: Any, directory: Path | None) -> list[TemplateRow]:
    """The rows that a `for_each` asks for."""
    if isinstance(for_each, list):
        return _inline_rows(for_each)
    if isinstance(for_each, Mapping) and set(for_each) == {"file"} and isinstance(for_each["file"], str):
        return list(_csv_rows(for_each["file"], directory))
    raise TemplateError("write a list of mappings, like [{depot: a, x: 1}, ...], or {file: rows.csv}")


def _inline_rows(items: list[Any]) -> list[TemplateRow]:
    rows = []
    for number, item in enumerate(items, start=1):
        if not isinstance(item, Mapping):
            raise TemplateError(f"item {number} is {item!r}, not a mapping of names to values")
        for name, value in item.items():
            if isinstance(value, list | Mapping):
                raise TemplateError(f"item {number}: {name} is a list or mapping; values are texts and numbers")
        rows.append(TemplateRow(item, f"for_each item {number}"))
    if not rows:
        raise TemplateError("the list is empty, so the template gives no query; add an item or remove the query")
    return rows


def _csv_rows(name: str, directory: Path | None) -> Iterator[TemplateRow]:
    text = _read_beside(name, directory)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        if not header or "" in header or len(set(header)) != len(header):
            raise TemplateError(f"{name}: the first line has to name the columns, each once")
        count = 0
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise TemplateError(f"{name}: line {reader.line_num} has {len(cells)} cells, the header {len(header)}")
            count += 1
            if count > ROWS_MAX:
                raise TemplateError(f"{name} has more than {ROWS_MAX:,} rows; split it up")
            yield TemplateRow(dict(zip(header, cells, strict=True)), f"{name} line {reader.line_num}")
    except csv.Error as error:
        raise TemplateError(f"{name}: line {reader.line_num}: {error}") from None
    if count == 0:
        raise TemplateError(f"{name} has no rows, so the template gives no query")


def _read_beside(name: str, directory: Path | None) -> str:
    if directory is None:
        raise TemplateError(f"{name}: a file can be named only in a query file, since it is found relative to it")
    path = (directory / name).resolve()
    if not path.is_relative_to(directory.resolve()):
        raise TemplateError(f"{name} lies outside the directory of the query file; put it there or below")
    if not path.is_file():
        raise TemplateError(f"{name}: there is no such file beside the query file")
    if path.stat().st_size > FILE_BYTES_MAX:
        raise TemplateError(f"{name} is larger than {FILE_BYTES_MAX // 2**20} MiB; split it up")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TemplateError(f"{name} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise TemplateError(f"{name} cannot be read: {error.strerror}") from None


def fill(template: YamlMap, row: TemplateRow, text_columns: frozenset[str]) -> YamlMap:
    """The template with a row's values in place. Sets of `text_columns` and names stay texts, also `17`."""
    result = YamlMap(template.line)
    result.lines = template.lines
    for key, value in template.items():
        if key == "where" and isinstance(value, YamlMap):
            result[key] = _filled_where(value, row, text_columns)
        elif key != "for_each":
            result[key] = _filled(value, row, as_text=key == "name")
    return result


def _filled_where(where: YamlMap, row: TemplateRow, text_columns: frozenset[str]) -> YamlMap:
    result = YamlMap(where.line)
    result.lines = where.lines
    for name, values in where.items():
        result[name] = _filled(values, row, as_text=name in text_columns)
    return result


def _filled(value: Any, row: TemplateRow, *, as_text: bool) -> Any:
    if isinstance(value, str):
        return _filled_text(value, row, as_text=as_text)
    if isinstance(value, YamlMap):
        result = YamlMap(value.line)
        result.lines = value.lines
        result.update((key, _filled(part, row, as_text=as_text)) for key, part in value.items())
        return result
    if isinstance(value, YamlList):
        items = YamlList(value.line)
        items.lines = value.lines
        items.extend(_filled(part, row, as_text=as_text) for part in value)
        return items
    return value


def _filled_text(text: str, row: TemplateRow, *, as_text: bool) -> Any:
    if "$" not in text:
        return text
    whole = _VARIABLE.fullmatch(text)
    if whole and whole[2] is not None and not as_text:
        value = _value(whole[2], row)
        return plain_scalar(value) if isinstance(value, str) else value
    return _VARIABLE.sub(lambda match: match[1] or _spliced(_value(match[2], row)), text)


def _spliced(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _value(name: str, row: TemplateRow) -> Any:
    if name not in row.values:
        raise TemplateError(f"${{{name}}} is not among the values of for_each; there are {', '.join(row.values)}")
    return row.values[name]
