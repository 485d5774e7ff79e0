// The exact text of the context with its authors, and how many tokens each of them wrote. Pure.

import type { RungUsed, Segment, Trace } from "../api/types.gen";
import type { Step } from "./reduce";

export type Author = Segment["by"];

export interface Tokens {
  count: number;
  /** No engine counted: four characters are taken for one. */
  guessed: boolean;
}

export const AUTHORS: readonly Author[] = ["prompt", "policy", "environment", "loop"];

export function tokensOf(segments: readonly Segment[]): Tokens {
  let tokens = 0;
  let guessed = false;
  for (const { ids, text } of segments) {
    tokens += ids?.length ?? Math.ceil(text.length / 4);
    guessed ||= !ids && text !== "";
  }
  return { count: tokens, guessed };
}

/** The segments that were there when the run had only these steps. */
export function segmentsUntil(trace: Trace, steps: readonly Step[], whole: boolean): Segment[] {
  if (whole) return trace.segments;
  const latest = Math.max(-1, ...steps.flatMap((step) => step.segments));
  const prompt = trace.segments.findIndex(({ by }) => by !== "prompt");
  return trace.segments.slice(0, Math.max(latest + 1, prompt < 0 ? trace.segments.length : prompt));
}

/** How a general model was spoken to and why, in a sentence; empty for one that speaks the protocol. */
export function rungsText(rungs: readonly RungUsed[] | undefined): string {
  const parts = (rungs ?? []).map(({ rung, why }) => (why ? `${rung} (${why})` : rung));
  return parts.length ? `The model was spoken to on the rung ${parts.join(", then ")}.` : "";
}
