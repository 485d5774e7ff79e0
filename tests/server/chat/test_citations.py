"""What the server writes behind a claim that its passages do not support."""

import pytest

from agent.trace import Check, Claim
from server.chat.citations import doubt


@pytest.mark.parametrize(
    ("check", "cites", "note"),
    [
        ("close", (1,), ""),
        ("unchecked", (1,), ""),
        ("not_found", (1,), "(not found in what it cites)"),
        ("contradicted", (1,), "(contradicted by what it cites)"),
        ("not_found", (), "(cites nothing)"),
    ],
)
def test_a_doubted_claim_has_a_note_for_its_reader(check: Check, cites: tuple[int, ...], note: str) -> None:
    assert doubt(Claim(text="Lina Orr was born in Rome.", cites=cites, check=check)) == note
