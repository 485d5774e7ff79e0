// A run as its events describe it: one pure step from a state and an event to the next state. It knows no page.

import type { Delta, RunCard, Trace } from "../api/types.gen";

export type Step = Trace["steps"][number];
export type StepOf<K extends Step["kind"]> = Extract<Step, { kind: K }>;
export type Piece = Pick<Delta, "role" | "text">;

export type RunEvent =
  | { event: "step"; id: string; data: Step }
  | { event: "delta"; id: string; data: Piece }
  | { event: "snapshot"; id: string; data: Piece[] }
  | { event: "reset"; id: string; data: object }
  | { event: "end"; id: string; data: RunCard };

export interface Run {
  /** Id of the last event: where a connection that was cut goes on. */
  place: string;
  /** In the order in which they happened. */
  steps: readonly Step[];
  /** The block that is being written. */
  open: readonly Piece[];
  /** Characters of text that were streamed in all, of which tokens are guessed until the end reports them. */
  streamed: number;
  /** The card of a run that has ended. */
  end: RunCard | null;
  /** An event is missing: the reader must fetch again, from `place` on. */
  gap: boolean;
}

export const NOTHING: Run = { place: "", steps: [], open: [], streamed: 0, end: null, gap: false };

/** The next state. An event that was seen before changes nothing; one that comes too early is left out, as a `gap`. */
export function reduce(run: Run, event: RunEvent): Run {
  switch (event.event) {
    case "reset":
      return { ...NOTHING, place: event.id };
    case "step":
      return stepped(run, event.id, event.data);
    case "delta":
      return grown(run, event.id, event.data);
    case "snapshot":
      return snapped(run, event.id, event.data);
    case "end":
      return run.end ? run : { ...run, place: event.id, open: [], end: event.data, gap: false };
  }
}

/** All of a run whose trace is known. Steps of a trace are in the plan's order; here they come as they happened. */
export function fromTrace(trace: Trace, card: RunCard): Run {
  const steps = inOrder(trace.steps);
  const ended = card.state !== "running";
  return { ...NOTHING, place: `${steps.length}.0${ended ? ".end" : ""}`, steps, end: ended ? card : null };
}

export function inOrder(steps: readonly Step[]): Step[] {
  return steps.toSorted((a, b) => a.seconds - b.seconds);
}

function stepped(run: Run, id: string, step: Step): Run {
  const number = placeOf(id).steps;
  if (number <= run.steps.length) return run;
  if (number > run.steps.length + 1) return { ...run, gap: true };
  return { ...run, place: id, steps: [...run.steps, step], open: [], gap: false };
}

function grown(run: Run, id: string, { role, text }: Piece): Run {
  const place = placeOf(id);
  const had = charsOf(run.open);
  if (place.steps < run.steps.length || (place.steps === run.steps.length && place.chars <= had)) return run;
  if (place.steps > run.steps.length || place.chars - length(text) !== had) return { ...run, gap: true };
  const last = run.open.at(-1);
  const joined = last?.role === role ? { role, text: last.text + text } : { role, text };
  const open = last?.role === role ? [...run.open.slice(0, -1), joined] : [...run.open, joined];
  return { ...run, place: id, open, streamed: run.streamed + text.length, gap: false };
}

function snapped(run: Run, id: string, open: Piece[]): Run {
  const { steps } = placeOf(id);
  if (steps < run.steps.length) return run;
  if (steps > run.steps.length) return { ...run, gap: true };
  const more = Math.max(0, charsOf(open) - charsOf(run.open));
  return { ...run, place: id, open, streamed: run.streamed + more, gap: false };
}

/** What an id says: how many steps were seen, and how many characters after them. */
export function placeOf(id: string): { steps: number; chars: number } {
  const [steps, chars] = id.split(/[.~]/, 2);
  return { steps: Number(steps) || 0, chars: Number(chars) || 0 };
}

function charsOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, piece) => sum + length(piece.text), 0);
}

/** Characters as the server counts them: a pair of surrogates is one. */
function length(text: string): number {
  let pairs = 0;
  for (let at = 0; at < text.length - 1; at++) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) pairs++;
  }
  return text.length - pairs;
}
