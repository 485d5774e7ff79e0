// What a person sees of the steps of a run: rounds with their nodes, and what was said between them. Pure.

import type { Claim, Node, Passage } from "../api/types.gen";
import type { Step, StepOf } from "./reduce";

export type NodeState = "waiting" | "running" | "found" | "empty" | "failed" | "skipped";

export interface NodeView {
  /** `2.A`: unique in the run. */
  key: string;
  round: number;
  node: Node;
  state: NodeState;
  /** The query as the policy rewrote it with what the parents found. */
  fill: StepOf<"filled"> | undefined;
  result: StepOf<"searched"> | StepOf<"search_failed"> | StepOf<"skipped"> | undefined;
}

export interface Round {
  key: string;
  number: number;
  planned: StepOf<"planned">;
  nodes: NodeView[];
  gathered: StepOf<"gathered"> | undefined;
}

export type Said = Exclude<
  Step,
  StepOf<"planned"> | StepOf<"filled"> | StepOf<"searched"> | StepOf<"search_failed"> | StepOf<"skipped"> | StepOf<"gathered">
>;

export type Item = { kind: "round"; key: string; round: Round } | { kind: "said"; key: string; step: Said; shown: Shown };

/** Number → the passages that it means. */
type Shown = ReadonlyMap<number, readonly Passage[]>;

export interface Outline {
  items: Item[];
  rounds: Round[];
  answer: StepOf<"answered"> | undefined;
  stopped: StepOf<"stopped"> | undefined;
  /** What carries the answer. */
  claims: readonly Claim[];
  /** What the numbers of these claims mean. */
  claimsShown: Shown;
  /** What numbers mean now. */
  shown: Shown;
  /** Numbers that a passage imitates: only a claim that was found says what they mean. */
  imitated: ReadonlySet<number>;
  searches: number;
  passages: number;
  /** Seconds from the beginning to the last step. */
  seconds: number;
}

const NODE_STEPS = new Set(["filled", "searched", "search_failed", "skipped", "gathered"]);

export function outlineOf(steps: readonly Step[]): Outline {
  const items: Item[] = [];
  const rounds: Round[] = [];
  let shown: Shown = new Map();
  steps.forEach((step, at) => {
    shown = shownAfter(shown, step);
    if (step.kind === "planned") {
      const round = roundOf(step);
      rounds.push(round);
      items.push({ kind: "round", key: round.key, round });
    } else if (NODE_STEPS.has(step.kind)) {
      take(rounds, step);
    } else {
      items.push({ kind: "said", key: `s${at}`, step: step as Said, shown });
    }
  });
  const stopped = last(steps, "stopped");
  for (const round of rounds) settle(round, stopped !== undefined);
  const nodes = rounds.flatMap((round) => round.nodes);
  return {
    items,
    rounds,
    answer: last(steps, "answered"),
    stopped,
    ...claimsOf(steps),
    shown,
    imitated: new Set(steps.flatMap((step) => (step.kind === "gathered" ? (step.imitated ?? []) : []))),
    searches: nodes.filter(({ result }) => result && result.kind !== "skipped").length,
    passages: rounds.reduce((sum, { gathered }) => sum + (gathered?.passages.length ?? 0), 0),
    seconds: steps.at(-1)?.seconds ?? 0,
  };
}

function roundOf(planned: StepOf<"planned">): Round {
  const key = `r${planned.round}`;
  const nodes = planned.plan.nodes.map((node): NodeView => {
    return { key: `${planned.round}.${node.id}`, round: planned.round, node, state: "waiting", fill: undefined, result: undefined };
  });
  return { key, number: planned.round, planned, nodes, gathered: undefined };
}

/** Put a step where it belongs: to the latest round of its number. */
function take(rounds: Round[], step: Step): void {
  if (!("round" in step)) return;
  const round = rounds.findLast(({ number }) => number === step.round);
  if (!round) return;
  if (step.kind === "gathered") {
    round.gathered = step;
    return;
  }
  const node = round.nodes.find((view) => "node" in step && view.node.id === step.node);
  if (!node) return;
  if (step.kind === "filled") node.fill = step;
  else if (step.kind === "searched" || step.kind === "search_failed" || step.kind === "skipped") node.result = step;
}

/** What each node does now: it runs once its parents are done, as long as the run does. */
function settle(round: Round, over: boolean): void {
  const done = new Set(round.nodes.filter(({ result }) => result).map(({ node }) => node.id));
  for (const view of round.nodes) {
    const { result, node } = view;
    if (result?.kind === "searched") view.state = result.passages.length ? "found" : "empty";
    else if (result) view.state = result.kind === "skipped" ? "skipped" : "failed";
    else if (!over && node.parents.every((parent) => done.has(parent))) view.state = "running";
  }
}

function last<K extends Step["kind"]>(steps: readonly Step[], kind: K): StepOf<K> | undefined {
  return steps.findLast((step): step is StepOf<K> => step.kind === kind);
}

/** Those of the last evidence block, or else of the last merge or reflection that has some. */
function claimsOf(steps: readonly Step[]): Pick<Outline, "claims" | "claimsShown"> {
  const evidenced = steps.findLastIndex(({ kind }) => kind === "evidenced");
  const at = evidenced >= 0 ? evidenced : steps.findLastIndex((step) => (step.kind === "merged" || step.kind === "reflected") && step.claims.length > 0);
  const step = steps[at];
  return { claims: step && "claims" in step ? step.claims : [], claimsShown: shownUnder(steps.slice(0, Math.max(0, at))) };
}

/** What each number means behind these steps. */
export function shownUnder(steps: readonly Step[]): Shown {
  return steps.reduce<Shown>(shownAfter, new Map());
}

/** Where numbers begin again, they mean what was shown last. */
function shownAfter(shown: Shown, step: Step): Shown {
  if (step.kind !== "gathered" || step.passages.length === 0) return shown;
  const latest = new Map<number, Passage[]>();
  for (const passage of step.passages) latest.set(passage.number, [...(latest.get(passage.number) ?? []), passage]);
  const again = [...latest.keys()].some((number) => shown.has(number));
  return again ? latest : new Map([...shown, ...latest]);
}

/** A piece of a text, its places counted as Python counts them: an emoji is one character. */
export function cut(text: string, start: number, end?: number): string {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text).slice(start, end).join("") : text.slice(start, end);
}

/** The passage that a number means; where it means several, the one that holds the quoted words. */
export function passageOf(shown: Outline["shown"], number: number, claims: readonly Claim[] = []): Passage | undefined {
  const meant = shown.get(number) ?? [];
  const quotes = claims.flatMap((claim) => claim.quotes).filter((quote) => quote.number === number);
  return meant.find((passage) => quotes.some((q) => cut(passage.text, q.start, q.end) === q.text)) ?? meant[0];
}
