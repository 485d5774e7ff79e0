"""The batch of the transformers engine beside `generate` alone: padding, positions, who comes and who goes."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agent.policies.base import Sampling

pytestmark = pytest.mark.train

KINDS: dict[str, dict[str, Any]] = {
    "LlamaConfig": {"rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 10_000.0}},
    "Qwen2Config": {},
    "Qwen3Config": {"head_dim": 16},
    "MistralConfig": {"sliding_window": 16},
    "Gemma2Config": {"sliding_window": 16},
}
"""The last two see only some tokens back, in all layers or in each second one."""
PROMPTS = [tuple((7 * n + k) % 90 + 5 for k in range(3 + 11 * n)) for n in range(6)]


def random_model(kind: str) -> Any:
    """Of two layers, with weights large enough that tokens differ by much, and norms and biases that all differ."""
    import torch
    import transformers

    torch.manual_seed(3)  # pyright: ignore[reportUnknownMemberType]
    config: Any = getattr(transformers, kind)(
        vocab_size=100, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.6,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, **{"head_dim": 8, **KINDS[kind]},
    )  # fmt: skip
    made: Any = transformers.AutoModelForCausalLM
    model = made.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 1:
                weight += 0.3 * torch.randn_like(weight)
    return model


async def continued(engine: Any, prompt: Sequence[int], tokens: int) -> list[tuple[int, float]]:
    from agent.policies.torch_engine import Session

    sampled: list[tuple[int, float]] = []
    async for batch in Session(engine).sample(prompt, Sampling(), ends=frozenset({2}), max_tokens=tokens):
        sampled += batch
    return sampled


@pytest.mark.parametrize(("kind", "together"), [*((kind, None) for kind in KINDS), ("Qwen3Config", True)])
def test_a_batch_says_what_generate_says_of_each_prompt_alone(
    kind: str, together: bool | None, monkeypatch: pytest.MonkeyPatch
):
    import torch

    from agent.policies import torch_engine, torch_kv_buffer

    monkeypatch.setattr(torch_engine, "PIECE_TOKENS", 70 if together else 7)
    monkeypatch.setattr(torch_kv_buffer, "AHEAD", 2)
    model = random_model(kind)
    engine = torch_engine.TorchEngine(model, device="cpu", rows=4, together=together)

    async def scene():
        async with asyncio.timeout(60):
            return await asyncio.gather(*(continued(engine, prompt, 6 + 5 * n) for n, prompt in enumerate(PROMPTS)))

    try:
        said = asyncio.run(scene())
    finally:
        engine.close()
    for n, (prompt, ours) in enumerate(zip(PROMPTS, said, strict=True)):
        theirs = model.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), do_sample=False,
            max_new_tokens=6 + 5 * n, return_dict_in_generate=True, output_logits=True,
        )  # fmt: skip
        assert [number for number, _ in ours] == theirs.sequences[0, len(prompt) :].tolist()
        for (number, logprob), logits in zip(ours, theirs.logits, strict=True):
            assert logprob == pytest.approx(logits[0].float().log_softmax(-1)[number].item(), abs=1e-3)
    assert len({number for ours in said for number, _ in ours}) > 3
