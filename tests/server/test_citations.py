"""What the server tells of a claim beside what it cites."""

import pytest

from agent.trace import Check, Claim
from server.citations import doubt


@pytest.mark.parametrize(
    ("check", "cites", "told"),
    [
        ("close", (1,), ""),
        ("unchecked", (1,), ""),
        ("not_found", (1,), "(not found in what it cites)"),
        ("contradicted", (1,), "(contradicted by what it cites)"),
        ("not_found", (), "(cites nothing)"),
    ],
)
def test_what_a_reader_must_know_of_a_claim_is_told(check: Check, cites: tuple[int, ...], told: str) -> None:
    assert doubt(Claim(text="Lina Orr was born in Rome.", cites=cites, check=check)) == told
