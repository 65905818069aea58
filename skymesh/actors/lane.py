"""One stream and the queries over it: what comes in, in which order it is due, and the algorithms that rank it.

Queries that an algorithm can serve together form a *team*: one instance of the algorithm, one kernel call a batch for
all of them. A stream has a team for each algorithm and order; a late starter whose algorithm keeps rows gets its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..algorithms import Algorithm
from ..algorithms.asked import Asked, ask
from ..algorithms.columns import EVER, NEVER, Changes, Ints, Op, Rows
from ..algorithms.standing_arrays import CHANGE
from ..errors import QueryError
from ..queries import AnyQuery, Stream
from ..routing.domains import Domains
from ..routing.encoder import Encoder
from ..routing.groups import Groups
from ..routing.history import History
from ..routing.pending import Pending
from ..routing.planner import Choice
from ..routing.raw_rows import RawRows, together
from ..routing.rejects import Reject, Rejects, last_rows
from ..routing.splitter import Splitter
from ..routing.texts import Texts
from .change_chunks import Piece
from .change_kernels import LABEL
from .change_log import ChangeLog

MakeAlgorithm = Callable[..., Algorithm]
_TEXTS_MIN = 4096


@dataclass(slots=True)
class Running:
    """A query that runs."""

    query: AnyQuery
    choice: Choice
    number: int
    asked: Asked
    team: Team
    slot: int
    group_rejects: int = 0
    groups: dict[int, str] = field(default_factory=dict)  # value: text


class Team:
    """An instance of an algorithm, and which query and group each of its rankings is."""

    def __init__(self, algorithm: Algorithm, *, by_id: bool) -> None:
        self.algorithm = algorithm
        self.by_id = by_id  # whether it links rows of one id
        self.queries: dict[int, Running] = {}
        self._labels = np.zeros(8, LABEL)

    def note(self, ranking: int, running: Running, group: int) -> None:
        """Which query a ranking is of, and which group of it: the latest one of its groups, or -1 for none."""
        if ranking >= len(self._labels):
            self._labels = np.concatenate((self._labels, np.zeros(ranking + 1, LABEL)))
        self._labels[ranking] = running.number, max(group, 0), len(running.groups), running.asked.sign

    def piece(self, changes: Changes, *, has_time: bool) -> Piece:
        return Piece(changes, self._labels, has_time)


class Lane:
    def __init__(
        self, name: str, stream: Stream, log: ChangeLog, rejects: Rejects, make_algorithm: MakeAlgorithm
    ) -> None:
        self.name = name
        self.stream = stream
        self._log = log
        self._rejects = rejects
        self._make_algorithm = make_algorithm
        self.splitter = Splitter(name, stream)
        self._encoder = Encoder(stream)
        self._domains = Domains(stream)
        self._pending = Pending()
        self._groups = Groups()
        self._teams: list[Team] = []
        self._row_teams: list[Team] = []  # those of them over count windows, and over time windows
        self._time_teams: list[Team] = []
        self._running: dict[str, Running] = {}
        self._grouped: dict[str, Running] = {}
        self._ends = {False: NEVER, True: NEVER}  # the soonest end of a query, in rows and in time
        self._history = History(name, stream)
        self._texts_live = 0
        if stream.deletes and stream.id.type == "string":
            self._tell_ids_apart()

    # -- queries -----------------------------------------------------------------------------------------------

    def find(self, name: str) -> Running | None:
        return self._running.get(name)

    def __iter__(self) -> Iterator[Running]:
        return iter(self._running.values())

    def upto(self, *, is_time: bool) -> int:
        """All points up to it are over."""
        if not is_time:
            return self.splitter.next_seq
        watermark = self.splitter.watermark
        return watermark - 1 if watermark > EVER else EVER

    def __len__(self) -> int:
        return len(self._running)

    def add(self, query: AnyQuery, choice: Choice, *, first: bool) -> Running:
        """Start a query. `first`: with the engine, before any row."""
        kind = choice.algorithm
        reads_more = self._encoder.admit(query)
        if query.per_id != "all" and self.stream.id.type == "string" and self.splitter.id_texts is None:
            self._tell_ids_apart()
        is_time = query.window.is_time
        upto = self.upto(is_time=is_time)
        reached = self.splitter.greatest if is_time else self.splitter.next_seq
        recalled = None if first else self._history.recall(query, upto, reached)
        since = self.splitter.next_seq if recalled is None else 0
        asked = ask(query, self.stream, self._encoder.places(), since)
        if asked.span.until <= upto:
            raise QueryError(f"query {query.name!r}: its `until` has passed already; choose a later one")
        team = self._team(kind, query, asked, recalls=recalled is not None, reads_more=reads_more)
        slot = team.algorithm.add(asked, upto)
        running = Running(query, choice, self._log.add_query(query, self.stream), asked, team, slot)
        team.queries[slot] = running
        self._running[query.name] = running
        self._ends[is_time] = min(self._ends[is_time], asked.span.until)
        if asked.is_grouped:
            self._grouped[query.name] = running
        else:
            team.note(team.algorithm.rankings(slot)[0], running, -1)
        if recalled is not None:
            holds = kind.keeps_rows and not team.algorithm.is_late
            self._recall(running, recalled, held=holds)
        return running

    def _team(self, kind: type[Algorithm], query: AnyQuery, asked: Asked, *, recalls: bool, reads_more: bool) -> Team:
        """The team that takes a query. One that looks back on rows joins others only where all of these are held, with
        the columns that it reads; otherwise, if its algorithm keeps rows, it gets its own."""
        is_time = asked.span.is_time
        by_id = kind.links and (self.stream.deletes or query.per_id != "all")
        for team in self._teams:
            algorithm = team.algorithm
            if type(algorithm) is not kind or algorithm.is_time != is_time or algorithm.is_late or team.by_id != by_id:
                continue
            if not (recalls and kind.keeps_rows):
                return team
            if not reads_more and algorithm.covers(asked, self.upto(is_time=is_time)):
                return team
        options = {"is_time": is_time, "by_id": by_id, "has_time": self.stream.time is not None}
        team = Team(self._make_algorithm(kind, domains=self._domains.axes, **options), by_id=by_id)
        team.algorithm.is_late = recalls and kind.keeps_rows
        self._teams.append(team)
        self._tell_teams_apart()
        return team

    def remove(self, name: str) -> Piece:
        """Stop a query; its last row says so."""
        running = self._running.pop(name)
        self._grouped.pop(name, None)
        team, slot = running.team, running.slot
        ended = self._end(running)
        team.algorithm.remove(slot)
        del team.queries[slot]
        self._groups.remove(running.number)
        if not team.queries:
            self._teams.remove(team)
            self._tell_teams_apart()
        return ended

    def _tell_teams_apart(self) -> None:
        self._row_teams = [team for team in self._teams if not team.algorithm.is_time]
        self._time_teams = [team for team in self._teams if team.algorithm.is_time]

    def _end(self, running: Running) -> Piece:
        at = running.team.algorithm.last_point(running.slot)
        told = np.zeros(1, CHANGE)
        told["op"], told["at"] = Op.END, EVER if at is None else at
        return Piece(Changes.copied(told), np.array([(running.number, 0, 0, 1.0)], LABEL), self.stream.time is not None)

    def result(self, running: Running, group: str | None) -> list[Piece]:
        at = running.team.algorithm.last_point(running.slot)
        pieces = []
        for value, found in running.team.algorithm.result(running.slot).items():
            if group is None or running.groups.get(value) == group:
                stamped = found.at_point(0 if at is None else at)
                pieces.append(running.team.piece(stamped, has_time=self.stream.time is not None))
        return pieces

    # -- rows from before a query was added --------------------------------------------------------------------

    def _recall(self, running: Running, kept: list[RawRows], *, held: bool) -> None:
        """Start a query with rows that were kept, unless its team holds them; its groups are those of the rows that
        wait to fall due as well."""
        is_time = running.asked.span.is_time
        if running.asked.is_grouped:
            arrived = together([self.splitter.empty_rows(), *kept, *(self._pending.runs() if is_time else [])])
            arrived = arrived.take(np.argsort(arrived.seq, kind="stable"))
            self._register(running, self._encoder.rows(arrived, is_time=is_time), None)
        if held:
            running.team.algorithm.recall(running.slot, None)
            return
        for raw in kept:
            running.team.algorithm.recall(running.slot, self._encoder.rows(raw, is_time=is_time))

    # -- rows --------------------------------------------------------------------------------------------------

    def push(self, data: object, now: int) -> list[Piece]:
        """Take a batch in; the changes of the points that it completed."""
        split = self.splitter.split(data, now)
        self.splitter.commit(split, self._rejects)
        raw = split.rows
        if self._domains.learn(raw.numbers):
            for team in self._teams:
                team.algorithm.learn(self._domains.axes)
        good = None if split.verdict is None else np.flatnonzero(split.verdict == 0)
        pieces: list[Piece] = []
        if self._row_teams or self._grouped:
            rows = self._encoder.rows(raw, is_time=False)
            for running in self._grouped.values():
                self._register(running, rows, good)
            pieces = self._advance_rows(rows)
        self._history.add_arrived(raw, self.splitter.next_seq)
        if self.stream.time is not None:
            self._pending.add(raw if good is None else raw.take(good))
            pieces += self._advance_time()
        self._drop_texts()
        return pieces + self._ended()

    def _advance_rows(self, rows: Rows) -> list[Piece]:
        upto, has_time = self.upto(is_time=False), self.stream.time is not None
        return [team.piece(team.algorithm.advance(rows, upto), has_time=has_time) for team in self._row_teams]

    def _advance_time(self, *, flush: bool = False) -> list[Piece]:
        upto = self.upto(is_time=True)
        if upto == EVER:
            return []
        raw = self._pending.due(upto) or self.splitter.empty_rows()
        self._history.add_due(raw, upto)
        if not self._time_teams:
            return []
        rows = self._encoder.rows(raw, is_time=True)
        return [team.piece(team.algorithm.advance(rows, upto, flush=flush), has_time=True) for team in self._time_teams]

    def heartbeat(self, time: int) -> list[Piece]:
        self.splitter.heartbeat(time)
        return self._advance_time() + self._ended()

    def flush(self) -> list[Piece]:
        if self.stream.time is None or self.splitter.flush() == EVER:
            return []
        return self._advance_time(flush=True) + self._ended()

    def delete(self, ids: Ints) -> list[Piece]:
        """Withdraw the live rows of these ids."""
        self._pending.delete(ids)
        self._history.delete(ids)
        pieces = []
        for team in self._teams:
            is_time = team.algorithm.is_time
            upto = self.upto(is_time=is_time)
            if upto > EVER:
                # In time the next position is the first that no longer sees the rows; in rows it is this one.
                changes = team.algorithm.delete(ids, upto + 1 if is_time else upto)
                pieces.append(team.piece(changes, has_time=self.stream.time is not None))
        return pieces

    def _ended(self) -> list[Piece]:
        """Queries whose `until` is passed."""
        pieces: list[Piece] = []
        for is_time, soonest in self._ends.items():
            if soonest == NEVER or soonest > (upto := self.upto(is_time=is_time)):
                continue
            over = [r for r in self if r.asked.span.is_time == is_time and r.asked.span.until <= upto]
            pieces += [self.remove(running.query.name) for running in over]
            ends = [r.asked.span.until for r in self if r.asked.span.is_time == is_time]
            self._ends[is_time] = min(ends, default=NEVER)
        return pieces

    # -- groups ------------------------------------------------------------------------------------------------

    def _register(self, running: Running, rows: Rows, good: Ints | None) -> None:
        """Give group values that are new their rankings, in the order of arrival."""
        span, query = running.asked.span, running.query
        at = rows.time if span.is_time else rows.seq + 1
        counts = (at > span.after) & (at <= span.until)
        if span.is_time and good is not None:
            in_time = np.zeros(len(rows), np.bool_)
            in_time[good] = True
            counts &= in_time
        column = running.asked.group_column
        found = self._groups.register(running.number, rows, column, counts, query.max_groups)
        for value in found.values:
            text = self._group_text(running, int(value))
            running.groups[int(value)] = text
            ranking = running.team.algorithm.register(running.slot, int(value))
            running.team.note(ranking, running, self._log.group_number(text))
        self._reject_groupless(running, rows, found.rejected)

    def _group_text(self, running: Running, value: int) -> str:
        kind = self.stream.columns[running.query.group_by or ""]
        if kind == "string":
            return self._encoder.texts.text(value)
        return str(bool(value)).lower() if kind == "bool" else str(value)

    def _reject_groupless(self, running: Running, rows: Rows, rejected: Ints) -> None:
        if not len(rejected):
            return
        query, column = running.query, running.asked.group_column
        running.group_rejects += len(rejected)
        self._rejects.count(self.name, "group", len(rejected))
        beyond = f"query {query.name}: there are {query.max_groups} groups already (max_groups)"
        rejected = last_rows(rejected)
        ids = None
        if self.stream.id.type == "string" and rows.carried is not None:
            ids = rows.carried.take(rejected).materialize().column("id")
        self._rejects.add(
            [
                Reject(
                    self.name,
                    "group",
                    int(rows.seq[row]),
                    int(rows.id[row]) if ids is None else ids[i].as_py(),
                    int(rows.time[row]) if self.stream.time is not None else None,
                    beyond if rows.known[column, row] else f"query {query.name}: {query.group_by} is null",
                )
                for i, row in enumerate(rejected)
            ]
        )

    # -- what is kept ------------------------------------------------------------------------------------------

    def _tell_ids_apart(self) -> None:
        """From now on ids that are texts have codes; rows that wait or are kept get theirs."""
        texts = self.splitter.id_texts = Texts()
        self._pending.recode(texts.encode)
        self._history.recode(texts.encode)

    def _drop_texts(self) -> None:
        texts = self.splitter.id_texts
        if texts is None or len(texts) < 2 * self._texts_live + _TEXTS_MIN:
            return
        held = [team.algorithm.ids_held() for team in self._teams]
        texts.keep_only(np.unique(np.concatenate([*held, self._pending.ids_held(), self._history.ids_held()])))
        self._texts_live = len(texts)

    def stats(self) -> dict[str, object]:
        watermark = self.splitter.watermark
        return {
            "rows": self.splitter.next_seq,
            "watermark": watermark if watermark > EVER else None,
            "pending": len(self._pending),
            "rejects": self._rejects.counts(self.name),
        }
