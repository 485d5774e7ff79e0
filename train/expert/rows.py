"""Questions to rows for `cairn train sft`, with a report of how many came from where and why others were left out."""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import CorpusError, SetupError, wrong_fields
from agent.protocols import TextProtocol, protocol_named
from agent.sources.bm25 import words
from train.distill.rows import RowPiece, TrainingRow
from train.expert import combine
from train.expert.composed import nested, several, several_comparisons, several_facts
from train.expert.library import Library, Locator
from train.expert.plan import NoPlan, PlannedQuestion
from train.expert.reading import SolvedQuestion, plans_of
from train.expert.relations import DocumentWithRelations, as_record, questions_about
from train.expert.trajectory import Phrasing, trajectory, whole_id
from train.sft.episodes import EpisodePiece

_Model = TypeVar("_Model", bound=BaseModel)
POLICY: Final = "expert"
_PHRASINGS: Final[dict[Phrasing, float]] = {"name": 0.6, "words": 0.2, "of": 0.2}
"""How often queries are phrased how; a name alone finds its passage most often."""
_PLANS: Final = frozenset({"lines", "query", "queries"})
"""Ways to write a plan that the expert knows."""


class RowOptions(BaseModel):
    """Which rows are made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocols: tuple[str, ...] = ("cairn", "evidence")
    every_protocol: bool = False
    """Whether each question gives a row under every protocol, instead of under one that is drawn."""
    unanswerable: float = Field(default=0.1, ge=0, le=1)
    """Share of rows whose gold passages no search finds: the expert says that it does not know."""
    combine: int = Field(default=0, ge=0)
    """From evidence triples: this many questions of each kind that the list does not have."""
    several: int = Field(default=0, ge=0)
    """Rows that ask several questions about one passage at once."""
    limit: int = Field(default=0, ge=0)
    """Questions that are used, drawn at random; 0: all."""
    hold_out: int = Field(default=0, ge=0)
    """Questions that are kept for an evaluation: no row has one of their gold passages as its own."""
    seed: int = 0


@dataclass
class RowsReport:
    """What came of the questions."""

    rows: Counter[str] = field(default_factory=Counter[str])
    """Protocol and kind of question → rows."""
    dropped: Counter[str] = field(default_factory=Counter[str])
    """Reason → questions."""
    unknown: int = 0
    searches: Counter[int] = field(default_factory=Counter[int])
    """Number of rounds → rows."""

    def as_json(self) -> dict[str, object]:
        return {
            "rows": sum(self.rows.values()),
            "by_kind": dict(sorted(self.rows.items())),
            "unanswerable": self.unknown,
            "rounds": {str(rounds): count for rounds, count in sorted(self.searches.items())},
            "dropped": dict(self.dropped.most_common()),
        }


def read_records(path: Path) -> list[SolvedQuestion]:
    """Read questions with what is known of their solutions.

    Raises:
        CorpusError: a line is no question.
    """
    return [_line(SolvedQuestion, line, f"{path}, line {number}") for number, line in _lines(path)]


def read_described(path: Path) -> list[DocumentWithRelations]:
    """Read documents with their relations.

    Raises:
        CorpusError: a line is none.
    """
    return [_line(DocumentWithRelations, line, f"{path}, line {number}") for number, line in _lines(path)]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path} cannot be read: {error}") from error


def _line(model: type[_Model], line: str, where: str) -> _Model:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        raise CorpusError(f"{where}: {wrong_fields(error, whole='the line', most=1)}") from error


def without(
    records: Sequence[SolvedQuestion], kept: Sequence[SolvedQuestion], library: Library
) -> list[SolvedQuestion]:
    """The questions but for those of another list, whatever their ids are, and for those that share their documents."""
    kept_questions = {_plain(record.question) for record in kept}
    gold = _documents(kept, library)
    return [
        one
        for one in records
        if _plain(one.question) not in kept_questions and gold.isdisjoint(_documents([one], library))
    ]


def _documents(records: Iterable[SolvedQuestion], library: Library) -> set[str]:
    """The documents whose passages are gold, however the questions name them: as a whole, or a part."""
    return {_document(passage, library) for record in records for passage in record.supporting}


def _document(passage: str, library: Library) -> str:
    found = library.passage(passage)
    return found.id if found else whole_id(passage)


def _plain(question: str) -> str:
    return " ".join(words(question))


def hold_out(
    records: Sequence[SolvedQuestion], count: int, library: Library, *, seed: int
) -> tuple[list[SolvedQuestion], list[SolvedQuestion]]:
    """Draw questions for an evaluation; gives them, and the others that share none of their documents.

    Only questions whose gold passages are known are drawn: of others nobody can say who shares theirs.

    Raises:
        SetupError: there are too few.
    """
    records = [record for record in records if record.supporting]
    if count >= len(records):
        raise SetupError(
            f"--hold-out {count} of {len(records)} questions with known passages leaves none to learn from: hold out "
            "fewer"
        )
    kept = random.Random(f"set aside {seed}").sample(records, count)
    return kept, without(records, kept, library)


def choices(
    records: Sequence[SolvedQuestion],
    documents: Sequence[DocumentWithRelations],
    library: Library,
    wanted: RowOptions,
    report: RowsReport,
    kept: Sequence[SolvedQuestion] = (),
) -> list[list[PlannedQuestion]]:
    """Every question with its plans, in a drawn order. None repeats a question that is kept for an evaluation.

    The questions have their gold passages already (`with_gold`).
    """
    avoided = {_plain(one.question) for one in kept}
    gold = _documents(kept, library)
    documents = [one for one in documents if _document(one.id, library) not in gold]
    rng = random.Random(f"order {wanted.seed}")
    made: list[list[PlannedQuestion]] = []
    for record in records:
        if not _names_gold(record):
            report.dropped["no passage is named, and none that the question leads to holds the answer"] += 1
            continue
        try:
            plans = plans_of(record, library.passage)
        except NoPlan as error:
            report.dropped[str(error)] += 1
            continue
        made.append([PlannedQuestion(record.id, record.question, record.type or "question", plan) for plan in plans])
    more = [planned for document in documents for planned in questions_about(document)]
    if wanted.combine:
        own = [record for document in documents if (record := as_record(document))]
        combined = _combined([*records, *own], library, wanted, rng)
        more = [*more, *combined, *nested(records, documents, library.passage, rng)]
        more = list(_drawn(more, wanted.combine, rng))
    if wanted.several:
        joined = [*several(records, library.passage, rng), *several_facts(documents, rng)]
        more += rng.sample(joined, min(wanted.several, len(joined)))
        compared = list(several_comparisons(documents, rng))
        more += rng.sample(compared, min(wanted.several, len(compared)))
    seen = {_plain(one.question) for plans in made for one in plans} | avoided
    for planned in more:
        if (words_of := _plain(planned.whole)) not in seen or planned.history:
            seen.add(words_of)
            made.append([planned])
    rng.shuffle(made)
    return made[: wanted.limit or None]


def with_gold(records: Sequence[SolvedQuestion], library: Library) -> list[SolvedQuestion]:
    """The questions with their gold passages; those that name none get those that are found for them, if any are."""
    locator: Locator | None = None
    found: list[SolvedQuestion] = []
    for record in records:
        if not _names_gold(record):
            locator = locator or Locator(library)
            record = locator.located(record) or record
        found.append(record)
    return found


def _names_gold(record: SolvedQuestion) -> bool:
    return bool(record.supporting or record.decomposition or record.evidences)


def _combined(
    records: Sequence[SolvedQuestion], library: Library, wanted: RowOptions, rng: random.Random
) -> Iterator[PlannedQuestion]:
    passage, each = library.passage, max(1, wanted.combine // 8)
    yield from combine.one_hops(records, passage)
    yield from combine.two_hops(records, passage)
    yield from combine.follow_ups(records, passage)
    yield from combine.comparisons(records, passage, rng, each=each)
    yield from combine.bridge_comparisons(records, passage, rng, each=each)


def _drawn(found: Sequence[PlannedQuestion], each: int, rng: random.Random) -> Iterator[PlannedQuestion]:
    """At most `each` questions of every kind; rare relations go before frequent ones."""
    by_kind: dict[str, dict[tuple[str, ...], list[PlannedQuestion]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        by_kind[one.kind][tuple(fact.relation for fact in one.plan.facts)].append(one)
    for by_relation in by_kind.values():
        left = each
        groups = sorted(by_relation.values(), key=len)
        for at, group in enumerate(groups):
            taken = rng.sample(group, min(len(group), left // (len(groups) - at)))
            left -= len(taken)
            yield from taken


def rows_of(
    questions: Iterable[Sequence[PlannedQuestion]], library: Library, wanted: RowOptions, report: RowsReport
) -> Iterator[TrainingRow]:
    """The rows; what they are depends on nothing but the arguments.

    Raises:
        SetupError: a protocol writes its plans in a way that the expert does not know.
    """
    protocols = [protocol_named(name) for name in wanted.protocols]
    for protocol in protocols:
        if protocol.plan not in _PLANS or protocol.deliver != "continue":
            raise SetupError(
                f"the expert does not write plans as {protocol.name} has them; use cairn, evidence or multisearch"
            )
    for plans in questions:
        rng = random.Random(f"{wanted.seed} {plans[0].id}")
        chosen = protocols if wanted.every_protocol else [rng.choice(protocols)]
        phrasing = rng.choices(list(_PHRASINGS), list(_PHRASINGS.values()))[0]
        hides = rng.random() < wanted.unanswerable
        for protocol in chosen:
            if row := _row(plans, protocol, library, rng, phrasing=phrasing, hides=hides, report=report):
                yield row


def _row(
    plans: Sequence[PlannedQuestion],
    protocol: TextProtocol,
    library: Library,
    rng: random.Random,
    *,
    phrasing: Phrasing,
    hides: bool,
    report: RowsReport,
) -> TrainingRow | None:
    why = ""
    for planned in plans:
        hidden = _hidden(planned, rng) if hides else frozenset[str]()
        try:
            pieces = trajectory(planned, protocol, library.find, phrasing=phrasing, without=hidden)
        except NoPlan as error:
            why = why or str(error)
            continue
        report.rows[f"{protocol.name} {planned.kind}"] += 1
        report.unknown += hides
        report.searches[sum(piece.by == "environment" for piece in pieces)] += 1
        return _as_row(planned, protocol, pieces)
    report.dropped[why] += 1
    return None


def _hidden(planned: PlannedQuestion, rng: random.Random) -> frozenset[str]:
    """Passages that are kept from the expert: all gold, or now and then what the last step needs alone."""
    facts = planned.plan.stages[-1] if rng.random() < _LAST_ALONE else planned.plan.facts
    return frozenset(fact.passage for fact in facts)


_LAST_ALONE: Final = 0.3


def _as_row(planned: PlannedQuestion, protocol: TextProtocol, pieces: Sequence[EpisodePiece]) -> TrainingRow:
    return TrainingRow(
        trace=f"{planned.id} {protocol.name}",
        question=planned.question,
        type=planned.kind,
        protocol=protocol.name,
        policy=POLICY,
        pieces=tuple(RowPiece(by=piece.by, text=piece.text) for piece in pieces),
    )


def write_held_out(path: Path, records: Sequence[SolvedQuestion]) -> None:
    """Write the held-out questions, for `cairn eval --questions`."""
    lines = [
        {"id": one.id, "question": one.question, "answers": one.answers, "supporting": one.supporting, "type": one.type}
        for one in records
    ]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
