import { describe, expect, it } from "vitest";
import { barsOf } from "../src/run/bars";
import { evidenceOf } from "../src/run/evidence";
import { cut, outlineOf } from "../src/run/outline";
import { rungsText, segmentsUntil, tokensOf } from "../src/run/raw";
import { inOrder } from "../src/run/reduce";
import { doing } from "../src/run/labels";
import { NOTHING } from "../src/run/reduce";
import { itemOf, shapeOf } from "../src/run/shape";
import type { Passage } from "../src/api/types.gen";
import type { Step } from "../src/run/reduce";
import { RUNS, TRACES } from "./golden";

const ALL = { ...TRACES, ...Object.fromEntries(Object.entries(RUNS).map(([name, { run }]) => [`run ${name}`, run.trace])) };

describe.each(Object.entries(ALL))("the trace %s", (_, trace) => {
  const steps = inOrder(trace.steps);
  const outline = outlineOf(steps);
  const nodes = outline.rounds.flatMap((round) => round.nodes);

  it("has in its outline every node of every plan, in the state that its steps give", () => {
    const planned = trace.steps.flatMap((step) => (step.kind === "planned" ? step.plan.nodes.map((n) => `${step.round}.${n.id}`) : []));
    expect(nodes.map(({ key }) => key)).toEqual(planned);
    for (const node of nodes) {
      const own = trace.steps.filter((step) => "node" in step && step.node === node.node.id && step.round === node.round);
      const result = own.find(({ kind }) => kind !== "filled");
      expect(node.result).toEqual(result);
      expect(node.fill).toEqual(own.find(({ kind }) => kind === "filled"));
      if (result) expect(node.state).not.toMatch(/waiting|running/);
    }
  });

  it("has a graph whose edges are the plans' own, and join the rounds from the question to the answer", () => {
    const { vertices, edges } = shapeOf(outline, trace.question);
    expect(vertices.filter(({ kind }) => kind === "node").map(({ key }) => key)).toEqual(nodes.map(({ key }) => key));
    const known = new Set(vertices.map(({ key }) => key));
    for (const { from, to } of edges) expect(known.has(from) && known.has(to)).toBe(true);
    for (const { key, round, node } of nodes) {
      const into = edges.filter(({ to }) => to === key).map(({ from }) => from);
      const before = round > 1 ? `m${outline.rounds[outline.rounds.findIndex((r) => r.number === round) - 1]?.number}` : "q";
      expect(into).toEqual(node.parents.length ? node.parents.map((parent) => `${round}.${parent}`) : [before]);
    }
    expect(edges.filter(({ to }) => to === "a")).toHaveLength(1);
    for (const { key } of vertices) expect(itemOf(outline, key)).toBeTypeOf("string");
  });

  it("shows every step exactly once", () => {
    const shown = outline.items.length + nodes.filter((n) => n.result).length + nodes.filter((n) => n.fill).length;
    const gathered = outline.rounds.filter((round) => round.gathered).length;
    expect(shown + gathered).toBe(steps.length);
  });

  it("has no node that runs once it has ended, and is never ahead of its steps on the way", () => {
    expect(nodes.filter(({ state }) => state === "running")).toEqual([]);
    for (let at = 0; at <= steps.length; at++) {
      const part = outlineOf(steps.slice(0, at));
      for (const { state, node, key } of part.rounds.flatMap((round) => round.nodes)) {
        const round = key.split(".")[0];
        const done = new Set(steps.slice(0, at).flatMap((s) => ("node" in s && s.kind !== "filled" && `${s.round}` === round ? [s.node] : [])));
        if (state === "running") expect(node.parents.every((parent) => done.has(parent))).toBe(true);
      }
      expect(doing({ ...NOTHING, steps: steps.slice(0, at) }, part)).not.toBe("");
    }
  });

  it("has bars that lie inside of its time, and a search's bar is as long as the search took", () => {
    const bars = barsOf(steps, outline.rounds, outline.seconds);
    for (const bar of bars) {
      expect(bar.from).toBeLessThanOrEqual(bar.to);
      expect(bar.since).toBeGreaterThanOrEqual(0);
      expect(bar.to).toBeLessThanOrEqual(outline.seconds + 1e-9);
    }
    expect(bars.filter(({ kind }) => ["search", "empty", "failed"].includes(kind))).toHaveLength(outline.searches);
  });

  it("has its claims in the table once, each with the words of the passage that it cites", () => {
    const rows = evidenceOf(steps);
    expect(new Set(rows.map(({ claim }) => claim.text)).size).toBe(rows.length);
    for (const claim of outline.claims) expect(rows.some((row) => row.claim.text === claim.text)).toBe(true);
    for (const { quote, passage } of rows.flatMap((row) => row.quotes)) {
      if (quote) expect(passage?.text.slice(quote.start, quote.end)).toBe(quote.text);
    }
  });

  it("shows all of its context in the end, and of the policy's tokens as many as the trace counts", () => {
    expect(segmentsUntil(trace, steps, true)).toEqual(trace.segments);
    const own = trace.segments.filter(({ by }) => by === "policy");
    const shown = tokensOf(own);
    if (!shown.guessed) expect(shown.count).toBe(trace.usage.policy_tokens);
  });
});

