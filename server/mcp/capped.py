"""A bundle whose JSON form is no larger than a client takes. The text form has a budget of its own.

The two differ where a source's words are full of what a text form leaves out, for example invisible characters.
"""

from typing import Final

from agent.rstool import EvidenceBundle
from agent.rstool.budget import estimate_tokens

MOST_BYTES: Final = 256 * 1024


def capped(bundle: EvidenceBundle, *, most_bytes: int = MOST_BYTES) -> EvidenceBundle:
    """The bundle, with as many claims from the end left out, then of its searches, as there are too many bytes."""
    while _bytes(bundle) > most_bytes and bundle.claims:
        bundle = _without_last_claim(bundle)
    while _bytes(bundle) > most_bytes and bundle.tried:
        bundle = bundle.model_copy(update={"tried": bundle.tried[: len(bundle.tried) // 2]})
    return bundle


def _without_last_claim(bundle: EvidenceBundle) -> EvidenceBundle:
    claims = bundle.claims[:-1]
    cited = {number for claim in claims for number in claim.sources}
    less = bundle.model_copy(
        update={
            "claims": claims,
            "sources": tuple(source for source in bundle.sources if source.number in cited),
            "size": bundle.size.model_copy(update={"dropped_claims": bundle.size.dropped_claims + 1}),
        }
    )
    text = less.to_prompt()
    size = less.size.model_copy(update={"chars": len(text), "tokens": estimate_tokens(text)})
    return less.model_copy(update={"size": size})


def _bytes(bundle: EvidenceBundle) -> int:
    return len(bundle.model_dump_json().encode("utf-8", "replace"))
