// Keys that do something wherever the person is on the page, unless they write.

import { complain, helpOpen, nextTheme, sideOpen } from "./state";
import { go, home } from "./route";
import { current, tab, type Tab } from "./views";

export const KEYS: readonly [string, string][] = [
  ["/", "Write a question"],
  ["n", "New question"],
  ["h", "Search the history"],
  ["l", "List"],
  ["g", "Graph"],
  ["w", "Waterfall"],
  ["e", "Evidence"],
  ["r", "Raw"],
  ["j k", "Next and previous step"],
  ["a", "Answer now"],
  ["x", "Cancel the run"],
  ["t", "Dark or light"],
  ["?", "These keys"],
  ["Esc", "Close what is open"],
];

const TABS: Record<string, Tab> = { l: "list", g: "graph", w: "waterfall", e: "evidence", r: "raw" };

export function listen(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") return escape();
    if (event.target instanceof Element && event.target.closest("input, textarea, select, dialog")) return;
    if (press(event.key)) event.preventDefault();
  });
}

function escape(): void {
  sideOpen.value = false;
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

/** Do what the key is for; false where it is for nothing. */
function press(key: string): boolean {
  const view = TABS[key];
  if (view && current.value) {
    tab.value = view;
    document.getElementById(`tab-${view}`)?.focus();
    return true;
  }
  switch (key) {
    case "/":
      return focus("question");
    case "h":
      sideOpen.value = true;
      return focus("sought");
    case "n":
      go(home);
      requestAnimationFrame(() => focus("question"));
      return true;
    case "?":
      helpOpen.value = true;
      return true;
    case "t":
      nextTheme();
      return true;
    case "a":
    case "x":
      current.value?.command(key === "a" ? "answer_now" : "cancel").catch(complain);
      return true;
    case "j":
    case "k":
      return step(key === "j" ? 1 : -1);
    default:
      return false;
  }
}

function focus(id: string): boolean {
  document.getElementById(id)?.focus();
  return true;
}

/** Point every view at the next step or search. */
function step(by: number): boolean {
  const session = current.value;
  if (!session) return false;
  const keys = session.outline.value.items.flatMap((item) => (item.kind === "round" ? [item.key, ...item.round.nodes.map(({ key }) => key)] : [item.key]));
  const at = keys.indexOf(session.selected.value);
  const next = keys[at < 0 ? (by > 0 ? 0 : keys.length - 1) : Math.max(0, Math.min(keys.length - 1, at + by))];
  if (next) session.selected.value = next;
  requestAnimationFrame(() => document.querySelector("[data-picked]")?.scrollIntoView({ block: "nearest" }));
  return true;
}
