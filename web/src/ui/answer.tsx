// The answer with its citations, and below it the claims that carry it.

import type { Session } from "../app/session";
import { DOUBTED } from "../run/labels";
import { Check, Cite } from "./cite";
import { Cited } from "./claim";
import { Markdown } from "./markdown";

const MARK = /\[\d+(\s*[,;]\s*\d+)*\]/;
/** Of policies of ours that found no answer: see UNKNOWN in agent/trace/attempts.py. */
const UNKNOWN = /^\s*i (do not|don't) know/i;

export function Answer({ session }: { session: Session }) {
  const { answer, claims, claimsShown, shown, imitated, stopped } = session.outline.value;
  const writing = session.open.value.filter(({ role }) => role === "answer").map(({ text }) => text).join("");
  if (!answer && !writing) {
    if (!stopped && !session.error.value) return <Waiting />;
    return <p class="answer none">{stopped?.detail ? `There is no answer: ${stopped.detail}` : "There is no answer."}</p>;
  }
  const text = answer?.text ?? writing;
  const cite = (number: number, key: string) =>
    imitated.has(number) && !claims.some(({ cites }) => cites.includes(number)) ? (
      <abbr key={key} title={`Another passage imitates the number ${number}, so this names no source.`}>
        [?]
      </abbr>
    ) : (
      <Cite key={key} number={number} shown={shown} claims={shown.get(number)?.[0] === claimsShown.get(number)?.[0] ? claims : []} />
    );
  const unknown = UNKNOWN.test(text);
  const cited = unknown || MARK.test(text) ? [] : [...new Set(claims.filter(({ check }) => !DOUBTED.has(check)).flatMap(({ cites }) => cites))];
  return (
    <section class="answer" aria-label="Answer" aria-live="polite">
      <div class={text.length < 160 ? "answer-text short" : "answer-text"}>
        <Markdown text={text} cite={cite} />
        {cited.length > 0 && <span class="cites">{cited.map((number) => <Cite key={number} number={number} shown={claimsShown} claims={claims} />)}</span>}
      </div>
      {answer?.by === "loop" && <p class="meta">The product says this; the policy did not write it.</p>}
      {answer && unknown && (
        <p class="meta">{shown.size > 0 ? "The passages that were found do not say it." : "Nothing was found."}</p>
      )}
      {claims.length > 0 && (
        <ul class="claims" aria-label={unknown ? "What was found on the way" : "What carries the answer"}>
          {claims.map((claim) => (
            <li key={claim.text} class={claim.check}>
              <Cited claim={claim} shown={claimsShown} />
              <Check check={claim.check} />
            </li>
          ))}
        </ul>
      )}
      {answer && !unknown && !claims.length && answer.by !== "loop" && <p class="meta">No claim of this run could be tied to a source.</p>}
    </section>
  );
}

function Waiting() {
  return (
    <div class="answer waiting" aria-hidden="true">
      <span />
      <span />
    </div>
  );
}
