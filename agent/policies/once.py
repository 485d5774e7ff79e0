"""One turn of a policy outside any rollout: a prompt in, its turn out. No protocol, no tools, no history."""

from contextlib import aclosing
from typing import Final

from agent.policies.base import Policy, Sampling, open_context
from agent.protocols.base import TextProtocol

MAX_TOKENS: Final = 1024

_PLAIN: Final = TextProtocol(
    name="plain",
    prompt="{question}\n",
    instructions="Do what is asked, exactly in the form that is asked for.",
    tags={},
    plan="queries",
    stops=(),
)


async def ask_once(policy: Policy, prompt: str, *, max_tokens: int = MAX_TOKENS) -> str:
    """Let a policy answer a prompt, greedily.

    Raises:
        PolicyError: the engine failed, or ContextFull where the prompt is too long.
    """
    context = await open_context(policy, _PLAIN, prompt)
    async with aclosing(context.generate(Sampling(), stop=(), max_tokens=max_tokens)) as chunks:
        return "".join([chunk.text async for chunk in chunks])
