"""Finding 31: the folder of an encoder had its pickled weights run code, through its configuration files."""

import json
import subprocess
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.forked import Commands
from tests.attacks.product import Product

_MAKE = """
import json, os, pathlib, shutil, sys
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

outer, mark = pathlib.Path(sys.argv[1]), sys.argv[2]
out = outer / "inner"
sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
BertModel(BertConfig(vocab_size=40, max_position_embeddings=32, **sizes)).save_pretrained(out)
marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
tokenizer = Tokenizer(models.WordLevel({mark: at for at, mark in enumerate(marks)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(out)
(out / "1_Pooling").mkdir()
pooling = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
(out / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
parts = [("Transformer", ""), ("Pooling", "1_Pooling")]
modules = [
    {"idx": at, "name": str(at), "path": path, "type": f"sentence_transformers.models.{kind}"}
    for at, (kind, path) in enumerate(parts)
]
(out / "modules.json").write_text(json.dumps(modules))
shutil.copytree(out, outer.with_name("honest"))

class Weights:
    def __reduce__(self):
        return os.system, (f"touch {mark}",)

config = json.loads((out / "config.json").read_text())
(out / "config.json").write_text(json.dumps({key: value for key, value in config.items() if "dtype" not in key}))
(out / "model.safetensors").unlink()
torch.save({"weight": torch.zeros(2), "harm": Weights()}, out / "pytorch_model.bin")
(out / "sentence_bert_config.json").write_text(json.dumps({"model_args": {"weights_only": False}}))
"""
_ROUTER = {
    "types": {"inner": "sentence_transformers.SentenceTransformer"},
    "structure": {"query": ["inner"], "document": ["inner"]},
    "parameters": {"default_route": "query"},
}
_ROUTED = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}]


@pytest.fixture
def encoding(product: Product, tmp_path: Path) -> Generator[Product]:
    """The product, whose commands start with the libraries of the extra dense imported."""
    libraries = ("faiss", "sentence_transformers")
    look = f"import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, {libraries})))"
    if subprocess.run([str(product.python), "-P", "-c", look], capture_output=True, check=False).returncode != 0:
        pytest.skip("the product lacks the extra dense")
    more = Commands(product.python, product.environment, tmp_path / "log", preloaded=libraries)
    with closing(more) as commands:
        yield replace(product, commands=commands)


@pytest.mark.slow
def test_an_encoder_unpickles_nothing_and_names_no_class_of_its_own(encoding: Product, tmp_path: Path) -> None:
    product = encoding
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Dune was written by Frank Herbert.", encoding="utf-8")
    model, mark = tmp_path / "model", tmp_path / "mark"
    make = [str(product.python), "-P", "-c", _MAKE, str(model), str(mark)]
    subprocess.run(make, capture_output=True, check=True, cwd=tmp_path, env=product.environment)
    (model / "modules.json").write_text(json.dumps(_ROUTED), encoding="utf-8")
    (model / "router_config.json").write_text(json.dumps(_ROUTER), encoding="utf-8")
    (model / "config_sentence_transformers.json").write_text("{}", encoding="utf-8")

    def built(folder: Path) -> subprocess.CompletedProcess[str]:
        command = ("index", "build", "docs", "--out", f"{folder.name}-index", "--dense", folder)
        return product.run(*command, cwd=tmp_path, seconds=110)

    honest = built(tmp_path / "honest")
    assert honest.returncode == 0, honest.stderr
    for folder, why in ((model, "Router"), (model / "inner", "model_args")):
        done = built(folder)
        assert not mark.exists(), "the model's code ran"
        assert done.returncode == 1
        assert why in done.stderr
        assert "This is a bug" not in done.stderr

    card = tmp_path / "honest-index" / "dense" / "card.json"
    if not card.exists():
        card = next((tmp_path / "honest-index").rglob("card.json"))
    card.write_text(json.dumps(json.loads(card.read_text(encoding="utf-8")) | {"model": str(model)}), encoding="utf-8")
    done = product.run("index", "search", "honest-index", "Dune", cwd=tmp_path, seconds=110)
    assert not mark.exists(), "an index's card had the code of a model run"
    assert done.returncode == 1
