import { describe, expect, it } from "vitest";
import { cardOf } from "../src/run/card";
import { RUNS, TRACES } from "./golden";

describe.each(Object.entries(RUNS))("the card of a trace alone: %s", (_, { run }) => {
  it("says what the server's card says", () => {
    const { id, question, answer, state, protocol, policy, rounds, searches, passages, tokens, credits, usd } = run;
    const made = cardOf(run.trace);
    expect(made).toMatchObject({ id, question, answer, state, protocol, policy, rounds, searches, passages, tokens, credits, usd });
    expect(made.seconds).toBeCloseTo(run.seconds, 2);
  });
});

describe.each(Object.entries(TRACES))("the card of a trace alone: %s", (_, trace) => {
  it("has its end, whichever it was", () => {
    const stopped = trace.steps.find(({ kind }) => kind === "stopped");
    expect(cardOf(trace).state).toBe(stopped && "reason" in stopped ? stopped.reason : "running");
  });
});
