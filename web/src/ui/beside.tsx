// The search that is picked, in full, beside the graph or the waterfall.

import type { Session } from "../app/session";
import { NodeDetail } from "./list";

export function Beside({ session }: { session: Session }) {
  const { rounds } = session.outline.value;
  const view = rounds.flatMap(({ nodes }) => nodes).find(({ key }) => key === session.selected.value);
  if (!view) return null;
  return (
    <section class="beside" aria-label={`Search ${view.node.id}`}>
      <h3>
        {view.node.id} · {view.fill?.query ?? view.node.query}
      </h3>
      <NodeDetail session={session} view={view} key={view.key} />
    </section>
  );
}
