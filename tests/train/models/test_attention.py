from typing import Any

import pytest

torch = pytest.importorskip("torch")

import transformers  # noqa: E402 - only where torch is

from agent.policies.torch_rows import cache_argument  # noqa: E402
from train.models.attention import NAME, blocked, use_blocked  # noqa: E402

pytestmark = pytest.mark.train


@pytest.mark.parametrize("length", [1, 127, 128, 129, 600])
def test_attention_in_blocks_is_causal_attention(length: int) -> None:
    torch.manual_seed(length)
    query = torch.randn(2, 4, length, 32, requires_grad=True)
    key, value = (torch.randn(2, 2, length, 32, requires_grad=True) for _ in range(2))
    mine, _ = blocked(torch.nn.Identity(), query, key, value, None)
    whole = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    theirs = whole.transpose(1, 2)
    assert torch.allclose(mine, theirs, atol=1e-5)
    weigh = torch.randn_like(theirs)
    grads = [torch.autograd.grad((out * weigh).sum(), (query, key, value)) for out in (mine, theirs)]
    assert all(torch.allclose(one, two, atol=1e-4) for one, two in zip(*grads, strict=True))


def test_gradients_in_half_precision_are_those_of_float32_up_to_its_rounding() -> None:
    torch.manual_seed(2)
    query, key, value = (torch.randn(2, heads, 300, 32, requires_grad=True) for heads in (4, 2, 2))
    weigh = torch.randn(2, 300, 4, 32)
    whole, _ = blocked(torch.nn.Identity(), query, key, value, None)
    exact = torch.autograd.grad((whole * weigh).sum(), (query, key, value))
    with torch.autocast("cpu", torch.bfloat16):
        halved, _ = blocked(torch.nn.Identity(), query, key, value, None)
    assert halved.dtype == torch.bfloat16
    rough = torch.autograd.grad((halved * weigh).sum(), (query, key, value))
    assert all(near.dtype == torch.float32 for near in rough)
    assert all((near - grad).norm() < 0.02 * grad.norm() for near, grad in zip(rough, exact, strict=True))


def test_what_comes_later_changes_nothing_that_came_before() -> None:
    query, key, value = (torch.randn(1, 2, 300, 32) for _ in range(3))
    before, _ = blocked(torch.nn.Identity(), query, key, value, None)
    key[:, :, 280:] = 7
    value[:, :, 280:] = 7
    after, _ = blocked(torch.nn.Identity(), query, key, value, None)
    assert torch.equal(before[:, :280], after[:, :280])


def small(kind: str, **more: Any) -> Any:
    torch.manual_seed(1)
    config = getattr(transformers, kind)(
        vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, initializer_range=0.5, pad_token_id=0, **more,
    )  # fmt: skip
    model: Any = transformers.AutoModelForCausalLM
    return model.from_config(config).eval()


@pytest.mark.parametrize("kind", ["LlamaConfig", "Qwen2Config", "Qwen3Config"])
def test_a_model_is_trained_in_blocks_and_sampled_from_as_usual(kind: str) -> None:
    model, usual = small(kind), small(kind)
    assert use_blocked(model)
    ids = torch.tensor([[7, 8, 9, 10, 11, 12, 0, 0], [3, 4, 5, 6, 7, 8, 9, 10]])
    right = (ids != 0).long()
    trained, expected = model(ids, attention_mask=right).logits, usual(ids, attention_mask=right).logits
    assert torch.allclose(trained[right.bool()], expected[right.bool()], atol=1e-4)
    left = right.flip(-1)  # as an engine pads; training does not look at masks
    with torch.inference_mode():
        sampled, expected = model(ids, attention_mask=left).logits, usual(ids, attention_mask=left).logits
        assert torch.allclose(sampled[left.bool()], expected[left.bool()], atol=1e-4)
        kept = model(ids[:, :5], use_cache=True).past_key_values
        continued = model(ids[:, 5:], **{cache_argument(model): kept}).logits
        assert torch.allclose(continued, usual(ids).logits[:, 5:], atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "more"), [("MistralConfig", {"sliding_window": 4}), ("Gemma2Config", {"sliding_window": 4})]
)
def test_a_model_that_attends_in_another_way_is_left_as_it_is(kind: str, more: dict[str, Any]) -> None:
    model = small(kind, **more)
    before = model.config._attn_implementation
    assert not use_blocked(model)
    assert model.config._attn_implementation == before != NAME
