"""Models as encoders: real ones, by name and by folder; their prefixes; and what cannot be loaded."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from agent.errors import SetupError
from agent.sources.corpus.encoder import Encoder, prefixes, resolve
from agent.sources.corpus.libraries import need
from tests.agent.sources.corpus.encoding import MINILM, needs_model, tiny_encoder

TEXTS = ["The film Aurora Falls was directed by Lina Orr.", "Bread is baked from flour, water and salt.", "Rain."]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The packaged model, in this machine's precision."""
    return Encoder.load(MINILM)


@needs_model
def test_a_packaged_model_finds_what_is_meant_without_a_shared_word(encoder: Encoder):
    near = encoder.encode_queries(["who made the movie", "how to make a loaf", "wet weather"])
    scores = near @ encoder.encode_passages(TEXTS).T
    assert scores.argmax(axis=1).tolist() == [0, 1, 2]
    assert encoder.dim == 384


@needs_model
def test_vectors_have_length_one_and_keep_the_order_of_the_texts_however_long_these_are(encoder: Encoder):
    texts = [f"text {n} " + "word " * (n % 7 * 30) for n in range(70)]
    together = encoder.encode_passages(texts)
    assert together.dtype == np.float32
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(70), abs=1e-5)
    for at in (0, 41, 69):
        assert encoder.encode_passages([texts[at]])[0] @ together[at] > 0.999
    assert encoder.encode_passages([]).shape == (0, 384)


@needs_model
def test_half_precision_is_the_same_model_and_ranks_alike():
    whole, half = Encoder.load(MINILM, half=False), Encoder.load(MINILM, half=True)
    assert (whole.dtype, half.dtype) == ("float32", "bfloat16")
    assert whole.fingerprint == half.fingerprint
    difference = whole.encode_queries(TEXTS) @ whole.encode_passages(TEXTS).T
    difference -= half.encode_queries(TEXTS) @ half.encode_passages(TEXTS).T
    assert np.abs(difference).max() < 0.01


@needs_model
def test_a_folder_is_a_model_wherever_it_lies_and_other_weights_are_another_one(tmp_path: Path):
    first = tiny_encoder(tmp_path / "first")
    moved = shutil.copytree(first, tmp_path / "moved")
    other = tiny_encoder(tmp_path / "other", seed=1)
    prints = [Encoder.load(folder).fingerprint for folder in (first, moved, other)]
    assert prints[0] == prints[1] != prints[2]


@needs_model
def test_a_model_that_reads_less_text_is_another_one(tmp_path: Path):
    first = tiny_encoder(tmp_path / "first")
    model = need("sentence_transformers").SentenceTransformer(str(first), device="cpu")
    model.max_seq_length = 16
    short = tmp_path / "short"
    model.save(str(short), create_model_card=False)
    assert Encoder.load(first).fingerprint != Encoder.load(short).fingerprint


@needs_model
def test_the_prefixes_of_the_models_own_files_are_put_before_texts(tmp_path: Path):
    asks = {"query": "ask: ", "document": "text: "}
    plain = Encoder.load(tiny_encoder(tmp_path / "plain"))
    prompted = Encoder.load(tiny_encoder(tmp_path / "prompted", prompts=asks))
    assert (prompted.query_prefix, prompted.passage_prefix) == ("ask: ", "text: ")
    assert np.allclose(prompted.encode_queries(["rain"]), plain.encode_queries(["ask: rain"]), atol=1e-3)
    assert np.allclose(prompted.encode_passages(["rain"]), plain.encode_passages(["text: rain"]), atol=1e-3)
    assert not np.allclose(prompted.encode_queries(["rain"]), plain.encode_queries(["rain"]), atol=1e-3)


@needs_model
def test_a_prefix_that_is_given_counts_more_than_what_the_family_wants(tmp_path: Path):
    folder = tiny_encoder(tmp_path / "e5-tiny")
    assert Encoder.load(folder).query_prefix == "query: "
    assert Encoder.load(folder, query_prefix="").query_prefix == ""
    assert Encoder.load(folder, query_prefix="").passage_prefix == "passage: "


@pytest.mark.parametrize(
    ("name", "wants"),
    [
        ("intfloat/e5-base-v2", ("query: ", "passage: ")),
        ("intfloat/multilingual-e5-large", ("query: ", "passage: ")),
        ("/models/e5-small/", ("query: ", "passage: ")),
        ("nomic-ai/nomic-embed-text-v1.5", ("search_query: ", "search_document: ")),
        ("sentence-transformers/all-MiniLM-L6-v2", ("", "")),
        ("someone/fire5-like", ("", "")),
    ],
)
def test_families_are_known_by_their_names(name: str, wants: tuple[str, str]):
    assert prefixes(name, {"query": "", "document": ""}) == wants


def test_instructed_models_want_a_prefix_before_queries_only():
    for name in ("intfloat/multilingual-e5-large-instruct", "BAAI/bge-small-en-v1.5"):
        query, passage = prefixes(name, {})
        assert query
        assert not passage


@needs_model
def test_what_is_no_model_is_reported_with_the_fix(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SetupError, match=r"cannot be loaded .*name a folder with a sentence-transformers model"):
        Encoder.load(tmp_path / "empty")
    with pytest.raises(SetupError, match="there is no model folder"):
        Encoder.load(tmp_path / "nothing")


def test_a_library_that_is_missing_names_the_extra():
    with pytest.raises(SetupError, match=r"needs no_such_library.*pip install 'cairn-search\[dense\]'"):
        need("no_such_library")


def test_a_name_that_is_no_package_stays_as_it_is():
    assert resolve("intfloat/e5-base-v2") == "intfloat/e5-base-v2"


@needs_model
def test_a_folder_is_called_by_its_whole_path_wherever_it_is_named_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tiny_encoder(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    assert Encoder.load("model").name == Encoder.load("./model").name == str(tmp_path / "model")
    (tmp_path / MINILM).mkdir()
    assert Encoder.load(MINILM).dim == 384, "a folder of the same name does not hide a packaged model"


@needs_model
def test_a_model_of_the_hub_is_checked_like_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in ("plain", "strange"):
        model = tmp_path / f"models--sentence-transformers--{name}"
        (model / "refs").mkdir(parents=True)
        (model / "refs" / "main").write_text("0" * 40, encoding="utf-8")
        snapshot = model / "snapshots" / ("0" * 40)
        snapshot.parent.mkdir()
        shutil.move(tiny_encoder(tmp_path / name), snapshot)
        if name == "strange":
            (snapshot / "sentence_bert_config.json").write_text('{"model_args": {"x": 1}}', encoding="utf-8")
    assert Encoder.load("sentence-transformers/plain").fingerprint == Encoder.load("plain").fingerprint
    with pytest.raises(SetupError, match="model_args"):
        Encoder.load("strange")
