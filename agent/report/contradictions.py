"""What cannot both be true: a claim and the page that it cites, or a sentence and another document about the same."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from agent.checks import check_claim
from agent.checks.relevance import content_words
from agent.checks.tokens import sentences
from agent.evidence import Passage
from agent.report.outline import document_of
from agent.report.sentences import FoundSentence, claims_of, plain
from agent.trace import Claim, Trace

Sides = tuple[str, tuple[Passage, ...], str, tuple[Passage, ...]]
"""What is said and by whom (none: the model alone), and what is said against it and by whom."""
_READ: Final = 12


def refuted(trace: Trace, kept: Sequence[FoundSentence]) -> Iterator[Sides]:
    """The claims of a run that a sentence of a page which they cite contradicts by itself, each with that sentence.

    A claim in short whose value is in a sentence of the section that was kept is none: its relation is put wrongly.
    """
    claims, shown = claims_of(trace)
    for claim in claims:
        value = content_words(claim.text.rpartition(": ")[2])
        if claim.check == "contradicted" and not any(value <= one.words for one in kept):
            cited = [passage for number in claim.cites for passage in shown.get(number, ())]
            sides = ((said, passage) for passage in cited for said in _against(claim.text, passage))
            for against, passage in islice(sides, 1):
                yield plain(claim.text), (), against, (passage,)


def disputed(sentence: FoundSentence, passages: Sequence[Passage]) -> Iterator[Sides]:
    """Other documents about the same thing that contradict a sentence of the report.

    A page about something else that has another date or name says nothing against it: only pages with the same title,
    or whose sentence has every word of the title, are compared.
    """
    own = {document_of(passage) for passage in sentence.passages}
    topic = content_words(sentence.passages[0].title)
    if not topic:
        return
    others = [p for p in passages if document_of(p) not in own and topic & content_words(f"{p.title} {p.text}")]
    for passage in others[:_READ]:
        against = next(_against(sentence.text, passage), "")
        if against and (topic == content_words(passage.title) or topic <= content_words(against)):
            yield sentence.text, sentence.passages, against, (passage,)


def _against(text: str, passage: Passage) -> Iterator[str]:
    """The sentences of a passage that contradict a text, each by itself; none where the whole passage does not."""
    claim = Claim(text=text, cites=(1,))
    if check_claim(claim, {1: (passage,)}).check == "contradicted":
        for found in sentences(passage.text):
            said = passage.text[found.start : found.end]
            if check_claim(claim, {1: (passage.model_copy(update={"text": said}),)}).check == "contradicted":
                yield plain(said)
