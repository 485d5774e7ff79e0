"""The oracle as a policy: it writes a turn, sees what the environment shows, and writes the next one.

It searches for a look-up once in its best words and, where that shows nothing, once more in others; then it says that
it does not know. What a protocol cannot express raises `Unreachable`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.evidence import Passage
from agent.protocols import Role, TextProtocol
from agent.trace.attempts import UNKNOWN
from agent.world.records import Lookup, Question
from train.sft.oracle import words
from train.sft.oracle.findings import Documents, LookupFinding, find, history, settled
from train.sft.oracle.plans import Plans
from train.sft.oracle.queries import first_query

_TRIES = 2


class Unreachable(LookupError):
    """The protocol cannot answer this question, or not within its rounds."""


@dataclass(frozen=True)
class TeacherTurn:
    """What the policy writes in one go, and the block that ends it."""

    text: str
    ends: Literal["search", "answer"]


class Teacher:
    """The right turns for one question under one protocol: `turn`, `see`, `turn`, `see` … until one answers."""

    def __init__(self, question: Question, protocol: TextProtocol, documents: Documents, *, fill: bool = False) -> None:
        """Begin.

        Args:
            question: with its gold plan.
            protocol: how things are spelled.
            documents: gives what a passage states.
            fill: whether one round follows a whole chain.

        Raises:
            Unreachable: the protocol has one plan, and the question takes several rounds.
        """
        self._question, self._protocol, self._documents, self._fill = question, protocol, documents, fill
        self._plans = Plans(protocol)
        self._found: dict[Lookup, LookupFinding] = {}
        self._observed: list[Passage] = []
        self._batch: list[Lookup] = []
        self._rounds = 0
        self._tries = _TRIES
        if protocol.plans == 1:
            self._tries = 1
            if len(question.plan) > 1:
                raise Unreachable(f"{protocol.name} has one plan, and this takes {len(question.plan)} rounds")
        said = " ".join([question.question, *(text for turn in question.history for text in turn)])
        if question.history and any(lookup.subject not in said for stage in question.plan[:1] for lookup in stage):
            raise Unreachable("the earlier answer is a name that two people have")

    @property
    def lines(self) -> list[Lookup]:
        """The look-up behind each query of the last search, in their order."""
        return self._plans.lines

    def see(self, passages: Sequence[Passage]) -> None:
        """The passages that a round showed, with their numbers.

        Raises:
            NotShown: they mislead.
        """
        again = self._protocol.numbering != "rollout"
        self._observed = list(passages) if again else [*self._observed, *passages]
        for lookup in self._batch:
            latest = find(lookup, passages, self._documents)
            finding = find(lookup, self._observed, self._documents)
            plain = latest and not latest.weighed
            if finding := (latest if plain else finding):
                self._found[lookup] = finding

    def fill(self, lookup: Lookup, parents: Sequence[Passage]) -> str:
        """What finishes the query of a look-up whose subject its parents' passages name.

        Raises:
            NotShown: they mislead.
        """
        before = next(one for (one,) in self._question.plan if one.values == (lookup.subject,))
        if find(before, parents, self._documents):
            return first_query(lookup) + self._protocol.closing("fill")
        self._plans.forget(lookup)
        return self._protocol.skip + self._protocol.closing("fill")

    def turn(self) -> TeacherTurn:
        """The next turn.

        Raises:
            Unreachable: the rounds do not suffice, or what can be found was not.
        """
        question = self._question
        if question.well_known:
            (lookup,) = question.plan[0]
            return self._answering(self._by_heart(lookup))
        before = self._looking_back() if self._rounds else self._beginning()
        if self._rounds and (self._lost or not self._stage_missing()):
            if self._lost and not question.unanswerable:
                raise Unreachable(f"the {self._lost.query} was not found")
            return self._answering([*before, *self._evidence()])
        if self._rounds == self._protocol.max_rounds:
            raise Unreachable("the rounds do not suffice")
        return self._searching(before)

    # Where it stands

    @property
    def _lost(self) -> Lookup | None:
        """What was looked for often enough and is not to be found."""
        for lookup in self._batch:
            known = self._plans.tries(lookup) >= self._tries or settled(lookup, self._observed, self._documents)
            if lookup not in self._found and known:
                return lookup
        return None

    def _stage(self) -> int:
        """The first stage that is not done; the last one, if all are."""
        plan = self._question.plan
        return next((n for n, stage in enumerate(plan) if any(k not in self._found for k in stage)), len(plan) - 1)

    def _stage_missing(self) -> list[Lookup]:
        return [lookup for lookup in self._question.plan[self._stage()] if lookup not in self._found]

    def _next_batch(self) -> list[Lookup]:
        if self._rounds == 0 and self._fill:
            return [lookup for stage in self._question.plan for lookup in stage]
        missing = self._stage_missing()
        return missing if self._plans.parallel else missing[:1]

    # What is said

    def _block(self, role: Role, text: str) -> str:
        """A block, or plain text where the protocol has no tag for it."""
        return (
            f"{self._protocol.opening(role)}{text}{self._protocol.closing(role)}"
            if role in self._protocol.tags
            else text
        )

    def _beginning(self) -> list[str]:
        """The restated question, where it leans on an earlier one, and the first thought."""
        question, stage = self._question, self._stage()
        parts: list[str] = []
        if question.history and "restated" in self._protocol.tags:
            parts.append(self._block("restated", f"What is {words.wanted(question.plan[0])}?"))
        return [*parts, self._block("thought", words.need(question, question.plan[stage], stage, start="I need"))]

    def _looking_back(self) -> list[str]:
        """What the last round gave, what is missing, and what comes now: as a merge, a reflection or a thought."""
        said, stage = self._said(), self._stage()
        missing = self._stage_missing()
        if self._protocol.plans == 1:
            return [" ".join([*said, *([] if self._lost else self._concluded())])]
        apart = "merge" in self._protocol.tags
        if self._lost:
            text = " ".join(said)
        elif not missing:
            text = " ".join([*said, *self._concluded(), "Nothing is missing."])
        elif apart and missing == list(self._question.plan[stage]) and stage and not self._repeated(missing):
            text = " ".join([*said, f"Missing: {words.later(self._question, stage - 1).removeprefix('then ')}."])
        else:
            text = " ".join([*said, words.need(self._question, missing, stage, start="Missing:")])
        role: Role = "merge" if apart else "reflect" if "reflect" in self._protocol.tags else "thought"
        parts = [self._block(role, text)]
        if apart and missing and not self._lost:
            start = "Again" if self._repeated(missing) else "Now"
            parts.append(self._block("thought", words.need(self._question, missing, stage, start=start)))
        return parts

    def _repeated(self, missing: Sequence[Lookup]) -> bool:
        return any(self._plans.tries(lookup) for lookup in missing)

    def _said(self) -> list[str]:
        question, cited = self._question, self._protocol.numbered
        parts: list[str] = []
        for lookup in self._batch:
            if finding := self._found.get(lookup):
                parts += words.said(finding, question, cited=cited)
                continue
            weighed = history(lookup, self._observed, self._documents) if lookup.when == "in" else ""
            parts += [*([weighed] if weighed else []), words.not_found(lookup)]
            if self._fill:
                break
        return parts

    def _concluded(self) -> list[str]:
        return words.concluded(self._question, self._found, cited=self._protocol.numbered)

    def _by_heart(self, lookup: Lookup) -> list[str]:
        parts = [self._block("thought", f"I know the {lookup.query}: {lookup.values[0]}.")]
        if "reflect" in self._protocol.tags:
            parts.append(self._block("reflect", "It is certain."))
        return parts

    def _searching(self, before: list[str]) -> TeacherTurn:
        self._batch = self._next_batch()
        written = self._plans.write(self._batch, chain=self._fill and self._rounds == 0)
        self._rounds += 1
        return TeacherTurn("\n".join([*before, self._block("search", written)]), "search")

    def _evidence(self) -> list[str]:
        findings = [self._found[k] for stage in self._question.plan for k in stage if k in self._found]
        if "evidence" not in self._protocol.tags or not findings:
            return []
        if self._protocol.numbered:
            lines = [f"- {words.claim(finding, self._question)}. {finding.cites}" for finding in findings]
        else:
            lines = list(dict.fromkeys(sentence for finding in findings for sentence in finding.sentences()))
        return [self._block("evidence", "\n" + "".join(f"{line}\n" for line in lines))]

    def _answering(self, before: list[str]) -> TeacherTurn:
        answer = UNKNOWN if self._question.unanswerable else self._question.answers[0]
        if self._protocol.answer_in == "boxed":
            answer = f"\\boxed{{{answer}}}"
        return TeacherTurn("\n".join([*before, self._block("answer", answer)]), "answer")
