"""Whatever texts a batch has, their tokens are laid out once, apart from each other, and found again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sources.corpus.libraries import need
from agent.sources.corpus.traced import ROW, Packing
from tests.agent.sources.corpus.encoding import needs_model

pytestmark = needs_model

lengths = st.lists(st.integers(1, 2 * ROW), min_size=1, max_size=20)


@given(lengths)
def test_every_token_comes_back_to_its_place(counts: list[int]):
    torch = need("torch")
    real = torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]
    tokens = torch.arange(1, real.numel() + 1).view(real.shape) * real
    packing = Packing(real.long())
    packed = packing.pack(tokens)
    assert sorted(packed[packed > 0].tolist()) == tokens[real].tolist()
    assert torch.equal(packing.unpack(packed[..., None])[..., 0], tokens)


@given(lengths)
def test_a_token_sees_its_own_text_and_nothing_else(counts: list[int]):
    torch = need("torch")
    real = torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]
    texts = torch.arange(1, len(counts) + 1)[:, None] * real
    packing = Packing(real.long())
    packed, mask, positions = packing.pack(texts), packing.mask()[:, 0], packing.positions(2)
    for row, sees, places in zip(packed.tolist(), mask.tolist(), positions.tolist(), strict=True):
        for at, text in enumerate(row):
            assert [row[other] for other, seen in enumerate(sees[at]) if seen] == [t for t in row if t == text]
            assert not text or places[at] == 2 + row[:at].count(text)


@pytest.mark.parametrize(
    ("counts", "shape"), [([7], (1, 7)), ([20, 20], (1, 40)), ([20] * 6, (3, ROW)), ([90, 9], (2, 90))]
)
def test_rows_are_no_longer_than_they_must_be_and_hold_what_fits(counts: list[int], shape: tuple[int, int]):
    torch = need("torch")
    real = torch.arange(max(counts))[None] < torch.tensor(counts)[:, None]
    assert tuple(Packing(real.long()).pack(real.long()).shape) == shape
