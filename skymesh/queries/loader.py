"""A query file into models, or into all of its mistakes at once.

Each stream and each query is checked by itself, then what is sound is checked together, so one broken query hides
no other. Every message gives file, line, place, value, reason and remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..errors import Problem, QueryFileError
from .checks import faults_of_set
from .fields import Location, Model
from .models import KINDS, MODEL_OF_KIND, Active, AnyQuery, QuerySet, unknown_kind
from .scores import DistanceTo
from .streams import Attribute, IdColumn, Keep, Stream
from .templates import TemplateError, TemplateRow, fill, rows_of
from .windows import Window
from .yaml_reader import BYTES_MAX, UnreadableYaml, YamlList, YamlMap, read_yaml

# Queries of a set that nobody serves: index and reason.
Refusals = Callable[[QuerySet], list[tuple[int, str]]]


def load(path: str | os.PathLike[str]) -> QuerySet:
    """The query set of a YAML file. Raises QueryFileError with everything that is wrong in it."""
    return load_served(path, lambda _: [])


def loads(text: str, name: str = "<text>") -> QuerySet:
    """The query set of a YAML text."""
    return _Reading(name, None, lambda _: []).read(text)


def load_served(path: str | os.PathLike[str], refusals: Refusals) -> QuerySet:
    """Like load; what `refusals` finds among the sound queries is wrong as well, and told together with the rest."""
    file = Path(path)
    return _Reading(str(path), file.parent, refusals).read(_text_of(file, str(path)))


def _text_of(file: Path, name: str) -> str:
    def refuse(message: str) -> QueryFileError:
        return QueryFileError([Problem(name, None, "", message)])

    try:
        if not file.exists():
            raise refuse("there is no such file; check the path")
        if not file.is_file():
            raise refuse("this is not a file; name a YAML file")
        if file.stat().st_size > BYTES_MAX:
            raise refuse(f"is larger than {BYTES_MAX // 2**20} MiB; query files are small, so use for_each with a CSV")
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse(f"is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class _Source:
    """One stream or query as it stands in the file: data with lines, place, and the template row it came from."""

    file: str
    data: Any
    place: Location
    line: int
    row: TemplateRow | None = None
    stood_in: frozenset[str] = frozenset()

    def problem(self, location: Iterable[str | int], message: str) -> Problem:
        line, path = self.line, _path(self.place)
        data = self.data
        for part in location:
            if isinstance(data, YamlMap) and isinstance(part, str) and part in data.lines:
                line, data, path = data.lines[part], data.get(part), f"{path}.{part}"
            elif isinstance(data, YamlList) and isinstance(part, int) and part < len(data):
                line, data, path = data.lines[part], data[part], f"{path}[{part}]"
        suffix = f" ({self.row.label})" if self.row else ""
        return Problem(self.file, line, path, _brief(message) + suffix)


def _brief(message: str) -> str:
    """A value may be a megabyte long; a message shows where it begins, and ends with the remedy."""
    return message if len(message) <= 800 else f"{message[:200]} ... {message[-200:]}"


def _path(place: Location) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


@dataclass
class _Reading:
    """One pass over one file."""

    file: str
    directory: Path | None
    refusals: Refusals
    problems: list[Problem] = field(default_factory=list)

    def read(self, text: str) -> QuerySet:
        try:
            data, mistakes = read_yaml(text)
        except UnreadableYaml as error:
            raise QueryFileError([Problem(self.file, error.line, "", error.message)]) from None
        self.problems += [Problem(self.file, line, "", message) for line, message in mistakes]
        if not isinstance(data, YamlMap):
            self._say(1, "", "a query file is a mapping; begin with `version: 1`, then `streams:` and `queries:`")
            raise QueryFileError(self.problems)
        self._check_top(data)
        streams = self._streams(data)
        queries, sources = self._queries(data)
        faulty = set()
        for location, message in faults_of_set(streams, queries):
            faulty.add(location[:2])
            self._place_fault(data, sources, location, message)
        # Everything was checked above, part by part; building the set again would only do it twice.
        sound_streams = {name: stream for name, stream in streams.items() if stream is not None}
        sound = {
            index: query
            for index, query in enumerate(queries)
            if query is not None
            and query.stream in sound_streams
            and not sources[index].stood_in
            and ("queries", index) not in faulty
        }
        query_set = QuerySet.model_construct(version=1, streams=sound_streams, queries=list(sound.values()))
        indices = list(sound)
        for place, reason in self.refusals(query_set):
            self.problems.append(sources[indices[place]].problem(("algorithm",), reason))
        if self.problems:
            raise QueryFileError(_merged(self.problems))
        return query_set

    def _say(self, line: int | None, path: str, message: str) -> None:
        self.problems.append(Problem(self.file, line, path, message))

    def _check_top(self, data: YamlMap) -> None:
        for key in data:
            if key not in QuerySet.model_fields:
                self._say(data.lines[key], key, _unknown_key(key, QuerySet.model_fields))
        if "version" not in data:
            self._say(1, "version", "is missing; begin the file with `version: 1`")
        elif data["version"] != 1 or isinstance(data["version"], bool):
            self._say(data.lines["version"], "version", f"is {data['version']!r}, but this skymesh reads version 1")

    def _streams(self, data: YamlMap) -> dict[str, Stream | None]:
        raw = data.get("streams")
        if not isinstance(raw, YamlMap) or not raw:
            self._say(data.lines.get("streams", 1), "streams", "has to be a mapping of stream names to declarations")
            return {}
        streams: dict[str, Stream | None] = {}
        for name, declaration in raw.items():
            source = _Source(self.file, declaration, ("streams", name), raw.lines[name])
            model, stood_in = self._validated(Stream, source)
            # Without its attributes and columns a stream cannot tell which names in a query are wrong.
            usable = isinstance(model, Stream) and not stood_in & {"attributes", "columns"}
            streams[name] = model if usable else None  # type: ignore[assignment]
        return streams

    def _queries(self, data: YamlMap) -> tuple[list[AnyQuery | None], list[_Source]]:
        raw = data.get("queries")
        if not isinstance(raw, YamlList):
            self._say(
                data.lines.get("queries", 1), "queries", "has to be a list of queries, each beginning with `- name:`"
            )
            return [], []
        queries: list[AnyQuery | None] = []
        sources: list[_Source] = []
        for index, entry in enumerate(raw):
            source = _Source(self.file, entry, ("queries", index), raw.lines[index])
            for part in self._expanded(source, data):
                query, stood_in = self._query(part)
                queries.append(query)
                sources.append(replace(part, stood_in=stood_in))
        return queries, sources

    def _expanded(self, source: _Source, data: YamlMap) -> list[_Source]:
        template = source.data
        if not isinstance(template, YamlMap) or "for_each" not in template:
            return [source]
        text_columns = _text_columns(data, template.get("stream"))
        try:
            rows = rows_of(template["for_each"], self.directory)
            return [
                _Source(self.file, fill(template, row, text_columns), source.place, source.line, row) for row in rows
            ]
        except TemplateError as error:
            self.problems.append(source.problem(("for_each",), str(error)))
            return []

    def _query(self, source: _Source) -> tuple[AnyQuery | None, frozenset[str]]:
        if not isinstance(source.data, YamlMap):
            self.problems.append(source.problem((), f"{source.data!r} is not a query; write a mapping with a name"))
            return None, frozenset()
        kind = source.data.get("kind", "topk")
        if not isinstance(kind, str) or kind not in KINDS:
            self.problems.append(source.problem(("kind",), unknown_kind(kind)))
            return None, frozenset()
        return self._validated(MODEL_OF_KIND[kind], source)  # type: ignore[return-value]

    def _validated(self, model: type[Model], source: _Source) -> tuple[Model | None, frozenset[str]]:
        """The model, with stand-ins for fields that are wrong: so what else is wrong shows in the same run."""
        data, stood_in = source.data, frozenset[str]()
        for _ in range(ROUNDS_MAX):
            try:
                return model.model_validate(data), stood_in
            except ValidationError as error:
                for detail in error.errors(include_url=False):
                    field_name = str(detail["loc"][0]) if detail["loc"] else ""
                    if field_name not in stood_in:
                        self.problems.append(source.problem(detail["loc"], _describe(detail, model)))
                    if not field_name or not isinstance(data, YamlMap):
                        return None, stood_in
                    data = _repaired(data, detail)
                    if detail["type"] != "extra_forbidden" and not _is_of_attribute(detail):
                        stood_in |= {field_name}
        return None, stood_in

    def _place_fault(self, data: YamlMap, sources: list[_Source], location: Location, message: str) -> None:
        part, key, *rest = location
        if part == "queries" and isinstance(key, int):
            if rest and rest[0] not in sources[key].stood_in:
                self.problems.append(sources[key].problem(rest, message))
        else:
            streams = data["streams"]
            source = _Source(self.file, streams[key], (part, key), streams.lines[key])
            self.problems.append(source.problem(rest, message))


def _text_columns(data: YamlMap, stream: Any) -> frozenset[str]:
    """The text columns of a stream, from the raw data: templates are filled before streams are known to be sound."""
    streams = data.get("streams")
    declaration = streams.get(stream) if isinstance(streams, YamlMap) and isinstance(stream, str) else None
    columns = declaration.get("columns") if isinstance(declaration, YamlMap) else None
    if isinstance(columns, YamlList):
        return frozenset(name for name in columns if isinstance(name, str))
    if isinstance(columns, YamlMap):
        return frozenset(name for name, kind in columns.items() if kind == "string")
    return frozenset()


def _merged(problems: list[Problem]) -> list[Problem]:
    """In the order of lines. Of a template's rows with the same mistake, the first and a count."""
    first: dict[tuple[int | None, str], int] = {}
    merged: list[Problem] = []
    counts: list[int] = []
    for problem in problems:
        key = (problem.line, problem.path)
        if "(for_each item " in problem.message or ".csv line " in problem.message:
            if key in first:
                counts[first[key]] += 1
                continue
            first[key] = len(merged)
        merged.append(problem)
        counts.append(0)
    told = [
        Problem(p.file, p.line, p.path, f"{p.message}, and {count:,} more rows of the template" if count else p.message)
        for p, count in zip(merged, counts, strict=True)
    ]
    return sorted(told, key=lambda problem: problem.line or 0)


