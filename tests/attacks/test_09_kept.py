"""Finding 9: metadata, instructions and user of a response were kept with each run, four megabytes of them."""

from pathlib import Path

import pytest

from tests.attacks.client import ask
from tests.attacks.product import Product

LONG = "x" * 1_000_000
TOO_LONG = {
    "metadata": {"metadata": {"key": LONG}},
    "metadata key": {"metadata": {"k" * 65: "value"}},
    "metadata pairs": {"metadata": {f"key{number}": "value" for number in range(17)}},
    "instructions": {"instructions": LONG},
    "user": {"user": "u" * 513},
    "previous_response_id": {"previous_response_id": LONG},
}


def test_what_is_kept_with_a_response_is_bounded_as_openai_bounds_it(product: Product, tmp_path: Path) -> None:
    with product.serve(cwd=tmp_path) as server:
        for name, more in TOO_LONG.items():
            answer = ask(f"{server.url}/v1/responses", {"input": "Who is Persen Golney?", **more})
            assert answer.status == 400, name
            assert name.split()[0] in (answer.error["param"] or ""), name
            assert any(said in answer.error["message"] for said in ("at most", "many", "the limit is")), name
        most = {"metadata": {f"{number:064}": "v" * 512 for number in range(16)}, "user": "u" * 512}
        assert ask(f"{server.url}/v1/responses", {"input": "Who is Persen Golney?", **most}).status == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/runs"])
def test_an_earlier_turn_that_is_far_too_long_is_left_out(product: Product, tmp_path: Path, path: str) -> None:
    turns = [
        {"role": "user", "content": "Who is Persen Golney?"},
        {"role": "assistant", "content": "<think>" * 140_000},
        {"role": "user", "content": "Where was Persen Golney born?"},
    ]
    with product.serve(cwd=tmp_path) as server:
        answer = ask(server.url + path, {"messages": turns})
    assert answer.status in (200, 201)
    assert len(answer.body) < 100_000
