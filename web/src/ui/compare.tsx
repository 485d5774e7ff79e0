// One question under two protocols or models, side by side.

import { useSignal } from "@preact/signals";
import type { RunCard } from "../api/types.gen";
import { go, toCompare, toRun } from "../app/route";
import type { Session } from "../app/session";
import { complain, facts, options, start } from "../app/state";
import { again } from "../run/again";
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
  const chosen = useSignal("");
  if (!card || !models.length) return null;
  async function compare(model: string, { id }: RunCard): Promise<void> {
    busy.value = true;
    try {
      const trace = (session.detail.value ?? (await session.refresh())).trace;
      // Traces do not say their effort: the one that is chosen now holds.
      const other = await start({ model, ...again(trace), reasoning_effort: options.value.effort });
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
      <select aria-label="Compare with" value={chosen.value} disabled={busy.value} onChange={(event) => (chosen.value = event.currentTarget.value)}>
        <option value="">Compare with…</option>
        {models.map((model) => (
          <option key={model} value={model}>
            {modelName(model)}
          </option>
        ))}
      </select>
      {chosen.value && (
        <button type="button" class="quiet" disabled={busy.value} onClick={() => void compare(chosen.value, card)}>
          Compare
        </button>
      )}
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
          <Column key={id} id={id} onQuestion={(said) => (question.value ||= said)} />
        ))}
      </div>
    </div>
  );
}

function Column({ id, onQuestion }: { id: string; onQuestion: (question: string) => void }) {
  const session = useSession(id);
  const view = useSignal<"list" | "waterfall">("list");
  const card = session.card.value;
  if (!card) return <p class="none">{session.error.value || "Loading…"}</p>;
  onQuestion(card.question);
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