# What takes the place of a required field that is wrong, while the rest is checked. Optional ones are left out.
_STAND_INS: dict[str, Any] = {
    "name": "?",
    "stream": "?",
    "k": 1,
    "score": "0",
    "window": {"count": 1},
    "id": "?",
    "attributes": ["?"],
}
ROUNDS_MAX = 8


def _repaired(data: YamlMap, detail: ErrorDetails) -> YamlMap:
    """The data without the key that is unknown, or with a stand-in for the field that is wrong."""
    location = detail["loc"]
    depth = len(location) if detail["type"] == "extra_forbidden" else 3 if _is_of_attribute(detail) else 1
    return _changed(data, [part for part in location[:depth] if isinstance(part, str)])


def _is_of_attribute(detail: ErrorDetails) -> bool:
    """Whether what is wrong is what an attribute says of itself: without it the attribute still has its name."""
    return len(detail["loc"]) >= 3 and detail["loc"][0] == "attributes"


def _changed(data: YamlMap, path: list[str]) -> YamlMap:
    result = YamlMap(data.line)
    result.lines = data.lines
    result.update(data)
    key, *rest = path
    if rest and isinstance(data.get(key), YamlMap):
        result[key] = _changed(data[key], rest)
    elif rest:
        return _changed(data, rest)  # a tag of pydantic's, not a key of the file
    else:
        result.pop(key, None)
        if key in _STAND_INS:
            result[key] = _STAND_INS[key]
    return result


