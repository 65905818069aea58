"""YAML for query files: strict, flat in memory, and with line numbers.

PyYAML's own loader expands alias bombs, keeps the last of two equal keys, reads `NO` as false and `12:30:00` as a
number, and recurses as deep as the file asks. Here its parser only delivers events; this module builds the data from
them without recursion, refuses aliases, anchors and tags, knows a small set of plain scalars, and stops at limits.
Mistakes that leave the rest readable are collected; a file that cannot be read ends at its first.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

BYTES_MAX = 16 * 2**20
DEPTH_MAX = 24

Mistake = tuple[int, str]


class YamlMap(dict[str, Any]):
    """A mapping that knows on which line each key stands."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}


class YamlList(list[Any]):
    """A list that knows on which line each item stands."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


class UnreadableYaml(Exception):
    """The text is no YAML, or goes beyond a limit: there is nothing to check further."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message


_INTEGER = re.compile(r"[-+]?(0|[1-9]\d{0,2}(_\d{3})+|[1-9]\d*)")
_FLOAT = re.compile(r"[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?")
_NAMED = {"true": True, "false": False, "null": None, "~": None, "": None}


def plain_scalar(text: str) -> Any:
    """What an unquoted scalar means: a number, true, false, null, or else a text.

    >>> [plain_scalar(text) for text in ("1_000", "1e6", "true", "NO", "10m", "12:30:00")]
    [1000, 1000000.0, True, 'NO', '10m', '12:30:00']
    """
    if text in _NAMED:
        return _NAMED[text]
    if len(text) <= 40:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


def read_yaml(text: str) -> tuple[Any, list[Mistake]]:
    """The data of one document and the mistakes in it, each with its line."""
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = " ".join(part for part in (error.context, error.problem) if part)
        raise UnreadableYaml(mark.line + 1 if mark else None, f"this is not YAML: {reason}") from None
    except yaml.YAMLError as error:
        raise UnreadableYaml(None, f"this is not YAML: {error}".splitlines()[0]) from None
    return builder.root, builder.mistakes


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOTHING = object()


class _Builder:
    def __init__(self) -> None:
        self.root: Any = None
        self.mistakes: list[Mistake] = []
        self._documents = 0
        self._open: list[YamlMap | YamlList] = []
        self._keys: list[Any] = []  # one for each open container: the key that waits for its value

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_marks(event, line)
            self._place(plain_scalar(event.value) if event.implicit[0] else event.value, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._refuse_marks(event, line)
            self._enter(YamlMap(line) if isinstance(event, yaml.MappingStartEvent) else YamlList(line), line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, yaml.AliasEvent):
            self.mistakes.append(
                (
                    line,
                    f"*{event.anchor} is an alias, which query files do not have; write the value out, or use for_each",
                )
            )
            self._place(None, line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise UnreadableYaml(line, "a query file holds one document; remove the second `---`")

    def _refuse_marks(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            self.mistakes.append((line, f"&{event.anchor} is an anchor, which query files do not have; remove it"))
        if event.tag is not None and event.tag != "!":
            self.mistakes.append((line, f"{event.tag} is a tag, which query files do not have; remove it"))

    def _enter(self, container: YamlMap | YamlList, line: int) -> None:
        if len(self._open) >= DEPTH_MAX:
            raise UnreadableYaml(line, f"nests deeper than {DEPTH_MAX} levels, and no query does")
        self._place(container, line)
        self._open.append(container)
        self._keys.append(_NOTHING)

    def _place(self, value: Any, line: int) -> None:
        if not self._open:
            self.root = value
            return
        container = self._open[-1]
        if isinstance(container, YamlList):
            container.append(value)
            container.lines.append(line)
        elif self._keys[-1] is _NOTHING:
            self._keys[-1] = self._key(container, value, line)
        else:
            key, self._keys[-1] = self._keys[-1], _NOTHING
            if key is not None and key not in container:
                container[key] = value

    def _key(self, container: YamlMap, key: Any, line: int) -> str | None:
        """The key, or None if its value is to be dropped."""
        if not isinstance(key, str):
            self.mistakes.append((line, f"{_shown(key)} is not a name; keys are texts, so put it in quotes"))
            return None
        if key in container.lines:
            self.mistakes.append(
                (line, f"{key!r} stands here a second time (first on line {container.lines[key]}); remove one")
            )
            return key  # the first value stays
        container.lines[key] = line
        return key


def _shown(key: Any) -> str:
    return "a list or mapping" if isinstance(key, YamlMap | YamlList) else repr(key)
