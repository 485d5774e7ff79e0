"""What cannot be trained is refused with a sentence: other people's checkpoints, adapters, tokenizers, and recipes."""

import importlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("peft")

from agent.errors import AgentError, SetupError  # noqa: E402 - only where torch is
from agent.protocols import protocol_named  # noqa: E402
from agent.protocols.chat import CHAT_TEMPLATES  # noqa: E402
from tests.train.starts import recipe, rows_file, start, write_tokenizer  # noqa: E402
from train.common.recipe import AdapterSettings  # noqa: E402
from train.models.pretrained import Pretrained, check_chat, open_pretrained  # noqa: E402
from train.sft.run import SftRun  # noqa: E402

transformers: Any = importlib.import_module("transformers")
safetensors: Any = importlib.import_module("safetensors.torch")
pytestmark = pytest.mark.train

RANK = 8


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("starts")
    rows_file(made)
    start("llama", made / "llama")
    return made


@pytest.fixture(scope="module")
def llama(folder: Path) -> Path:
    return folder / "llama"


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> SftRun:
    """A Llama with an adapter, after two steps."""
    made = recipe(folder / "llama", folder / "rows.jsonl", adapter=RANK, optimizer={"tokens": 1500})
    run = SftRun(made, tmp_path_factory.mktemp("run"))
    assert run.run(lambda _: None)
    return run


def refused(begin: Path | str, *, adapter: AdapterSettings | None = None) -> str:
    with pytest.raises(AgentError) as said:
        open_pretrained(str(begin), adapter=adapter, bf16=False)
    assert isinstance(said.value, SetupError)
    return str(said.value)


def copied(start: Path, there: Path) -> Path:
    return Path(shutil.copytree(start, there))


def change(path: Path, **fields: Any) -> None:
    said = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(said | fields), encoding="utf-8")


def test_an_adapter_of_another_model_is_refused(folder: Path, trained: SftRun, tmp_path: Path) -> None:
    foreign = copied(trained.out / "adapter", tmp_path / "foreign")
    for kind, shape in (("llama", {"hidden_size": 128}), ("llama", {"num_hidden_layers": 1}), ("gemma3", {})):
        other = start(kind, tmp_path / f"{kind}{len(list(tmp_path.iterdir()))}", **shape)
        change(foreign / "adapter_config.json", base_model_name_or_path=str(other))
        if not shape:
            safetensors.save_file({"x": torch.ones(1)}, foreign / "adapter_model.safetensors")
        assert "does not fit" in refused(foreign, adapter=AdapterSettings(rank=RANK, alpha=2 * RANK))
        assert "does not fit" in refused(foreign)


def test_an_adapter_of_another_rank_or_kind_is_refused(trained: SftRun, tmp_path: Path) -> None:
    assert "rank 8 and alpha 16" in refused(trained.out / "adapter", adapter=AdapterSettings(rank=4, alpha=8))
    strange = copied(trained.out / "adapter", tmp_path / "strange")
    for said in ({"use_dora": True}, {"use_dora": False, "init_lora_weights": "pissa_niter_4"}):
        change(strange / "adapter_config.json", **said)
        assert "merge it into its model" in refused(strange)
    change(strange / "adapter_config.json", init_lora_weights=True, base_model_name_or_path=str(tmp_path / "gone"))
    assert "is an adapter, and its model is not there" in refused(strange)
    change(strange / "adapter_config.json", base_model_name_or_path=None)
    assert "does not name its model" in refused(strange)
    (strange / "adapter_config.json").write_text("{", encoding="utf-8")
    assert "cannot be used" in refused(strange)


