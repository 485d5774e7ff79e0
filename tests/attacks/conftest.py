"""The product that is attacked: the one of this environment, or of `--product PYTHON`."""

import shutil
import sys
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.forked import Commands
from tests.attacks.product import Product


@pytest.fixture(scope="session")
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Product]:
    """The installed product, with one home folder for all tests: its modules are imported once, for that home."""
    named = request.config.getoption("--product")
    folder = tmp_path_factory.mktemp("user")
    product = Product(Path(named or sys.executable).absolute(), folder / "home")
    product.home.mkdir()
    with closing(Commands(product.python, product.environment, folder / "log")) as commands:
        yield replace(product, commands=commands)


@pytest.fixture
def product(installed: Product) -> Product:
    """The installed product, with an empty home folder."""
    shutil.rmtree(installed.home)
    installed.home.mkdir()
    return installed
