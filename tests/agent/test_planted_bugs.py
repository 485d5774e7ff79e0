"""Bugs that are put in on purpose: the golden transcripts of every protocol must see each of them."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.evidence import gather
from agent.loop import observation
from agent.loop.observation import Fits, Observation
from agent.protocols import TextProtocol
from agent.trace import Trace
from agent.trace.samples import Sample, to_samples
from tests.agent import test_golden_protocols as golden
from tests.agent.test_golden_protocols import FOLDER, NAMES, masked, protocol_of, rollout

SCRIPT_OF = golden.script_of
NUMBERED = [name for name in NAMES if protocol_of(name).numbered]


def seen(name: str) -> bool:
    """Whether the golden file of a protocol differs from what the rollout gives now."""
    trace = rollout(name)
    wanted = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    segments = [(part["by"] == "policy", part["ids"].split()) for part in wanted["segments"]]
    mask = [(int(number), sampled) for sampled, numbers in segments for number in numbers]
    return golden.golden(trace) != wanted or list(masked(trace)) != mask


def _longer(text: str) -> str:
    return f"{text}\n"


def _folded(text: str) -> str:
    return text.replace("\n", " ", 1)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_bug_nothing_is_seen(name: str):
    assert not seen(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_mask_that_is_off_by_one_is_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    def shifted(trace: Trace) -> list[Sample]:
        return [replace(sample, mask=(False, *sample.mask[:-1])) for sample in to_samples(trace)]

    monkeypatch.setattr(golden, "to_samples", shifted)
    assert seen(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", [str.strip, _longer, _folded])
def test_other_white_space_around_what_was_found_is_seen(
    name: str, change: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
):
    whole = protocol_of(name)
    if change(whole.wrapper) == whole.wrapper:
        pytest.skip("this wrapper has none of that")
    changed = whole.model_copy(update={"wrapper": change(whole.wrapper)})

    def other(name: str) -> TextProtocol:
        return changed

    monkeypatch.setattr(golden, "protocol_of", other)
    assert seen(name)


@pytest.mark.parametrize("name", NAMES)
def test_text_that_is_cut_after_it_was_wrapped_is_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    def cut(within: Callable[[int], Observation], budget: int, fits: Fits) -> Observation:
        whole = within(100_000)
        return replace(whole, text=whole.text[:budget])

    monkeypatch.setattr(observation, "_largest", cut)
    assert seen(name)


@pytest.mark.parametrize("name", NUMBERED)
def test_wrong_passage_numbers_are_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    def later(*given: Any, first_number: int = 1, **more: Any) -> Any:
        return gather(*given, first_number=first_number + 1, **more)

    monkeypatch.setattr(observation, "gather", later)
    assert seen(name)


@pytest.mark.parametrize("name", NUMBERED)
def test_numbers_that_do_not_start_again_where_they_should_are_seen(name: str, monkeypatch: pytest.MonkeyPatch):
    """Or that start again where they should go on."""
    protocol = protocol_of(name)
    if protocol.plans == 1 and protocol.numbering == "rollout":
        pytest.skip("one round has nothing to go on from")
    other = "round" if protocol.numbering == "query" else "rollout" if protocol.numbering == "round" else "query"

    def renumbered(name: str) -> TextProtocol:
        return protocol.model_copy(update={"numbering": other})

    monkeypatch.setattr(golden, "protocol_of", renumbered)
    monkeypatch.setattr(golden, "script_of", _twice)
    assert golden.golden(rollout(name)) != _as_it_is(name, monkeypatch, protocol)


def _twice(protocol: TextProtocol) -> list[str]:
    """Two rounds that find something, and the answer."""
    first, *_, last = SCRIPT_OF(protocol)
    return [first, first, last]


def _as_it_is(name: str, monkeypatch: pytest.MonkeyPatch, protocol: TextProtocol) -> Any:
    def unchanged(name: str) -> TextProtocol:
        return protocol

    monkeypatch.setattr(golden, "protocol_of", unchanged)
    return golden.golden(rollout(name))
