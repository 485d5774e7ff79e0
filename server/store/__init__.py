"""What is kept: runs with their events, keys and their usage, in one database. It knows no web and no agent's loop."""

from server.store.errors import StoreError
from server.store.records import NewRun, RunFigures, RunRow, StepRow
from server.store.store import RunStore

__all__ = ["NewRun", "RunFigures", "RunRow", "RunStore", "StepRow", "StoreError"]
