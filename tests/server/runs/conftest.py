"""The databases of the store's tests."""

from tests.server.store.conftest import location, postgres_url

__all__ = ["location", "postgres_url"]
