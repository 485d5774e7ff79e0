// The plan as a graph: real buttons where dagre says, edges as SVG behind them. Loaded when it is first looked at.

import dagre from "@dagrejs/dagre";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Session } from "../app/session";
import { itemOf, shapeOf, type Edge, type Shape, type Vertex } from "../run/shape";
import { seconds, stateOf } from "../run/labels";
import { Beside } from "./beside";

const WIDTH = innerWidth < 600 ? 136 : 208;
const SIZES: Record<Vertex["kind"], { width: number; height: number }> = {
  question: { width: WIDTH, height: 62 },
  node: { width: WIDTH, height: 76 },
  merge: { width: 104, height: 34 },
  answer: { width: WIDTH, height: 62 },
};

interface Point {
  x: number;
  y: number;
}

interface Line {
  points: Point[];
  x?: number;
  y?: number;
}

type LaidOut = InstanceType<typeof dagre.graphlib.Graph>;

interface Placed {
  width: number;
  height: number;
  at: ReadonlyMap<string, Point>;
  lines: { edge: Edge; path: string; x: number; y: number }[];
}

export default function Graph({ session }: { session: Session }) {
  const outline = session.outline.value;
  const question = session.card.value?.question ?? "";
  const shape = shapeOf(outline, question);
  // Laid out again when there are other vertices or edges, not when one of them is done.
  const form = JSON.stringify([shape.vertices.map(({ key }) => key), shape.edges.map(({ from, to, fill }) => [from, to, fill !== ""])]);
  const placed = useMemo(() => layOut(shape), [form]);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    frame.current?.querySelector('[aria-pressed="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [session.selected.value]);
  return (
    <>
      <div class="graph-frame" ref={frame} tabIndex={0} role="group" aria-label="Graph of the plan">
        <div class="graph" style={{ width: `${placed.width}px`, height: `${placed.height}px` }}>
          <svg width={placed.width} height={placed.height} aria-hidden="true">
            <defs>
              <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
                <path d="M1 1 7 4 1 7" fill="none" stroke="context-stroke" stroke-width="1.4" />
              </marker>
            </defs>
            {placed.lines.map(({ edge, path }) => (
              <path key={`${edge.from}>${edge.to}`} class={edge.fill ? "edge filled" : "edge"} d={path} marker-end="url(#tip)" />
            ))}
          </svg>
          {placed.lines.map(({ edge, x, y }) =>
            edge.fill ? (
              <span class="fill" key={`${edge.from}>${edge.to}`} title={edge.fill} style={{ left: `${x}px`, top: `${y}px` }}>
                fill
              </span>
            ) : null,
          )}
          {shape.vertices.map((vertex) => (
            <VertexButton key={vertex.key} session={session} vertex={vertex} placed={placed} target={itemOf(outline, vertex.key)} />
          ))}
        </div>
      </div>
      <Beside session={session} />
    </>
  );
}

function VertexButton({ session, vertex, placed, target }: { session: Session; vertex: Vertex; placed: Placed; target: string }) {
  const at = placed.at.get(vertex.key);
  if (!at) return null;
  const { width, height } = SIZES[vertex.kind];
  const { view } = vertex;
  const style = { left: `${at.x - width / 2}px`, top: `${at.y - height / 2}px`, width: `${width}px`, height: `${height}px` };
  const picked = target !== "" && session.selected.value === target;
  return (
    <button
      type="button"
      class={`vertex ${vertex.kind} ${view?.state ?? ""} ${vertex.done ? "done" : ""}`}
      style={style}
      aria-pressed={picked}
      data-key={vertex.key}
      data-state={view?.state}
      title={vertex.label}
      disabled={target === "" && vertex.kind !== "question"}
      onClick={() => (session.selected.value = picked ? "" : target)}
    >
      {view ? (
        <>
          <span class="vertex-head">
            <b>{view.node.id}</b> <span class="tag">{view.node.source}</span>
          </span>
          <span class="vertex-label">{vertex.label}</span>
          <span class="vertex-state">
            {stateOf(view)}
            {view.result && "took" in view.result && ` · ${seconds(view.result.took)}`}
          </span>
        </>
      ) : (
        <span class="vertex-label">{vertex.label}</span>
      )}
    </button>
  );
}

function layOut({ vertices, edges }: Shape): Placed {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { key, kind } of vertices) graph.setNode(key, { ...SIZES[kind] });
  for (const { from, to, fill } of edges) graph.setEdge(from, to, fill ? { width: 34, height: 18, labelpos: "c" } : {});
  dagre.layout(graph);
  if (backwards(vertices, graph)) mirror(graph);
  const at = new Map(vertices.map(({ key }) => [key, graph.node(key) as Point]));
  const lines = edges.map((edge) => {
    const line = graph.edge(edge.from, edge.to) as Line;
    const middle = line.points[Math.floor(line.points.length / 2)] ?? { x: 0, y: 0 };
    return { edge, path: curve(line.points), x: line.x ?? middle.x, y: line.y ?? middle.y };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { width: Math.ceil(width), height: Math.ceil(height), at, lines };
}

/** Whether more neighbours stand against the plan's order than with it. */
function backwards(vertices: readonly Vertex[], graph: LaidOut): boolean {
  let against = 0;
  const nodes = vertices.filter(({ view }) => view);
  nodes.forEach((vertex, at) => {
    for (const other of nodes.slice(at + 1)) {
      const [one, two] = [graph.node(vertex.key) as Point, graph.node(other.key) as Point];
      if (vertex.view?.round === other.view?.round && one.y === two.y) against += Math.sign(one.x - two.x);
    }
  });
  return against > 0;
}

function mirror(graph: LaidOut): void {
  const width = (graph.graph() as { width: number }).width;
  for (const key of graph.nodes()) {
    const point = graph.node(key) as Point;
    point.x = width - point.x;
  }
  for (const name of graph.edges()) {
    const line = graph.edge(name) as Line;
    if (line.x !== undefined) line.x = width - line.x;
    for (const point of line.points) point.x = width - point.x;
  }
}

/** A smooth line through the points: each corner is the control point of a curve between two middles. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const end = rest.pop();
  if (!first || !end) return "";
  let path = `M${first.x} ${first.y}`;
  rest.forEach((point, at) => {
    const next = rest[at + 1];
    const to = next ? { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 } : end;
    path += `Q${point.x} ${point.y} ${to.x} ${to.y}`;
  });
  return rest.length ? path : `${path}L${end.x} ${end.y}`;
}
