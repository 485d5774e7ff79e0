// The page of one run: its question and answer on one side, its trace on the other.

import { useSignal, useSignalEffect, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { copyText, get } from "../api/call";
import type { RunPage } from "../api/types.gen";
import { toRun } from "../app/route";
import { Session } from "../app/session";
import { complain, noteCard } from "../app/state";
import { turnsBefore, type Turn } from "../run/again";
import { count } from "../run/labels";
import { current } from "../app/views";
import { Answer } from "./answer";
import { Ask } from "./ask";
import { CompareWith } from "./compare";
import { download } from "./evidence";
import { StatusLine } from "./figures";
import { Icon } from "./icons";
import { Panel } from "./panel";

/** Follow a run for as long as the component that asks is there. */
export function useSession(id: string): Session {
  const session = useMemo(() => new Session(id), [id]);
  useEffect(() => {
    void session.begin();
    return () => session.end();
  }, [session]);
  useSignalEffect(() => {
    const card = session.card.value;
    if (card) noteCard(card);
  });
  return session;
}

export function RunView({ id }: { id: string }) {
  const session = useSession(id);
  const places = useConversation(session);
  useEffect(() => {
    current.value = session;
    return () => {
      if (current.value === session) current.value = null;
    };
  }, [session]);
  const card = session.card.value;
  useEffect(() => {
    document.title = card ? `${card.question.slice(0, 60)} · Cairn` : "Cairn";
    return () => void (document.title = "Cairn");
  }, [card?.question]);
  const detail = session.detail.value;
  const turns = detail ? turnsBefore(detail.trace) : [];
  if (!card) return <p class="none page-note">{session.error.value || "Loading…"}</p>;
  return (
    <div class="run" data-run={card.id}>
      <div class="answer-column">
        {turns.map((turn, at) => (
          <Before key={at} turn={turn} place={places.value.get(turn.join(""))} />
        ))}
        <h1 class={card.question.length > 240 ? "long" : ""}>{card.question}</h1>
        <p class="meta under">
          <span class="tag">{card.protocol}</span> {card.policy}
          <time dateTime={card.created}>{new Date(card.created).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}</time>
        </p>
        <FollowUp session={session} />
        <StatusLine session={session} />
        {session.running.value && <Commands session={session} />}
        <Answer session={session} />
        {!session.running.value && (
          <>
            <Actions session={session} />
            {detail && <Ask key={card.id} before={{ ...detail, ...card }} label="Ask a follow-up question" />}
          </>
        )}
      </div>
      <Panel session={session} />
    </div>
  );
}

/** A turn before this one, with a link to its run where that is known. */
function Before({ turn: [question, answer], place }: { turn: Turn; place: string | undefined }) {
  const text = (
    <>
      <span>{question}</span>
      <span class="turn-answer">{answer || "no answer"}</span>
    </>
  );
  return place ? (
    <a class="turn" href={place}>
      {text}
    </a>
  ) : (
    <p class="turn">{text}</p>
  );
}

/** What the person wrote, where it only changes the question before, and how many searches were used again. */
function FollowUp({ session }: { session: Session }) {
  const trace = session.detail.value?.trace;
  const follow = trace?.follow_up;
  if (!follow) return null;
  const searched = session.steps.value.filter((step) => step.kind === "searched");
  const reused = searched.filter((step) => step.kind === "searched" && step.cached === "reused").length;
  const dates = (trace.filters ?? []).filter(({ name }) => name === "after" || name === "before").map(({ name, value }) => `${name} ${value}`);
  return (
    <p class="meta follow-up">
      {follow.text !== trace.question && <>You wrote: “{follow.text}”. </>}
      {dates.length > 0 && <>Searched {dates.join(" and ")}. </>}
      {follow.run && searched.length > 0 && (reused ? `${count(reused, "search", "searches")} of the run before used again, ${searched.length - reused} new.` : "Everything was searched again.")}
    </p>
  );
}

function Commands({ session }: { session: Session }) {
  const commanded = session.commanded.value;
  return (
    <div class="bar-of-buttons">
      <button type="button" disabled={commanded !== ""} onClick={() => session.command("answer_now").catch(complain)}>
        {commanded === "answer_now" ? "It will answer…" : "Answer now"}
      </button>
      <button type="button" disabled={commanded === "cancel"} onClick={() => session.command("cancel").catch(complain)}>
        <Icon name="stop" /> {commanded === "cancel" ? "Cancelling…" : "Cancel"}
      </button>
    </div>
  );
}

function Actions({ session }: { session: Session }) {
  const copied = useSignal(false);
  async function copy(): Promise<void> {
    try {
      await copyText(location.href);
      copied.value = true;
      setTimeout(() => (copied.value = false), 2000);
    } catch {
      complain(new Error(`Copy the address by hand: ${location.href}`));
    }
  }
  return (
    <div class="bar-of-buttons actions">
      <button type="button" onClick={() => void copy()}>
        <Icon name="link" /> {copied.value ? "Copied" : "Permalink"}
      </button>
      <button type="button" title="One HTML file that needs no server" onClick={() => void download(session.id, "html")}>
        <Icon name="share" /> Share
      </button>
      <CompareWith session={session} />
    </div>
  );
}

/** The addresses of the runs of the same conversation before this one, by question and answer. */
function useConversation(session: Session): Signal<ReadonlyMap<string, string>> {
  const places = useSignal<ReadonlyMap<string, string>>(new Map());
  const card = session.card.value;
  useEffect(() => {
    places.value = new Map();
    if (!card?.conversation) return;
    const query = new URLSearchParams({ conversation: card.conversation, limit: "50" });
    get<RunPage>(`/api/runs?${query}`)
      .then(({ runs }) => {
        const earlier = runs.filter(({ created }) => created < card.created).toReversed();
        places.value = new Map(earlier.map(({ id, question, answer }) => [question + (answer ?? ""), toRun(id)]));
      })
      .catch(complain);
  }, [card?.id]);
  return places;
}
