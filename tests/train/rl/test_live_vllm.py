"""vLLM with live weights. It runs in vLLM's own environment, which needs no TRL."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from agent.policies.base import Sampling
from agent.protocols import protocol_named
from tests.train.rl.small import HUB, hot_checkpoint

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]
if importlib.util.find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")


def test_rollouts_after_a_refresh_are_sampled_with_the_new_weights(tmp_path: Path) -> None:
    from train.rl.live_vllm import VllmLive

    hot = transformers.AutoModelForCausalLM.from_pretrained(hot_checkpoint(tmp_path / "hub"), dtype=torch.float32)
    arguments = {"dtype": "float32", "enforce_eager": True, "max_model_len": 1024, "kv_cache_memory_bytes": 1 << 28}
    live = VllmLive(str(HUB), arguments=arguments)
    try:
        policy = live.refresh(hot)
        context = policy.open(protocol_named("multisearch"), "Who wrote the book?")
        asyncio.run(_said(context))
    finally:
        live.close()
    prompt, said = context.segments
    assert prompt.ids is not None
    assert said.ids is not None
    assert said.logprobs is not None
    ids = torch.tensor([[*prompt.ids, *said.ids]])
    with torch.no_grad():
        logprobs = hot(input_ids=ids).logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]
    assert torch.allclose(logprobs[-len(said.ids) :], torch.tensor(said.logprobs), atol=1e-3)


async def _said(context: Any) -> None:
    async for _ in context.generate(Sampling(temperature=1.0, seed=1), stop=["</search>"], max_tokens=40):
        pass
