"""A copy of a model without its adapter, which rollouts on a GPU are sampled from: it computes what the model does."""

import importlib
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("peft")

from tests.train.starts import KINDS, start  # noqa: E402
from train.common.recipe import AdapterSettings  # noqa: E402
from train.models.pretrained import open_pretrained, plain_model  # noqa: E402

transformers: Any = importlib.import_module("transformers")
pytestmark = pytest.mark.train


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_without_the_adapter_computes_the_same(kind: str, tmp_path: Path) -> None:
    start(kind, tmp_path / kind)
    begun = open_pretrained(str(tmp_path / kind), adapter=AdapterSettings(rank=4, alpha=8), bf16=False)
    with torch.no_grad():
        for name, weight in begun.trained.named_parameters():
            if "lora_B" in name:  # of a new adapter they are 0
                weight.normal_(0, 0.1)
        ids = torch.arange(40)[None]
        copy = plain_model(begun.trained).eval()
        assert not any(tensor.is_meta for tensor in (*copy.parameters(), *copy.buffers()))
        there, here = begun.trained.eval()(input_ids=ids).logits, copy(input_ids=ids).logits
    torch.testing.assert_close(here, there, rtol=1e-4, atol=1e-4)


def test_in_half_the_digits_positions_keep_theirs(tmp_path: Path) -> None:
    start("llama", tmp_path / "llama")
    begun = open_pretrained(str(tmp_path / "llama"), adapter=None, bf16=False)
    copy = plain_model(begun.trained, dtype=torch.bfloat16)
    assert {weight.dtype for weight in copy.parameters()} == {torch.bfloat16}
    kept = dict(begun.model.named_buffers())
    assert kept
    for name, buffer in copy.named_buffers():
        torch.testing.assert_close(buffer, kept[name], rtol=0, atol=0)
