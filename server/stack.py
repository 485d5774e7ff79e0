"""Joins what stands around an app: the gate with keys and slots, and the telemetry. Runs are told to both."""

from fastapi import FastAPI
from starlette.types import ASGIApp

from server.auth.keys import Keys
from server.auth.middleware import Gate, Rules
from server.auth.usage import Spent
from server.chat.service import Service
from server.retrieval.service import Meter
from server.telemetry.logs import RunLines
from server.telemetry.measured import Measured, add_metrics
from server.telemetry.meters import Meters
from server.telemetry.watch import Observer, Run, Watch


class UsageByKey(Observer):
    """Counts what a run used for the key that it was asked with."""

    def __init__(self, spent: Spent) -> None:
        self._spent = spent

    def ended(self, run: Run) -> None:
        self._spent.add(run.asking.key, run.trace.usage)


class Guarded:
    """What one app is guarded and measured with."""

    def __init__(self, rules: Rules, service: Service | None = None) -> None:
        """Join the parts.

        Args:
            rules: who may ask; keys that they do not name stand in the service's store.
            service: whose runs need slots and are watched; without one there are none.
        """
        self._rules = rules
        kept = service.keeper.store.keys if service and service.keeper else None
        self._keys = Keys(server_key=rules.key, store=rules.keys or kept)
        self.meters = Meters()
        self._admission = service.admission if service else None
        self._watch = service.watch if service else Watch()
        self._watch.observers += [self.meters, UsageByKey(self._keys.spent), RunLines()]
        if service:
            service.admission.limit = self._keys.limit
            if service.answering:
                service.answering.count = self._keys.answered
            self.meters.waiting(lambda: service.admission.waiting)

    @property
    def meter(self) -> Meter:
        """Counts searches that belong to no run."""
        return self._keys

    def around(self, app: FastAPI) -> ASGIApp:
        """The app, behind its gate and measured."""
        add_metrics(app, self.meters)
        gate = Gate(app, self._rules, keys=self._keys, admission=self._admission)
        return Measured(gate, self.meters, routes=app.routes)

    async def aclose(self) -> None:
        """Send what neither store nor collectors were told yet."""
        await self._keys.spent.aclose()
        for observer in self._watch.observers:
            await observer.aclose()
