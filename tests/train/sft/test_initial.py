from pathlib import Path
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")

from tokenizers import Tokenizer  # noqa: E402 - only where torch is
from transformers import Qwen3Config, Qwen3ForCausalLM  # noqa: E402

from agent.errors import SetupError  # noqa: E402
from train.sft.initial import begin_from  # noqa: E402
from train.sft.tokenizer import train_tokenizer  # noqa: E402

pytestmark = pytest.mark.train
TEXTS = ["the birthplace of Trieste is here <result>\n[1] web · The birthplace\n</result>"] * 3


def model(tokenizer: Tokenizer, *, width: int = 32, layers: int = 2) -> Qwen3ForCausalLM:
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=width,
            intermediate_size=48,
            num_hidden_layers=layers,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=32,
            tie_word_embeddings=True,
        )
    )


def save(folder: Path, tokenizer: Tokenizer, *, layers: int = 2) -> Qwen3ForCausalLM:
    made = model(tokenizer, layers=layers)
    cast(Any, made).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return made


def rows(of: Qwen3ForCausalLM) -> Any:
    return cast(Any, of).get_input_embeddings().weight.detach()


def test_with_the_same_vocabulary_it_is_the_same_model(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, vocabulary=320)
    old, new = save(tmp_path, tokenizer), model(tokenizer)
    assert begin_from(new, tokenizer, tmp_path) == 1.0
    ids = torch.tensor([tokenizer.encode(TEXTS[0]).ids])
    assert torch.allclose(new(ids).logits, old(ids).logits, atol=1e-6)


@pytest.mark.parametrize("layers", [3, 4, 5])
def test_a_deeper_model_says_the_same_at_first_and_learns_in_every_layer(layers: int, tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, vocabulary=320)
    old, new = save(tmp_path, tokenizer), model(tokenizer, layers=layers)
    begin_from(new, tokenizer, tmp_path)
    ids = torch.tensor([tokenizer.encode(TEXTS[0]).ids])
    logits = cast(Any, new)(ids).logits
    assert torch.allclose(logits, old(ids).logits, atol=1e-6)
    logits.logsumexp(-1).sum().backward()
    for layer in cast(Any, new).model.layers:
        assert layer.self_attn.o_proj.weight.grad.abs().max() > 0
        assert layer.mlp.down_proj.weight.grad.abs().max() > 0


def test_a_model_of_fewer_layers_is_refused(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, vocabulary=320)
    save(tmp_path, tokenizer, layers=3)
    with pytest.raises(SetupError, match="another shape: it has 3 layers, more than 2"):
        begin_from(model(tokenizer), tokenizer, tmp_path)


def test_a_new_token_begins_as_the_mean_of_its_pieces(tmp_path: Path) -> None:
    few, more = train_tokenizer(TEXTS, vocabulary=300), train_tokenizer(TEXTS, vocabulary=340)
    old, new = save(tmp_path, few), model(more)
    shared = begin_from(new, more, tmp_path)
    assert 0.5 < shared < 1.0
    fresh = next(number for token, number in more.get_vocab().items() if few.token_to_id(token) is None)
    pieces = few.encode(more.decode([fresh]), add_special_tokens=False).ids
    assert torch.allclose(rows(new)[fresh], rows(old)[pieces].mean(0), atol=1e-6)


def test_a_checkpoint_of_another_shape_is_refused(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, vocabulary=320)
    save(tmp_path, tokenizer)
    with pytest.raises(SetupError, match="another shape"):
        begin_from(model(tokenizer, width=64), tokenizer, tmp_path)


def test_no_checkpoint_is_a_sentence(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(TEXTS, vocabulary=320)
    with pytest.raises(SetupError, match="cannot be begun from"):
        begin_from(model(tokenizer), tokenizer, tmp_path / "nowhere")
