"""A bundle whose JSON form is no larger than a client takes. The text form has a budget of its own.

The two differ where a source's words are full of what a text form leaves out, for example invisible characters.
"""

from typing import Final

from agent.rstool import EvidenceBundle
from agent.rstool.making import most_that_fit, weighed

MOST_BYTES: Final = 256 * 1024


def capped(bundle: EvidenceBundle, *, most_bytes: int = MOST_BYTES) -> EvidenceBundle:
    """The bundle, with as many claims from the end left out, then of its searches, as there are too many bytes."""
    count = len(bundle.claims)
    kept = most_that_fit(count, lambda kept: _bytes(_with(bundle, kept)) <= most_bytes)
    bundle = _with(bundle, kept)
    while _bytes(bundle) > most_bytes and bundle.tried:
        bundle = bundle.model_copy(update={"tried": bundle.tried[: len(bundle.tried) // 2]})
    return bundle


def _with(bundle: EvidenceBundle, kept: int) -> EvidenceBundle:
    """The bundle with the first `kept` of its claims, and what they cite."""
    dropped = len(bundle.claims) - kept
    if not dropped:
        return bundle
    claims = bundle.claims[:kept]
    cited = {number for claim in claims for number in claim.sources}
    less = {
        "claims": claims,
        "sources": tuple(source for source in bundle.sources if source.number in cited),
        "size": bundle.size.model_copy(update={"dropped_claims": bundle.size.dropped_claims + dropped}),
    }
    return weighed(bundle.model_copy(update=less))


def _bytes(bundle: EvidenceBundle) -> int:
    return len(bundle.model_dump_json().encode("utf-8", "replace"))
