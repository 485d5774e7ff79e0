"""Which folders of encoders are loaded: none that names code, and none whose weights are pickled."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.errors import SetupError
from agent.sources.corpus.encoder import check_model


def folder_with(path: Path, **files: Any) -> Path:
    """A folder of JSON files; a name without its ending is enough, and `__` means a folder."""
    for name, content in files.items():
        file = path / f"{name.replace('__', '/')}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content), encoding="utf-8")
    return path


def modules(*kinds: str) -> list[dict[str, str]]:
    return [{"type": kind, "path": f"{at}_part" if at else ""} for at, kind in enumerate(kinds)]


def test_a_usual_model_is_loaded(tmp_path: Path):
    usual = modules(
        "sentence_transformers.models.Transformer",
        "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        "sentence_transformers.models.Dense",
        "sentence_transformers.models.Normalize",
    )
    folder = folder_with(
        tmp_path,
        modules=usual,
        sentence_bert_config={"max_seq_length": 256, "do_lower_case": False, "processing_kwargs": {"text": {}}},
        config={"architectures": ["BertModel"], "sentence_transformers": {"version": "6.2.0"}},
    )
    folder_with(folder, **{"2_part__config": {"activation_function": "torch.nn.modules.activation.Tanh"}})
    for name in ("model.safetensors", "pytorch_model.bin"):  # safe weights beside pickled ones, as many models have
        (folder / name).touch()
    check_model(folder)


@pytest.mark.parametrize(
    "files",
    [
        {"modules": modules("strange.Model")},
        {"modules": modules("sentence_transformers.SentenceTransformer")},
        {"modules": modules("sentence_transformers.models.Transformer", "sentence_transformers.models.Router")},
        {"modules": modules("sentence_transformers.base.model.torch")},
        {"modules": {"type": "sentence_transformers.models.Transformer"}},
        {"modules": ["sentence_transformers.models.Transformer"]},
        {"sentence_bert_config": {"model_args": {"weights_only": False}}},
        {"sentence_bert_config": {"model_kwargs": {"attn_implementation": "strange/kernel"}}},
        {"sentence_xlnet_config": {"tokenizer_name_or_path": "/elsewhere"}},
        {"sentence_bert_config": [1]},
        {"config": {"sbert_ce_default_activation_function": "torch.distributed.run.main"}},
        {"config": {"sentence_transformers": {"activation_fn": "os.abort"}}},
        {"config_sentence_transformers": {"activation_fn": "torch.distributed.run.main"}},
        {
            "modules": modules("sentence_transformers.models.Transformer", "sentence_transformers.models.Dense"),
            "1_part__config": {"activation_function": "torch.hub.load"},
        },
    ],
)
def test_a_folder_that_names_code_or_arguments_of_loading_is_refused(tmp_path: Path, files: dict[str, Any]):
    with pytest.raises(SetupError, match=str(tmp_path)):
        check_model(folder_with(tmp_path, **files))


def test_pickled_weights_and_endless_nesting_are_refused(tmp_path: Path):
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(SetupError, match="safetensors"):
        check_model(tmp_path)
    (tmp_path / "modules.json").write_text("[" * 100_000, encoding="utf-8")
    (tmp_path / "pytorch_model.bin").unlink()
    with pytest.raises(SetupError, match="can't be read"):
        check_model(tmp_path)
