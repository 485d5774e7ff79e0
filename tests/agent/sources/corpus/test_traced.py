"""A recorded graph gives what the model gives, or is not used."""

from typing import Any

import pytest

from agent.sources.corpus.encoder import Encoder
from agent.sources.corpus.libraries import need
from agent.sources.corpus.traced import traced
from tests.agent.sources.corpus.encoding import MINILM, needs_model

pytestmark = needs_model


@pytest.mark.parametrize("texts", [["rain"], ["rain", "a much longer text about water and clouds " * 9], ["a b"] * 40])
def test_a_recording_gives_what_the_model_gives_for_texts_of_any_length(texts: list[str]):
    model = Encoder.load(MINILM, half=False, device="cpu").model
    run = traced(model)
    assert run is not model, "this model can be recorded"
    with need("torch").inference_mode():
        ours, theirs = (f(dict(model.preprocess(texts)))["sentence_embedding"] for f in (run, model))
    assert float((ours - theirs).abs().max()) < 1e-5


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
