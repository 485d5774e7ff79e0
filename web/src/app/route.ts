// Where the page is, as the part of its address behind `#`: so that any address of it can be kept and sent on.

import { computed, signal } from "@preact/signals";

export type Route = { page: "home" } | { page: "run"; id: string } | { page: "compare"; ids: string[] };

const ID = /^[0-9A-Za-z_-]{1,128}$/;
const hash = signal(location.hash);
window.addEventListener("hashchange", () => (hash.value = location.hash));

export const route = computed<Route>(() => {
  const [page = "", ...ids] = hash.value.replace(/^#\/?/, "").split("/");
  if (!ids.length || !ids.every((id) => ID.test(id))) return { page: "home" };
  if (page === "run") return { page: "run", id: ids[0] as string };
  return page === "compare" ? { page: "compare", ids: ids.slice(0, 3) } : { page: "home" };
});

export const home = "#/";
export const toRun = (id: string): string => `#/run/${id}`;
export const toCompare = (ids: readonly string[]): string => `#/compare/${ids.join("/")}`;

export function go(to: string): void {
  location.hash = to;
  hash.value = to;
}
