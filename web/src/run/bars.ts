// When what ran: one bar for each thing that the policy wrote and for each search. Pure.

import type { NodeView, Round } from "./outline";
import type { Step } from "./reduce";

export interface Bar {
  key: string;
  label: string;
  kind: "policy" | "fill" | "search" | "failed" | "empty" | "running";
  /** Seconds since the rollout began. */
  from: number;
  to: number;
  /** When it could have begun; a node waits from its plan on. */
  since: number;
}

const WRITTEN: Partial<Record<Step["kind"], string>> = {
  thought: "Think",
  restated: "Restate",
  planned: "Plan",
  plan_rejected: "Plan, rejected",
  merged: "Merge",
  reflected: "Reflect",
  evidenced: "Evidence",
  answered: "Answer",
};

/** Bars in the order in which they began. `now` ends what still runs. */
export function barsOf(steps: readonly Step[], rounds: readonly Round[], now: number): Bar[] {
  const bars: Bar[] = [];
  let before = 0;
  steps.forEach((step, at) => {
    const label = WRITTEN[step.kind];
    if (label) {
      const key = step.kind === "planned" ? `r${step.round}` : `s${at}`;
      const numbered = step.kind === "planned" ? `${label} ${step.round}` : label;
      bars.push({ key, label: numbered, kind: "policy", from: before, to: step.seconds, since: before });
    }
    before = Math.max(before, step.seconds);
  });
  for (const round of rounds) for (const node of round.nodes) bars.push(...barsOfNode(node, round, now));
  return bars.toSorted((a, b) => a.from - b.from || a.since - b.since);
}

function barsOfNode(view: NodeView, round: Round, now: number): Bar[] {
  const { key, node, fill, result } = view;
  const planned = round.planned.seconds;
  const parents = round.nodes.filter((other) => node.parents.includes(other.node.id));
  const ready = Math.max(planned, ...parents.map((parent) => parent.result?.seconds ?? planned));
  const label = `${node.id} · ${node.source}`;
  const bars: Bar[] = [];
  if (fill) bars.push({ key, label: `${node.id} · fill`, kind: "fill", from: ready, to: fill.seconds, since: planned });
  if (result && result.kind !== "skipped") {
    const kind = result.kind === "search_failed" ? "failed" : result.passages.length ? "search" : "empty";
    const from = Math.max(fill?.seconds ?? ready, result.seconds - result.took);
    bars.push({ key, label, kind, from: Math.min(from, result.seconds), to: result.seconds, since: ready });
  } else if (view.state === "running") {
    const from = fill?.seconds ?? ready;
    bars.push({ key, label, kind: "running", from, to: Math.max(from, now), since: ready });
  }
  return bars;
}