describe("the rungs of a general model", () => {
  it("are one sentence with the reasons, and none for a model that speaks the protocol", () => {
    const rungs = [
      { rung: "json" as const, why: "the model passed its exam" },
      { rung: "plain" as const, why: "" },
    ];
    expect(rungsText(rungs)).toBe("The model was spoken to on the rung json (the model passed its exam), then plain.");
    expect(rungsText(undefined)).toBe("");
  });
});

describe("what is said in a round", () => {
  const passage = (number: number, text: string) => ({ id: text, source: "web", title: text, text, number }) as unknown as Passage;
  const gathered = (round: number, text: string) => ({ kind: "gathered", round, passages: [passage(1, text)], seconds: round }) as unknown as Step;
  const said = (round: number, text: string) => ({ kind: "reflected", round, text, claims: [], seconds: round }) as unknown as Step;

  it("means the passages that had been shown until then, where numbers begin again", () => {
    const { items, shown } = outlineOf([gathered(1, "first"), said(1, "one [1]"), gathered(2, "second"), said(2, "two [1]")]);
    const meant = items.flatMap((item) => (item.kind === "said" ? [item.shown.get(1)?.[0]?.text] : []));
    expect(meant).toEqual(["first", "second"]);
    expect(shown.get(1)?.[0]?.text).toBe("second");
  });

  it("is cut as Python counts characters", () => {
    expect(cut("𝑥 is a variable. Lina Orr directed it.", 17, 37)).toBe("Lina Orr directed it");
    expect(cut("plain text", 6)).toBe("text");
  });
});

describe("claims of a round whose numbers begin again in the next one", () => {
  const passage = (id: string): Passage => ({ number: 1, source: "web", id, title: id, text: `Words of ${id}.` }) as Passage;
  const quote = { number: 1, start: 0, end: 5, text: "Words" };
  const claim = { text: "Lina Orr directed it.", cites: [1], quotes: [quote], check: "verbatim" };
  const steps = [
    { kind: "gathered", round: 1, passages: [passage("Orr")] },
    { kind: "merged", round: 1, text: "", claims: [claim] },
    { kind: "gathered", round: 2, passages: [passage("Trieste")] },
    { kind: "answered", text: "Lina Orr" },
  ] as unknown as Step[];

  it("name the passages that their own round showed", () => {
    const { claims, claimsShown, shown } = outlineOf(steps);
    expect(claims).toEqual([claim]);
    expect(claimsShown.get(1)?.map(({ id }) => id)).toEqual(["Orr"]);
    expect(shown.get(1)?.map(({ id }) => id)).toEqual(["Trieste"]);
    expect(evidenceOf(steps)[0]?.quotes[0]?.passage?.id).toBe("Orr");
  });
});
