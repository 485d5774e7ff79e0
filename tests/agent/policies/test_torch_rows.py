"""Rows that come, grow and go in any order: each says what it says alone, and none is copied for nothing."""

import random

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

import torch

from agent.policies import torch_kv_buffer
from agent.policies.torch_rows import EMPTY, BatchRows, closed_up
from tests.agent.policies.test_torch_engine import random_model

pytestmark = pytest.mark.train


@pytest.mark.parametrize(
    ("stays", "rows"),
    [
        ([True, True, True], [0, 1, 2]),
        ([False, True, True, True], [3, 1, 2]),
        ([False, True, False, True, False], [3, 1]),
        ([True, False, False], [0]),
        ([False, False], []),
        ([], []),
    ],
)
def test_the_last_rows_take_the_places_that_are_free(stays: list[bool], rows: list[int]):
    assert closed_up(stays) == rows


@pytest.mark.parametrize(
    ("kind", "ahead"), [("Qwen3Config", 1), ("Qwen3Config", 3), ("Qwen3Config", 200), ("MistralConfig", 3)]
)
def test_rows_that_come_and_go_say_what_each_says_alone(kind: str, ahead: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch_kv_buffer, "AHEAD", ahead)
    model, draws = random_model(kind), random.Random(ahead)
    rows, contexts = BatchRows(model, torch.device("cpu")), list[list[int]]()
    met: set[str] = set()
    with torch.inference_mode():
        for _ in range(60):
            if len(contexts) < 6 and draws.random() < 0.4:
                ids = [draws.randrange(5, 100) for _ in range(draws.randint(1, 40))]
                met.add("longer than all" if len(ids) > max(map(len, contexts), default=0) else "shorter")
                rows.join(rows.extend(EMPTY, ids)[0])
                contexts.append(ids)
            elif contexts and draws.random() < 0.3:
                left = closed_up([draws.random() < 0.6 for _ in contexts])
                met.add("moved" if left != sorted(left) else "emptied" if not left else "closed up")
                rows.keep(left)
                contexts = [contexts[row] for row in left]
            elif contexts:
                said = [draws.randrange(5, 100) for _ in contexts]
                contexts = [[*ids, number] for ids, number in zip(contexts, said, strict=True)]
                for ids, logits in zip(contexts, rows.step(said), strict=True):
                    alone = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
                    torch.testing.assert_close(logits, alone, atol=2e-4, rtol=1e-4)
        for row, ids in enumerate(contexts):
            for (keys, _), (wanted, _) in zip(rows.take(row), rows.extend(EMPTY, ids)[0].layers, strict=True):
                torch.testing.assert_close(keys, wanted, atol=2e-4, rtol=1e-4)
    assert met >= {"longer than all", "shorter", "moved"}


def test_what_is_read_together_is_what_each_reads_alone():
    model, draws = random_model("Qwen3Config"), random.Random(5)
    rows = BatchRows(model, torch.device("cpu"))
    known = [[draws.randrange(5, 100) for _ in range(length)] for length in (0, 17, 0, 4, 33)]
    more = [[draws.randrange(5, 100) for _ in range(length)] for length in (9, 1, 30, 12, 12)]
    with torch.inference_mode():
        caches = [rows.extend(EMPTY, ids)[0] if ids else EMPTY for ids in known]
        together = rows.extend_all(list(zip(caches, more, strict=True)))
        for cache, ids, (longer, logits) in zip(caches, more, together, strict=True):
            wanted, wanted_logits = rows.extend(cache, ids)
            assert longer.ids == wanted.ids
            torch.testing.assert_close(logits, wanted_logits, atol=2e-4, rtol=1e-4)
            for pair, wanted_pair in zip(longer.layers, wanted.layers, strict=True):
                torch.testing.assert_close(pair, wanted_pair, atol=2e-4, rtol=1e-4)


def test_a_token_is_written_in_place(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch_kv_buffer, "AHEAD", 8)
    rows = BatchRows(random_model("Qwen3Config"), torch.device("cpu"))
    copied: list[int] = []
    move = torch_kv_buffer.KvBuffer._move  # pyright: ignore[reportPrivateUsage]

    def counted(buffer: torch_kv_buffer.KvBuffer, rows: int, longest: int, *, slots: int, end: int) -> None:
        copied.append(rows)
        move(buffer, rows, longest, slots=slots, end=end)

    monkeypatch.setattr(torch_kv_buffer.KvBuffer, "_move", counted)
    with torch.inference_mode():
        for length in (20, 18, 9):
            rows.join(rows.extend(EMPTY, range(5, 5 + length))[0])
        assert copied == [0, 1, 2], "space for one, for two, for four"
        for _ in range(17):
            rows.step([7, 7, 7])
    assert copied == [0, 1, 2, 3, 3], "three rows once for each eight tokens"


def test_an_emptied_buffer_is_used_again_where_it_is_small(monkeypatch: pytest.MonkeyPatch):
    model, buffer = random_model("Qwen3Config"), torch_kv_buffer.KvBuffer()
    with torch.inference_mode():
        layers = BatchRows(model, torch.device("cpu")).extend(EMPTY, range(5, 25))[0].layers

        def place() -> int:
            buffer.join(layers, rows=0, longest=0)
            return buffer.opened(rows=1, longest=20).layers[0].buffers[0].data_ptr()

        first = place()
        buffer.clear()
        assert place() == first
        monkeypatch.setattr(torch_kv_buffer, "KEPT_BYTES", 1000)
        buffer.clear()
        assert buffer._layers == []  # pyright: ignore[reportPrivateUsage]
