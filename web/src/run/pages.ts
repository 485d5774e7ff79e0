// A passage of a document by the pages that it is on. Pure.

import type { DocumentPassage } from "../api/types.gen";

export interface PagePart {
  /** From 1; 0 where the document has no pages. */
  page: number;
  /** Before the quoted words, these, and after them. */
  text: [string, string, string];
}

/**
 * The text of a passage, page by page; pages that hold nothing of it are left out.
 *
 * @param from where the quoted words begin in it, in characters as Python counts them.
 * @param to where they end; the same as `from`: nothing is quoted.
 */
export function pagesOf(passage: DocumentPassage, from: number, to: number): PagePart[] {
  const chars = Array.from(passage.text);
  const edges = [0, ...passage.page_breaks, chars.length];
  const cut = (start: number, end: number): string => chars.slice(start, Math.max(start, end)).join("");
  const parts = edges.slice(1).map((end, at): PagePart => {
    const start = edges[at] as number;
    const [first, last] = [from, to].map((place) => Math.min(Math.max(place, start), end)) as [number, number];
    return { page: passage.page && passage.page + at, text: [cut(start, first), cut(first, last), cut(last, end)] };
  });
  return parts.map((part) => ({ ...part, text: trimmed(part.text) })).filter(({ text }) => text.some(Boolean));
}

/** Without the empty lines between two pages. */
function trimmed([before, quoted, after]: PagePart["text"]): PagePart["text"] {
  if (after) return [before, quoted, after.trimEnd()];
  return quoted ? [before, quoted.trimEnd(), ""] : [before.trimEnd(), "", ""];
}

/** The page that a passage ends on. */
export function lastPage(passage: DocumentPassage): number {
  return passage.page && passage.page + passage.page_breaks.length;
}
