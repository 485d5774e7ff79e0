"""A recorded graph gives what the model gives, or is not used."""

from pathlib import Path
from typing import Any

import pytest

from agent.sources.corpus.encoder import Encoder
from agent.sources.corpus.libraries import need
from agent.sources.corpus.traced import _FIRST_POSITION, Packing, traced  # pyright: ignore[reportPrivateUsage]
from tests.agent.sources.corpus.encoding import MINILM, needs_model, tiny_encoder

pytestmark = needs_model


def test_a_recording_gives_what_the_model_gives_for_texts_of_any_length():
    model = Encoder.load(MINILM, half=False, device="cpu").model
    run = traced(model)
    assert run is not model, "this model can be recorded"
    for texts in (["rain"], ["rain", "a much longer text about water and clouds " * 9], ["a b"] * 40):
        with need("torch").inference_mode():
            ours, theirs = (f(dict(model.preprocess(texts)))["sentence_embedding"] for f in (run, model))
        assert float((ours - theirs).abs().max()) < 1e-5


def both(model: Any, texts: list[str]) -> tuple[Any, Any]:
    with need("torch").inference_mode():
        ours, theirs = (f(dict(model.preprocess(texts)))["sentence_embedding"] for f in (traced(model), model))
        return ours, theirs


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "distilbert"])
def test_texts_are_packed_where_the_family_is_known_and_padded_where_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str
):
    shapes: list[int] = []

    class Watched(Packing):
        def mask(self) -> Any:
            shapes.append(1)
            return super().mask()

    monkeypatch.setattr("agent.sources.corpus.traced.Packing", Watched)
    model = Encoder.load(tiny_encoder(tmp_path / "tiny", family=family), half=False, device="cpu").model
    assert traced(model) is not model
    assert bool(shapes) == (family != "distilbert")
    ours, theirs = both(model, ["rain", "a longer text about clouds", "clouds and rain", "snow " * 30])
    assert float((ours - theirs).abs().max()) < 1e-5


def test_a_family_whose_texts_begin_elsewhere_is_padded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    model = Encoder.load(tiny_encoder(tmp_path / "tiny"), half=False, device="cpu").model
    monkeypatch.setitem(_FIRST_POSITION, "bert", lambda config: 3)  # pyright: ignore[reportArgumentType]
    ours, theirs = both(model, ["rain", "a longer text about clouds"])
    assert float((ours - theirs).abs().max()) < 1e-5


def test_in_half_precision_packed_texts_mean_what_they_mean_alone():
    encoder = Encoder.load(MINILM, half=True, device="cpu")
    texts = ["rain", "who made the film about the harbour", "a much longer text about water and clouds " * 4] * 5
    together = encoder.encode_queries(texts)
    alone = {text: encoder.encode_queries([text])[0] for text in set(texts)}
    for text, vector in zip(texts, together, strict=True):
        assert float(alone[text] @ vector) > 0.9995


def unchanged(features: dict[str, Any]) -> dict[str, Any]:
    return features


def test_a_model_that_looks_at_the_texts_it_is_recorded_with_stays_as_it_is(monkeypatch: pytest.MonkeyPatch):
    model = Encoder.load(MINILM, half=False, device="cpu").model
    inner = model[0].auto_model
    forward = inner.forward

    def short_sighted(**given: Any) -> Any:
        found = forward(**given)
        found.last_hidden_state = found.last_hidden_state * int(given["input_ids"].shape[1])
        return found

    monkeypatch.setattr(inner, "forward", short_sighted)
    monkeypatch.setattr(model[2], "forward", unchanged)
    assert traced(model) is model
