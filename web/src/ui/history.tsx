// The runs there were, the latest first, and a search in them.

import { useEffect } from "preact/hooks";
import { ask } from "../api/call";
import type { RunCard } from "../api/types.gen";
import { go, home, route, toLibrary, toReport, toRun } from "../app/route";
import { complain, facts, history, more, readHistory, refreshHistory, sideOpen, sought } from "../app/state";
import { doneIn, stateWord } from "./figures";
import { Icon } from "./icons";

export function History() {
  useEffect(() => {
    const soon = setTimeout(() => void readHistory(), sought.value ? 200 : 0);
    return () => clearTimeout(soon);
  }, [sought.value]);
  const running = history.value.some(({ state }) => state === "running");
  useEffect(() => {
    if (!running) return;
    const often = setInterval(() => void refreshHistory(), 3000);
    return () => clearInterval(often);
  }, [running]);
  const here = route.value.page === "run" ? route.value.id : "";
  return (
    <nav class={sideOpen.value ? "side open" : "side"} id="history" aria-label="History">
      <a class="new" href={home} onClick={() => (sideOpen.value = false)}>
        <Icon name="plus" /> New question
      </a>
      {facts.value?.libraries && (
        <a class="new" href={toLibrary()} aria-current={route.value.page === "library" ? "page" : undefined} onClick={() => (sideOpen.value = false)}>
          <Icon name="books" /> Your documents
        </a>
      )}
      <a class="new" href={toReport()} aria-current={route.value.page === "report" ? "page" : undefined} onClick={() => (sideOpen.value = false)}>
        <Icon name="pages" /> Reports
      </a>
      <label class="seek">
        <Icon name="search" />
        <input
          type="search"
          id="sought"
          placeholder="Search history"
          aria-label="Search history"
          value={sought.value}
          onInput={(event) => (sought.value = event.currentTarget.value)}
        />
      </label>
      {grouped(history.value).map(([day, cards]) => (
        <section key={day}>
          <h2>{day}</h2>
          <ul>
            {cards.map((card) => (
              <Entry key={card.id} card={card} here={card.id === here} />
            ))}
          </ul>
        </section>
      ))}
      {!history.value.length && <p class="none">{sought.value ? "Nothing was found." : "Your questions will be here."}</p>}
      {more.value && (
        <button type="button" class="quiet" onClick={() => void readHistory(true)}>
          Show more
        </button>
      )}
    </nav>
  );
}

function Entry({ card, here }: { card: RunCard; here: boolean }) {
  async function remove(): Promise<void> {
    try {
      await ask(`/api/runs/${card.id}`, { method: "DELETE" });
      history.value = history.value.filter(({ id }) => id !== card.id);
      if (here) go(home);
    } catch (error) {
      complain(error);
    }
  }
  const good = card.state === "answered" || card.state === "forced";
  return (
    <li class={here ? "entry here" : "entry"}>
      <a href={toRun(card.id)} aria-current={here ? "page" : undefined} onClick={() => (sideOpen.value = false)}>
        <span class="entry-question">{card.question}</span>
        <span class="entry-meta">
          {card.state === "running" && <span class="pulse" />}
          {good ? doneIn(card) : stateWord(card.state)} · {card.protocol}
        </span>
      </a>
      {card.state !== "running" && (
        <button type="button" class="bin" aria-label={`Remove: ${card.question}`} onClick={() => void remove()}>
          <Icon name="bin" />
        </button>
      )}
    </li>
  );
}

function grouped(cards: readonly RunCard[]): [string, RunCard[]][] {
  const days = new Map<string, RunCard[]>();
  for (const card of cards) {
    const day = dayOf(new Date(card.created));
    days.set(day, [...(days.get(day) ?? []), card]);
  }
  return [...days];
}

function dayOf(when: Date): string {
  const days = Math.round((midnight(new Date()) - midnight(when)) / 86_400_000);
  if (days < 2) return days < 1 ? "Today" : "Yesterday";
  return when.toLocaleDateString(undefined, { day: "numeric", month: "long", year: "numeric" });
}

function midnight(when: Date): number {
  return new Date(when.getFullYear(), when.getMonth(), when.getDate()).getTime();
}
