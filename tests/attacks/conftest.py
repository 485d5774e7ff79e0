"""The product that is attacked: the one of this environment, or of `--product PYTHON`."""

import sys
from pathlib import Path

import pytest

from tests.attacks.product import Product


@pytest.fixture
def product(request: pytest.FixtureRequest, tmp_path: Path) -> Product:
    """The installed product, with an empty home folder of its own."""
    home = tmp_path / "home"
    home.mkdir()
    named = request.config.getoption("--product")
    return Product(Path(named or sys.executable), home)
