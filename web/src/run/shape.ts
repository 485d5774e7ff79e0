// The graph of a run: the question, every plan's nodes, what was merged, the answer; and the edges between them. Pure.

import type { NodeView, Outline } from "./outline";

export interface Vertex {
  key: string;
  kind: "question" | "node" | "merge" | "answer";
  label: string;
  view?: NodeView;
  /** Whether it has happened. */
  done: boolean;
}

export interface Edge {
  from: string;
  to: string;
  /** The query that the policy made of what the parent found. */
  fill: string;
}

export interface Shape {
  vertices: Vertex[];
  edges: Edge[];
}

export function shapeOf({ rounds, items, answer }: Outline, question: string): Shape {
  const vertices: Vertex[] = [{ key: "q", kind: "question", label: question, done: true }];
  const edges: Edge[] = [];
  let before = "q";
  for (const round of rounds) {
    const withChildren = new Set(round.nodes.flatMap(({ node }) => node.parents));
    const join = `m${round.number}`;
    for (const view of round.nodes) {
      const { node, key, fill } = view;
      vertices.push({ key, kind: "node", label: fill?.query ?? node.query, view, done: view.result !== undefined });
      if (!node.parents.length) edges.push({ from: before, to: key, fill: "" });
      for (const parent of node.parents) edges.push({ from: `${round.number}.${parent}`, to: key, fill: fill?.query ?? "" });
      if (!withChildren.has(node.id)) edges.push({ from: key, to: join, fill: "" });
    }
    vertices.push({ key: join, kind: "merge", label: joined(items, round.key), done: round.gathered !== undefined });
    before = join;
  }
  vertices.push({ key: "a", kind: "answer", label: answer?.text ?? "Answer", done: answer !== undefined });
  edges.push({ from: before, to: "a", fill: "" });
  return { vertices, edges };
}

/** What became of a round's passages. */
function joined(items: Outline["items"], round: string): string {
  const at = items.findIndex(({ key }) => key === round);
  for (const item of items.slice(at + 1)) {
    if (item.kind === "round") break;
    if (item.step.kind === "merged") return "Merge";
    if (item.step.kind === "reflected") return "Reflect";
  }
  return "Read";
}

/** Where the list has what a vertex stands for. */
export function itemOf({ items }: Outline, key: string): string {
  if (key === "q") return "";
  if (key === "a") return items.findLast((item) => item.kind === "said" && item.step.kind === "answered")?.key ?? "";
  if (!key.startsWith("m")) return key;
  const at = items.findIndex((item) => item.kind === "round" && `m${item.round.number}` === key);
  const next = items.slice(at + 1).find((item) => item.kind === "round" || item.step.kind === "merged" || item.step.kind === "reflected");
  return next?.kind === "said" ? next.key : (items[at]?.key ?? "");
}
