import pytest

torch = pytest.importorskip("torch")

from train.attention import blocked  # noqa: E402 - only where torch is

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


def test_what_comes_later_changes_nothing_that_came_before() -> None:
    query, key, value = (torch.randn(1, 2, 300, 32) for _ in range(3))
    before, _ = blocked(torch.nn.Identity(), query, key, value, None)
    key[:, :, 280:] = 7
    value[:, :, 280:] = 7
    after, _ = blocked(torch.nn.Identity(), query, key, value, None)
    assert torch.equal(before[:, :280], after[:, :280])
