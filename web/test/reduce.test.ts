import { describe, expect, it } from "vitest";
import { NOTHING, fromTrace, inOrder, reduce, type Run, type RunEvent } from "../src/run/reduce";
import { RUNS } from "./golden";

function fold(events: readonly RunEvent[], from: Run = NOTHING): Run {
  return events.reduce(reduce, from);
}

describe.each(Object.entries(RUNS))("the run %s", (_, { events, run }) => {
  it("is, event by event, what was sent until then", () => {
    let state = NOTHING;
    let steps = 0;
    let open = "";
    for (const event of events) {
      const before = JSON.stringify(state);
      const next = reduce(state, event);
      expect(JSON.stringify(state)).toBe(before);
      if (event.event === "step") [steps, open] = [steps + 1, ""];
      if (event.event === "delta") open += event.data.text;
      if (event.event === "snapshot") open = event.data.map(({ text }) => text).join("");
      expect(next.gap).toBe(false);
      expect(next.place).toBe(event.id);
      expect(next.steps).toHaveLength(steps);
      expect(next.open.map(({ text }) => text).join("")).toBe(event.event === "end" ? "" : open);
      state = next;
    }
    expect(state.end?.id).toBe(run.id);
  });

  it("has in the end the steps of its trace", () => {
    // A round's branches get their segments when it has ended, after its events.
    const bare = (steps: Run["steps"]) => steps.map((step) => ({ ...step, segments: [] }));
    expect(bare(fold(events).steps)).toEqual(bare(inOrder(run.trace.steps)));
    expect(fromTrace(run.trace, run).end).toEqual(fold(events).end && run);
  });

  it("is the same when every event comes twice, and when it comes again from the beginning", () => {
    const once = fold(events);
    expect(fold(events.flatMap((event) => [event, event]))).toEqual(once);
    expect(fold(events, once)).toEqual(once);
  });

  it("is the same wherever a connection is cut and goes on with a snapshot", () => {
    const whole = fold(events);
    for (let at = 1; at < events.length; at++) {
      const cut = fold(events.slice(0, at));
      const open = [...cut.open];
      const snapshot: RunEvent[] = open.length ? [{ event: "snapshot", id: cut.place, data: open }] : [];
      const resumed = fold([...snapshot, ...events.slice(at)], cut);
      expect(resumed).toEqual(whole);
    }
  });

  it("says that something is missing, and changes nothing until it comes", () => {
    const at = events.findIndex(({ event }) => event === "step");
    const second = events.slice(at + 1).find(({ event }) => event === "step");
    if (!second) return;
    const before = fold(events.slice(0, at));
    const early = reduce(before, second);
    expect(early.gap).toBe(true);
    expect({ ...early, gap: false }).toEqual({ ...before, gap: false });
    expect(fold(events.slice(at), early)).toEqual(fold(events));
  });

  it("begins again after a reset", () => {
    const half = fold(events.slice(0, events.length >> 1));
    const reset: RunEvent = { event: "reset", id: "0.0", data: {} };
    expect({ ...fold([reset, ...events], half) }).toEqual(fold(events));
  });
});

it("counts a character outside of the first plane as one, as the server does", () => {
  const first = reduce(NOTHING, { event: "delta", id: "0.2", data: { role: "thought", text: "a🪨" } });
  const second = reduce(first, { event: "delta", id: "0.3", data: { role: "thought", text: "b" } });
  expect(second.open).toEqual([{ role: "thought", text: "a🪨b" }]);
  expect(second.gap).toBe(false);
});

it("sees that a delta is missing", () => {
  const state = reduce(NOTHING, { event: "delta", id: "0.9", data: { role: "thought", text: "late" } });
  expect(state.gap).toBe(true);
  expect(state.open).toEqual([]);
});