# -- pydantic's errors in our words ----------------------------------------------------------------------------

_NESTED: dict[str, type[Model]] = {
    "window": Window,
    "active": Active,
    "id": IdColumn,
    "keep": Keep,
    "attributes": Attribute,
    "distance": DistanceTo,
}


def _describe(detail: ErrorDetails, model: type[Model]) -> str:
    kind, location, value = detail["type"], detail["loc"], detail["input"]
    name = location[-1] if location else ""
    context = detail.get("ctx", {})
    if kind == "missing":
        description = _fields_at(model, location[:-1]).get(str(name))
        return f"{name} is missing" + (f": {description}" if description else "; add it")
    if kind == "extra_forbidden":
        return _unknown_key(str(name), _fields_at(model, location[:-1]))
    if kind == "literal_error":
        return f"is {value!r}; it can be {context['expected']}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"is {value!r}, where a mapping is needed"
    if kind == "list_type":
        return f"is {value!r}, where a list is needed, like [a, b]"
    if kind == "too_short":
        return "is empty; name at least one attribute"
    return detail["msg"]


def _fields_at(model: type[Model], location: Location) -> dict[str, str | None]:
    """The keys that are known at this place, with their descriptions."""
    for part in reversed(location):
        if isinstance(part, str) and part in _NESTED:
            model = _NESTED[part]
            break
        if isinstance(part, str) and part in ("linear", "product", "quadratic"):
            return {part: None}
    fields = {info.alias or name: info.description for name, info in model.model_fields.items()}
    if model is Window:
        fields["tumbling"] = None
    return fields


def _unknown_key(name: str, known: Iterable[str]) -> str:
    known = list(known)
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"unknown key {name!r}; did you mean {close[0]!r}?"
    return f"unknown key {name!r}; known here: {', '.join(known)}"
