// Short words for what happens, for a person who waits. Pure.

import type { Claim, RunCard } from "../api/types.gen";
import type { Outline, NodeView } from "./outline";
import type { Run } from "./reduce";

const WRITING: Record<string, string> = {
  thought: "Thinking",
  restated: "Reading the question",
  search: "Planning searches",
  merge: "Weighing what was found",
  reflect: "Looking back",
  evidence: "Writing down the evidence",
  answer: "Writing the answer",
  fill: "Completing a query",
};

const ENDED: Record<RunCard["state"], string> = {
  running: "Running",
  answered: "Answered",
  forced: "Answered early",
  bad_format: "Ended without a form that could be read",
  cancelled: "Cancelled",
  engine: "The model failed",
  interrupted: "Interrupted",
};

const BUDGETS: Record<string, string> = {
  rounds: "the rounds were used up",
  searches: "the searches were used up",
  passages: "there was room for no more passages",
  policy_tokens: "the tokens were used up",
  context: "the context was full",
  seconds: "the time was over",
  credits: "the credits were used up",
  user: "you requested the answer",
};

/** What it does now, or how it ended. */
export function doing(run: Run, outline: Outline): string {
  const { stopped } = outline;
  if (stopped) {
    const why = stopped.budget ? (BUDGETS[stopped.budget] ?? stopped.budget) : "";
    return why ? `${ENDED[stopped.reason]}: ${why}` : ENDED[stopped.reason];
  }
  if (run.end) return ENDED[run.end.state];
  const running = outline.rounds.flatMap(({ nodes }) => nodes).filter(({ state }) => state === "running");
  if (running.length) return `Searching ${[...new Set(running.map(({ node }) => node.source))].join(", ")}`;
  const role = run.open.at(-1)?.role;
  return (role && WRITING[role]) || (run.steps.length ? "Thinking" : "Starting");
}

const REUSED = { fresh: "cached", stale: "old copy", reused: "used again" } as const;

export function stateOf(view: NodeView): string {
  const { result, state } = view;
  if (result?.kind === "searched") {
    const found = result.passages.length ? count(result.passages.length, "passage") : "nothing found";
    return result.cached ? `${found}, ${REUSED[result.cached]}` : found;
  }
  if (result) return result.kind === "skipped" ? "skipped" : "failed";
  return state === "running" ? "searching…" : "waits";
}

export function count(number: number, noun: string, nouns = `${noun}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : nouns}`;
}

export function seconds(value: number): string {
  if (value < 0.0005) return value > 0 ? "< 1 ms" : "0 ms";
  if (value < 0.9995) return `${Math.round(value * 1000)} ms`;
  if (value < 59.95) return `${value.toFixed(value < 9.995 ? 2 : 1)} s`;
  const whole = Math.round(value);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** No cited passage says that such a claim is so. */
export const DOUBTED: ReadonlySet<Claim["check"]> = new Set(["not_found", "contradicted"]);

export const CHECKS: Record<Claim["check"], string> = {
  verbatim: "verbatim",
  close: "close",
  not_found: "not found",
  contradicted: "contradicted",
  unchecked: "not checked",
};