def test_damaged_weights_are_refused(llama: Path, trained: SftRun, tmp_path: Path) -> None:
    broken = copied(llama, tmp_path / "broken")
    weights = (broken / "model.safetensors").read_bytes()
    for damaged in (weights[:-1000], weights[:100], b"", b"\xff" * 64):
        (broken / "model.safetensors").write_bytes(damaged)
        assert "its weights are damaged" in refused(broken)
    partly = safetensors.load_file(llama / "model.safetensors")
    partly.pop("model.layers.1.mlp.up_proj.weight")
    safetensors.save_file(partly, broken / "model.safetensors", metadata={"format": "pt"})
    assert "lacks weights of its model, model.layers.1.mlp.up_proj.weight" in refused(broken)
    adapter = copied(trained.out / "adapter", tmp_path / "adapter")
    weights = (adapter / "adapter_model.safetensors").read_bytes()
    (adapter / "adapter_model.safetensors").write_bytes(weights[: len(weights) // 2])
    assert "is damaged" in refused(adapter)


def test_an_encoder_is_refused(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=600,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        eos_token_id=2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers.BertForMaskedLM(config).save_pretrained(tmp_path)
    write_tokenizer(tmp_path)
    assert "an encoder" in refused(tmp_path)


def test_a_kind_that_transformers_does_not_know_is_refused_and_its_code_is_not_run(llama: Path, tmp_path: Path) -> None:
    strange = copied(llama, tmp_path / "strange")
    code = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\n"
    (strange / "modeling_unknown.py").write_text(code, encoding="utf-8")
    own = {
        "AutoConfig": "modeling_unknown.UnknownConfig",
        "AutoModelForCausalLM": "modeling_unknown.UnknownForCausalLM",
    }
    change(strange / "config.json", model_type="unknown", architectures=["UnknownForCausalLM"], auto_map=own)
    assert "that transformers loads by itself" in refused(strange)
    assert not (tmp_path / "ran").exists()


def test_a_tokenizer_without_an_end_or_of_another_model_is_refused(llama: Path, tmp_path: Path) -> None:
    strange = copied(llama, tmp_path / "strange")
    change(strange / "config.json", eos_token_id=None)
    change(strange / "tokenizer_config.json", eos_token=None)
    (strange / "generation_config.json").unlink()
    assert "names no eos_token" in refused(strange)
    change(strange / "tokenizer_config.json", eos_token="<end of it all>")
    assert "has no token <end of it all>" in refused(strange)
    small = start("llama", tmp_path / "small")
    said = json.loads((small / "tokenizer.json").read_text(encoding="utf-8"))
    said["added_tokens"].append(said["added_tokens"][0] | {"id": 600, "content": "<more>"})
    (small / "tokenizer.json").write_text(json.dumps(said), encoding="utf-8")
    assert "601 tokens, and the model embeddings of 600" in refused(small)


def test_a_protocol_inside_of_a_chat_needs_the_marks_of_that_chat(llama: Path) -> None:
    begun = open_pretrained(str(llama), adapter=None, bf16=False)
    plain = protocol_named("cairn")
    chatml, llama3 = (plain.model_copy(update={"chat": CHAT_TEMPLATES[name]}) for name in ("chatml", "llama3"))
    check_chat(begun, plain, "here")
    check_chat(begun, chatml, "here")
    with pytest.raises(SetupError, match=r"has no token <\|begin_of_text\|>"):
        check_chat(begun, llama3, "here")


def test_a_start_without_a_chat_template_is_trained_without_one(folder: Path, tmp_path: Path) -> None:
    plain = start("llama", tmp_path / "plain")
    (plain / "chat_template.jinja").unlink()
    run = SftRun(recipe(plain, folder / "rows.jsonl", optimizer={"tokens": 1000}), tmp_path / "run")
    assert run.run(lambda _: None)
    assert not (tmp_path / "run" / "hub" / "chat_template.jinja").exists()


def test_rows_that_are_all_too_long_are_refused(folder: Path, tmp_path: Path) -> None:
    made = recipe(folder / "llama", folder / "rows.jsonl", data={"max_tokens": 20})
    with pytest.raises(SetupError, match="no row to learn from that is at most 20 tokens long"):
        SftRun(made, tmp_path).run(lambda _: None)
    with pytest.raises(SetupError, match="write max_tokens = 2048 or less"):
        SftRun(recipe(folder / "llama", folder / "rows.jsonl", data={"max_tokens": 5000}), tmp_path)


def test_targets_that_the_model_does_not_have_are_refused(llama: Path) -> None:
    said = refused(llama, adapter=AdapterSettings(rank=4, alpha=8, targets=("q_proj", "query_key_value")))
    assert "no layer 'query_key_value' for an adapter; it has down_proj, gate_proj, k_proj" in said
    assert "shares its weights" in refused(llama, adapter=AdapterSettings(rank=4, alpha=8, targets=("lm_head",)))
    made: Pretrained = open_pretrained(
        str(llama), adapter=AdapterSettings(rank=4, alpha=8, targets=("v_proj",)), bf16=False
    )
    assert len(made.state()) == 4


def test_a_recipe_that_ends_nowhere_or_twice_is_refused(folder: Path) -> None:
    for settings in ({"tokens": 0}, {"epochs": 2}):
        with pytest.raises(ValueError, match="`tokens` or `epochs`"):
            recipe(folder / "llama", folder / "rows.jsonl", optimizer=settings)


def test_a_state_of_another_adapter_is_not_gone_on_with(folder: Path, trained: SftRun) -> None:
    other = recipe(folder / "llama", folder / "rows.jsonl", adapter=4)
    run = SftRun(other, trained.out)
    with pytest.raises(SetupError, match="another recipe"):
        run.resume()
