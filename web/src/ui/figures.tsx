// The figures of a run: seconds, searches, passages, tokens, and what it cost.

import type { RunCard } from "../api/types.gen";
import type { Session } from "../app/session";
import { count, doing, seconds } from "../run/labels";

export function doneIn(card: RunCard): string {
  return `${seconds(card.seconds)}, ${count(card.searches, "search", "searches")}`;
}

export function stateWord(state: RunCard["state"]): string {
  return { running: "running", answered: "answered", forced: "answered early", bad_format: "no answer", cancelled: "cancelled", engine: "failed", interrupted: "interrupted" }[state];
}

export function StatusLine({ session }: { session: Session }) {
  const { run, outline, card } = session;
  const running = session.running.value;
  const done = card.value?.state === "running" ? null : card.value;
  const took = done && session.replay.value === null ? done.seconds : running ? session.clock.value : outline.value.seconds;
  const guessed = Math.ceil(run.value.streamed / 4);
  const bad = ["engine", "bad_format", "cancelled", "interrupted"].includes(outline.value.stopped?.reason ?? run.value.end?.state ?? "");
  const word = session.error.value || doing({ ...run.value, open: session.open.value }, outline.value);
  return (
    <div class="status">
      <p class={bad || session.error.value ? "now bad" : "now"} role="status">
        {running && <span class="pulse" />}
        {word}
        {running && !session.connected.value && <span class="lost"> · connection lost, trying again</span>}
      </p>
      <dl class="figures">
        <Figure name="time" value={seconds(took)} />
        <Figure name="searches" value={outline.value.searches.toString()} />
        <Figure name="passages" value={outline.value.passages.toString()} />
        <Figure name="tokens" value={done ? done.tokens.toLocaleString("en") : `≈ ${guessed.toLocaleString("en")}`} />
        {done && done.usd > 0 && <Figure name="cost" value={`$${done.usd.toFixed(done.usd < 0.1 ? 4 : 2)}`} />}
        {done && done.credits > 0 && <Figure name="credits" value={done.credits.toString()} />}
      </dl>
    </div>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
