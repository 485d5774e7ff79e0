"""Search with Cairn, answer with another model: gather evidence, look at it, and hand it on.

    python examples/evidence_for_another_model.py
    python examples/evidence_for_another_model.py http://127.0.0.1:11434/v1 llama3.2:3b

Without an endpoint only the evidence is shown. It runs on the built-in little world, without any network.
"""

import asyncio
import sys

from agent import build_agent, load_settings
from agent.outbound.llm import LlmClient
from agent.rstool import Downstream, EvidenceBundle, SizeBudget, answer_with, gather

QUESTION = "Who does the teacher of the person who wed Clisel Lilmane now work for?"


async def search(question: str) -> EvidenceBundle:
    """One search of the built-in agent, for at most 4,000 characters of evidence."""
    agent = build_agent(load_settings(world="test-v2"))
    try:
        return await gather(question, agent=agent, budget=SizeBudget(chars=4000))
    finally:
        await agent.aclose()


def lines_of(bundle: EvidenceBundle) -> list[str]:
    """What a program reads of a bundle; a model reads `bundle.to_prompt()`."""
    lines: list[str] = [] if bundle.claims else [bundle.why_empty]
    for claim in bundle.claims:
        lines.append(f"{claim.check:10}  {claim.text}")
        for quote in claim.quotes:
            source = bundle.sources[quote.source - 1]
            lines.append(f'            "{quote.text}" ({source.url}, {quote.start}–{quote.end})')
    return lines


async def main(base_url: str = "", model: str = "") -> Downstream | None:
    bundle = await search(QUESTION)
    sys.stdout.write("\n".join(lines_of(bundle)) + "\n")
    if not base_url:
        return None
    async with LlmClient(base_url=base_url, model=model) as client:
        said = await answer_with(bundle, client)
    sys.stdout.write(f"{said.model}: {said.answer or said.why}\nCairn: {said.ours}\n")
    return said


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
