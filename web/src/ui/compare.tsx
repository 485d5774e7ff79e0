// One question under two protocols or models, side by side.

import { useSignal } from "@preact/signals";
import type { RunCard } from "../api/types.gen";
import { go, toCompare, toRun } from "../app/route";
import type { Session } from "../app/session";
import { complain, facts, requestOf, start, wishes } from "../app/state";
import { Answer } from "./answer";
import { modelName } from "./ask";
import { StatusLine } from "./figures";
import { Icon } from "./icons";
import { TraceList } from "./list";
import { useSession } from "./run";
import { Waterfall } from "./waterfall";

/** Ask the same question of another model or protocol. */
export function CompareWith({ session }: { session: Session }) {
  const card = session.card.value;
  const models = (facts.value?.models ?? []).filter((model) => model !== "cairn" && model !== "cairn-chat" && model !== `cairn/${card?.protocol}`);
  const busy = useSignal(false);
  if (!card || !models.length) return null;
  async function compare(model: string, { id, question }: RunCard): Promise<void> {
    busy.value = true;
    try {
      const other = await start({ ...requestOf(question, { ...wishes.value, model }), conversation: "" });
      go(toCompare([id, other.id]));
    } catch (error) {
      complain(error);
    } finally {
      busy.value = false;
    }
  }
  return (
    <label class="as-button">
      <Icon name="columns" />
      <select aria-label="Compare with" value="" disabled={busy.value} onChange={(event) => event.currentTarget.value && void compare(event.currentTarget.value, card)}>
        <option value="">Compare with…</option>
        {models.map((model) => (
          <option key={model} value={model}>
            {modelName(model)}
          </option>
        ))}
      </select>
    </label>
  );
}

export function CompareView({ ids }: { ids: readonly string[] }) {
  const question = useSignal("");
  return (
    <div class="compare">
      <h1>{question.value || "Comparison"}</h1>
      <div class="columns">
        {ids.map((id) => (
          <Column key={id} id={id} told={(said) => (question.value ||= said)} />
        ))}
      </div>
    </div>
  );
}

function Column({ id, told }: { id: string; told: (question: string) => void }) {
  const session = useSession(id);
  const view = useSignal<"list" | "waterfall">("list");
  const card = session.card.value;
  if (!card) return <p class="none">{session.error.value || "Loading…"}</p>;
  told(card.question);
  return (
    <section class="column" aria-label={card.protocol}>
      <h2>
        <a href={toRun(id)}>{card.protocol}</a> <small>{card.policy}</small>
      </h2>
      <StatusLine session={session} />
      <Answer session={session} />
      <div class="tabs small">
        {(["list", "waterfall"] as const).map((name) => (
          <button type="button" key={name} aria-pressed={view.value === name} onClick={() => (view.value = name)}>
            {name === "list" ? "List" : "Waterfall"}
          </button>
        ))}
      </div>
      {view.value === "list" ? <TraceList session={session} /> : <Waterfall session={session} />}
    </section>
  );
}
