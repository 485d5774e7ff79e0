"""The answer that a document gives itself: of a section whose heading is the question, what stands under it.

Questions and answers, help pages and glossaries have such sections. A small policy reads single words out of them, or
answers with the heading; so the loop quotes them. A general model reads and answers as it always does.
"""

import re
from typing import Final

from agent.checks.tokens import sentences
from agent.evidence import Passage
from agent.loop.recorder import Recorder
from agent.protocols.parse import Block
from agent.sources.titles import is_its_question, own_section

_MOST_CHARS: Final = 400
"""Of an answer; its first sentence may be longer."""
_POINTER: Final = re.compile(r"\s*\((?:\[[^\]]*\]\([^)]*\)(?:,\s*)?)+\)")
"""Links in brackets to where more is said."""
_VERDICT: Final = re.compile(r"(?:yes|no)[.!](?:\s+|$)", re.IGNORECASE)
"""It answers the heading alone: a question like it may be the other way round."""
_PROSE: Final = re.compile(r"[\"'“`(]?\w")


def quote_section(recorder: Recorder) -> bool:
    """Answer with the section whose heading is the question, if one was shown; gives whether it did."""
    question = recorder.trace.question
    section = own_section(recorder.trace.passages, question)
    said = _first_sentences(section) if section else []
    if section and said and not is_its_question(section, question):
        said = [sentence for sentence in (_VERDICT.sub("", said[0]), *said[1:]) if sentence]
    if section is None or not said:
        return False
    claims = "\n".join(f"- {sentence} [{section.number}]" for sentence in said)
    recorder.block(Block("evidence", claims), segments=())
    recorder.answer(" ".join(said), by_loop=True)
    return True


def _first_sentences(section: Passage) -> list[str]:
    """Those that fit; of a section that begins with a list, a table or code, none."""
    kept: list[str] = []
    text = section.text.partition("\n\n")[0]
    if not _PROSE.match(text):
        return []
    for sentence in sentences(text):
        plain = _POINTER.sub("", " ".join(text[sentence.start : sentence.end].split()))
        if kept and len(" ".join([*kept, plain])) > _MOST_CHARS:
            break
        kept.append(plain)
    return kept
