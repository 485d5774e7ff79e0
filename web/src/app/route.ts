// Where the page is, as the part of its address behind `#`: so that any address of it can be kept and sent on.

import { computed, signal } from "@preact/signals";

export type Route = { page: "home" } | { page: "run"; id: string } | { page: "compare"; ids: string[] }
  | { page: "library"; id: string }
  | { page: "report"; id: string }
  | { page: "settings" }
  /** A document at one of its passages, from 1, and in that the words from one character to another. */
  | { page: "document"; file: string; passage: number; from: number; to: number };

const ID = /^[0-9A-Za-z_-]{1,128}$/;
const hash = signal(location.hash);
window.addEventListener("hashchange", () => (hash.value = location.hash));

export const route = computed<Route>(() => {
  const [page = "", ...ids] = hash.value.replace(/^#\/?/, "").split("/");
  if (page === "settings") return { page };
  if (page === "library" || page === "report") return { page, id: ids[0] && ID.test(ids[0]) ? ids[0] : "" };
  if (!ids.length || !ids.every((id) => ID.test(id))) return { page: "home" };
  if (page === "document") {
    const [passage = 1, from = 0, to = 0] = ids.slice(1).map(Number);
    return { page: "document", file: ids[0] as string, passage, from, to };
  }
  if (page === "run") return { page: "run", id: ids[0] as string };
  return page === "compare" ? { page: "compare", ids: ids.slice(0, 3) } : { page: "home" };
});

export const home = "#/";
export const settings = "#/settings";
export const toRun = (id: string): string => `#/run/${id}`;
export const toCompare = (ids: readonly string[]): string => `#/compare/${ids.join("/")}`;

export const toLibrary = (id = ""): string => (id ? `#/library/${id}` : "#/library");

export const toReport = (id = ""): string => (id ? `#/report/${id}` : "#/report");

/** Where a cited passage is in its document; "" where it is in no library. */
export function toDocument(passage: string, quote?: { start: number; end: number }): string {
  const found = /^(file-[0-9a-f]{24})#(\d{1,7})$/.exec(passage);
  if (!found) return "";
  return `#/document/${found[1]}/${found[2]}${quote ? `/${quote.start}/${quote.end}` : ""}`;
}

export function go(to: string): void {
  location.hash = to;
  hash.value = to;
}
