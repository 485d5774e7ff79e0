"""What of a block the observations support: by the rules of `agent.checks`, against everything that was observed.

The supported words are the policy's own. What was observed decides only which of them count.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from agent.checks import check_claim
from agent.checks.claims import derived_claims, read_claims
from agent.evidence import Passage
from agent.trace import Claim
from train.evaluation.normalisations import unicode
from train.evaluation.words import content_words, sentences, size

BESIDE_ANSWER: Final = 2
"""Content words that a line must hold beside the answer if it is no whole sentence of a passage: "It is Trieste" says
nothing; "Her home was Trieste" does where a passage says just that."""


def supported(
    texts: Iterable[str], observed: Sequence[Passage], *, answer: str = "", beside: int = BESIDE_ANSWER
) -> list[str]:
    """Those texts that some observed passage says, each as a claim of its own.

    Args:
        texts: sentences or lines.
        observed: every passage that may support them; whatever numbers they cite.
        answer: the policy's own; a text that says little beside it is left out.
        beside: how much it must say, unless it is a whole sentence of a passage.
    """
    numbered = {number: (passage,) for number, passage in enumerate(observed, start=1)}
    own, whole = content_words(answer), {unicode(line) for passage in observed for line in sentences(passage.text)}
    said = [text for text in texts if len(content_words(text) - own) >= beside or unicode(text) in whole]
    claims = (check_claim(Claim(text=text, cites=tuple(numbered)), numbered) for text in said)
    return [claim.text for claim in claims if claim.check in ("verbatim", "close")]


def evidence_lines(text: str) -> list[str]:
    """The claims of an evidence block without their cites; a line that holds several sentences is several claims."""
    return [part.text for claim in read_claims(text) for part in derived_claims(claim.text)] or [
        claim.text for claim in read_claims(text)
    ]


def merge_lines(text: str) -> list[str]:
    """The sentences of a merge that say something about the world."""
    return [claim.text for claim in derived_claims(text)]


def words_in(passages: Iterable[Passage]) -> int:
    """Their length in words, titles included."""
    return sum(size(passage.title) + size(passage.text) for passage in passages)
