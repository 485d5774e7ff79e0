import asyncio
import json
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.trace import Answered, Delta, Event, Stopped, Thought, Trace
from server.http.encoding import dumped
from server.runs.following import StreamPosition, follow
from server.runs.live import LiveRun
from server.runs.manager import RunManager
from server.store import NewRun, RunStore, StepRow
from server.store.database import Database
from server.store.writing import Ended
from tests.server.runs.replicas import Folded, Held, Seen, all_events, client_of, events, keeping_service, start

STEPS = st.text(max_size=5).map(lambda text: Thought(text=text))
DELTAS = st.tuples(st.sampled_from(["thought", "answer"]), st.text(min_size=1, max_size=4)).map(
    lambda said: Delta(role=said[0], text=said[1])
)
SAID = st.lists(STEPS | DELTAS, max_size=25)


def seen_in(frames: Iterable[bytes]) -> list[Seen]:
    """Events as a client reads them from frames."""
    found: list[Seen] = []
    for block in b"".join(frames).decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            found.append(Seen(fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


def test_an_id_is_a_place_and_anything_else_is_none():
    for place in (
        StreamPosition(),
        StreamPosition(3, 14),
        StreamPosition(3, 14, over=True),
        StreamPosition(3, 0, loose=True),
        StreamPosition(3, 1, True, True),
    ):
        assert StreamPosition.of(str(place)) == place
    for wrong in ("x", "1", "1.", "-1.2", "1.2.3", "1.2.endless", "9" * 30 + ".1"):
        with pytest.raises(ValueError, match=r"\w"):
            StreamPosition.of(wrong)


async def read(run_manager: RunManager, reader: Folded, *, most: int) -> None:
    """One connection, from where the reader is; cut after some events, or when there is nothing more."""
    frames: list[bytes] = []
    task = asyncio.create_task(follow(run_manager, "a", StreamPosition.of(reader.last), frames.append))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for seen in seen_in(frames)[:most]:
        reader.take(seen)


def blocks_of(said: list[Event]) -> list[str]:
    """The text before each step."""
    blocks = [""]
    for event in said:
        if isinstance(event, Delta):
            blocks[-1] += event.text
        else:
            blocks.append("")
    return blocks


@given(said=SAID, chance=st.data())
def test_however_a_run_is_read_and_cut_the_reader_has_the_same_in_the_end(said: list[Event], chance: st.DataObject):
    said = [*said, Answered(text="So."), Stopped(reason="answered")]
    trace = Trace(id="a", question="Why?", protocol="cairn", policy="scripted")
    run = LiveRun(NewRun(trace=trace, model="cairn"), created=0)
    readers = [Folded() for _ in range(3)]

    async def main() -> None:
        run_manager = RunManager(RunStore(Database("memory")))
        run_manager._live["a"] = run  # pyright: ignore[reportPrivateUsage]
        for event in said:
            run.emit(event)
            if chance.draw(st.booleans()):
                run.show(chance.draw(st.integers(min_value=run.shown, max_value=len(run.rows))))
            for reader in readers:
                if chance.draw(st.booleans()):
                    await read(run_manager, reader, most=chance.draw(st.integers(min_value=0, max_value=3)))
        run.finish()
        for reader in readers:
            await read(run_manager, reader, most=10_000)
        await run_manager.store.aclose()

    asyncio.run(main())
    for reader in readers:
        assert reader.over
        assert reader.steps == [json.loads(row.step) for row in run.rows]
        assert all(whole.startswith(part) for whole, part in zip(blocks_of(said), reader.said, strict=False))


@given(said=SAID)
def test_what_waits_for_the_store_is_not_shown_and_then_comes_in_its_order(said: list[Event]):
    async def main() -> None:
        trace = Trace(id="a", question="Why?", protocol="cairn", policy="scripted")
        run = LiveRun(NewRun(trace=trace, model="cairn"), created=0)
        for event in said:
            run.emit(event)
            assert run.shown == 0
            assert (run.open_block.chars == 0) or not run.rows or run.open_block.chars == before_first_step(said)
        last = run.gained.open_block
        run.show(len(run.rows))
        assert run.open_block == last

    asyncio.run(main())


def before_first_step(said: list[Event]) -> int:
    chars = 0
    for event in said:
        if not isinstance(event, Delta):
            break
        chars += len(event.text)
    return chars


def test_a_connection_that_is_cut_at_every_event_loses_and_doubles_nothing(location: str):
    async def main() -> None:
        async with client_of(keeping_service(location)) as client:
            id = await start(client)
            cut = Folded()
            while not cut.over:
                async with aclosing(events(client, id, after=cut.last)) as connection:
                    cut.take(await anext(connection))
            whole = Folded()
            for seen in await all_events(client, id):
                whole.take(seen)
            assert cut.steps == whole.steps
            gone = await client.get(f"/api/runs/{id}/events", headers={"last-event-id": cut.last})
            assert gone.status_code == 204

    asyncio.run(bounded(main()))


def test_who_comes_back_after_the_end_gets_every_step_that_was_not_seen():
    async def main() -> None:
        held = Held()
        async with client_of(keeping_service("memory", held=held)) as client:
            id = await start(client)
            await held.requested.wait()
            first = Folded()
            async with aclosing(events(client, id)) as connection:
                while not first.steps or first.steps[-1]["kind"] != "planned":
                    first.take(await anext(connection))
            held.go.set()
            rest = await all_events(client, id, after=first.last)
            for seen in rest:
                first.take(seen)
            whole = [seen.data for seen in await all_events(client, id) if seen.event == "step"]
            assert first.steps == whole

    asyncio.run(bounded(main()))


def test_a_client_that_saw_what_was_lost_begins_again():
    async def main() -> None:
        async with client_of(keeping_service("memory")) as client:
            id = await start(client)
            await all_events(client, id)
            again = await all_events(client, id, after="999.0")
            assert (again[0].event, again[0].id, again[1].id) == ("reset", "0.0", "1.0")
            assert again[-1].event == "end"

    asyncio.run(bounded(main()))


def test_a_reader_that_saw_a_step_that_was_never_stored_begins_again_even_if_another_one_has_its_number(location: str):
    async def main() -> None:
        run_manager = RunManager(RunStore(Database(location)))
        trace = Trace(id="a", question="Why?", protocol="cairn", policy="scripted")
        new = NewRun(trace=trace, model="cairn")
        run = LiveRun(new, created=await run_manager.store.writes.begin(new))
        run_manager._live["a"] = run  # pyright: ignore[reportPrivateUsage]
        run.emit(Thought(text="lost"))
        run.show(1)  # as the writer does when the store does not answer
        reader = Folded()
        await read(run_manager, reader, most=9)
        assert (reader.last, [step["text"] for step in reader.steps]) == ("1.0~", ["lost"])
        del run_manager._live["a"]  # pyright: ignore[reportPrivateUsage]
        stopped = StepRow(1, dumped(Stopped(reason="interrupted")), "{}")
        await run_manager.store.writes.finish([Ended(trace, [stopped], stored=0)])
        frames: list[bytes] = []
        await follow(run_manager, "a", StreamPosition.of(reader.last), frames.append)
        assert [seen.event for seen in seen_in(frames)] == ["reset", "step", "end"]
        await run_manager.store.aclose()

    asyncio.run(bounded(main()))


async def bounded(work: Any) -> None:
    async with asyncio.timeout(100):
        await work
