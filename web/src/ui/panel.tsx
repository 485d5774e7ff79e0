// The trace of one run, in the view that the person chose.

import { lazy, type Lazy } from "./lazy";
import type { Session } from "../app/session";
import { tab, type Tab } from "../app/views";
import { Evidence } from "./evidence";
import { TraceList } from "./list";
import { Raw, Replay } from "./raw";
import { Waterfall } from "./waterfall";

const Graph: Lazy<{ session: Session }> = lazy(() => import("./graph"));

const TABS: Record<Tab, string> = { list: "List", graph: "Graph", waterfall: "Waterfall", evidence: "Evidence", raw: "Raw" };

export function Panel({ session }: { session: Session }) {
  const here = tab.value;
  const names = Object.keys(TABS) as Tab[];
  function move(event: KeyboardEvent): void {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = names[(names.indexOf(here) + by + names.length) % names.length] as Tab;
    tab.value = next;
    document.getElementById(`tab-${next}`)?.focus();
  }
  return (
    <section class="panel" aria-label="Trace">
      <div class="panel-head">
        <div class="tabs" role="tablist" aria-label="Views of the trace" onKeyDown={move}>
          {names.map((name) => (
            <button
              type="button"
              role="tab"
              id={`tab-${name}`}
              key={name}
              aria-selected={name === here}
              aria-controls="view"
              tabIndex={name === here ? 0 : -1}
              onClick={() => (tab.value = name)}
            >
              {TABS[name]}
            </button>
          ))}
        </div>
        <Replay session={session} />
      </div>
      <div class={`view view-${here}`} role="tabpanel" id="view" aria-labelledby={`tab-${here}`} tabIndex={0}>
        {here === "list" && <TraceList session={session} />}
        {here === "graph" && <Graph session={session} />}
        {here === "waterfall" && <Waterfall session={session} />}
        {here === "evidence" && <Evidence session={session} />}
        {here === "raw" && <Raw session={session} />}
      </div>
    </section>
  );
}
