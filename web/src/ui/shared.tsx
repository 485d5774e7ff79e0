// A run on a page that needs no server: its question and answer on one side, its trace on the other.

import type { Session } from "../app/session";
import { turnsBefore } from "../run/again";
import { Answer } from "./answer";
import { StatusLine } from "./figures";
import { Panel } from "./panel";

export function SharedRun({ session }: { session: Session }) {
  const trace = session.detail.value?.trace;
  if (!trace) return null;
  const turns = turnsBefore(trace);
  return (
    <main class="run shared">
      <div class="answer-column">
        {turns.map(([question, answer], at) => (
          <p class="turn" key={at}>
            <span>{question}</span>
            <span class="turn-answer">{answer}</span>
          </p>
        ))}
        <h1 class={trace.question.length > 240 ? "long" : ""}>{trace.question}</h1>
        <p class="meta under">
          <span class="tag">{trace.protocol}</span> {trace.policy}
        </p>
        <StatusLine session={session} />
        <Answer session={session} />
      </div>
      <Panel session={session} />
    </main>
  );
}
