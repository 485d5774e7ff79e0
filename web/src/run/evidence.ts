// The table of evidence: each claim with the words that carry it, and where it is used. Pure.

import type { Claim, Passage, Quote } from "../api/types.gen";
import { passageOf, shownUnder } from "./outline";
import type { Step } from "./reduce";

export interface EvidenceRow {
  key: string;
  claim: Claim;
  quotes: { quote: Quote | undefined; number: number; passage: Passage | undefined }[];
  /** Where the same passages are cited: evidence, merge 1, … */
  used: string[];
}

/** Every claim once: those of the evidence first, then those that only merges and reflections made. */
export function evidenceOf(steps: readonly Step[]): EvidenceRow[] {
  const rows = new Map<string, EvidenceRow>();
  const counts: Record<string, number> = {};
  const places = steps.flatMap((step, at) => {
    if (step.kind !== "evidenced" && step.kind !== "merged" && step.kind !== "reflected") return [];
    const name = { evidenced: "evidence", merged: "merge", reflected: "reflection" }[step.kind];
    const number = (counts[name] = (counts[name] ?? 0) + 1);
    return [{ step, name: step.kind === "evidenced" ? name : `${name} ${number}`, shown: shownUnder(steps.slice(0, at)) }];
  });
  for (const { step, name, shown } of places.toSorted((a, b) => Number(b.step.kind === "evidenced") - Number(a.step.kind === "evidenced"))) {
    for (const claim of step.claims) {
      const known = rows.get(claim.text);
      if (known) known.used.push(name);
      else rows.set(claim.text, { key: `e${rows.size}`, claim, quotes: quotesOf(claim, shown), used: [name] });
    }
  }
  return [...rows.values()];
}

function quotesOf(claim: Claim, shown: ReturnType<typeof shownUnder>): EvidenceRow["quotes"] {
  return claim.cites.flatMap((number) => {
    const passage = passageOf(shown, number, [claim]);
    const quotes = claim.quotes.filter((quote) => quote.number === number);
    return (quotes.length ? quotes : [undefined]).map((quote) => ({ quote, number, passage }));
  });
}
