// The card of a run of which only the trace is known. Pure.

import type { RunCard, Trace } from "../api/types.gen";
import type { StepOf } from "./reduce";

/** Without its time and model, which no trace holds. */
export function cardOf(trace: Trace): RunCard {
  const answered = trace.steps.findLast((step): step is StepOf<"answered"> => step.kind === "answered");
  const stopped = trace.steps.findLast((step): step is StepOf<"stopped"> => step.kind === "stopped");
  const { usage, timings } = trace;
  return {
    id: trace.id,
    conversation: trace.conversation,
    question: trace.question,
    answer: answered?.text ?? null,
    state: stopped?.reason ?? "running",
    origin: "api",
    model: "",
    protocol: trace.protocol,
    policy: trace.policy,
    created: "",
    ended: null,
    seconds: timings.total,
    rounds: usage.rounds,
    searches: usage.searches,
    passages: usage.passages,
    tokens: usage.prompt_tokens + usage.environment_tokens + usage.policy_tokens,
    credits: usage.credits,
    usd: usage.usd,
  };
}
