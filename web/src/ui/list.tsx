// The trace as a list: what was thought, each plan with its searches, what was merged, the evidence, the answer.

import { memo } from "./memo";
import { useEffect, useRef } from "preact/hooks";
import type { Passage } from "../api/types.gen";
import type { Session } from "../app/session";
import type { Item, NodeView, Outline, Round, Said } from "../run/outline";
import { count, seconds, stateOf } from "../run/labels";
import { Check, Cite, Source } from "./cite";
import { Cited } from "./claim";
import { Markdown } from "./markdown";

/** How an evaluation names a passage that it looked for. */
const goldKey = ({ source, id }: Passage): string => `${source}\n${id}`;

const NAMES: Record<Said["kind"], string> = {
  thought: "Thought",
  restated: "Understood as",
  plan_rejected: "Plan rejected",
  merged: "Merge",
  reflected: "Reflection",
  evidenced: "Evidence",
  answered: "Answer",
  stopped: "End",
};

export function TraceList({ session }: { session: Session }) {
  const { items } = session.outline.value;
  return (
    <ol class="list" aria-label="Steps">
      {items.map((item) => (
        <Row key={item.key} session={session} item={item} />
      ))}
      <OpenBlock session={session} />
      {!items.length && !session.open.value.length && <li class="none">Nothing has happened yet.</li>}
    </ol>
  );
}

const OPEN_NAMES: Record<string, string> = { thought: "Thinking", search: "Planning", merge: "Merging", reflect: "Reflecting", evidence: "Evidence", answer: "Answering", fill: "Filling", restated: "Understanding" };

/** What is being written now. */
function OpenBlock({ session }: { session: Session }) {
  return session.open.value.map(({ role, text }, at) => (
    <li class="step writing" key={`open${at}`}>
      <h3>{OPEN_NAMES[role] ?? role}</h3>
      <p class="plain">{text.length > 4000 ? `…${text.slice(-4000)}` : text}</p>
    </li>
  ));
}

interface RowProps {
  session: Session;
  item: Item;
}

/** A row is drawn again only when its content changed. */
const Row = memo(
  function Row({ session, item }: RowProps) {
    if (item.kind === "round") return <RoundRow session={session} round={item.round} />;
    return <SaidRow session={session} id={item.key} step={item.step} shown={item.shown} />;
  },
  (a, b) => a.session === b.session && same(a.item, b.item),
);

function same(a: Item, b: Item): boolean {
  if (a.kind === "said" || b.kind === "said") return a.kind === b.kind && a.key === b.key && a.kind === "said" && b.kind === "said" && a.step === b.step;
  return (
    a.round.planned === b.round.planned &&
    a.round.gathered === b.round.gathered &&
    a.round.nodes.every((node, at) => {
      const other = b.round.nodes[at];
      return other && node.state === other.state && node.fill === other.fill && node.result === other.result;
    })
  );
}

function SaidRow({ session, id, step, shown }: { session: Session; id: string; step: Said; shown: Outline["shown"] }) {
  const claims = "claims" in step ? step.claims : [];
  const cite = (number: number, key: string) => <Cite key={key} number={number} shown={shown} claims={claims} />;
  return (
    <li class={`step ${step.kind}`} id={`step-${id}`} data-at={id} data-picked={session.selected.value === id || undefined}>
      <h3>
        {NAMES[step.kind]} <time>{seconds(step.seconds)}</time>
      </h3>
      {step.kind === "evidenced" ? (
        <ul class="claims">
          {step.claims.map((claim) => (
            <li key={claim.text}>
              <Cited claim={claim} shown={shown} /> <Check check={claim.check} />
            </li>
          ))}
        </ul>
      ) : step.kind === "stopped" ? (
        <p class="plain">{[step.reason, step.budget, step.detail].filter(Boolean).join(" · ")}</p>
      ) : step.kind === "plan_rejected" ? (
        <>
          <p class="plain">{step.text}</p>
          <p class="bad">{step.why}</p>
        </>
      ) : step.kind === "thought" || step.kind === "restated" ? (
        <Folded text={step.text} />
      ) : (
        <Markdown text={step.text} cite={cite} />
      )}
    </li>
  );
}

/** Long thoughts begin folded. */
function Folded({ text }: { text: string }) {
  if (text.length < 600) return <p class="plain">{text}</p>;
  return (
    <details class="folded">
      <summary>
        <span class="plain">{text.slice(0, 280)}…</span>
      </summary>
      <p class="plain">{text}</p>
    </details>
  );
}

function RoundRow({ session, round }: { session: Session; round: Round }) {
  const { nodes, gathered } = round;
  return (
    <li class="step round" id={`step-${round.key}`} data-at={round.key} data-picked={session.selected.value === round.key || undefined}>
      <h3>
        Plan {round.number} <small>{count(nodes.length, "search", "searches")}</small> <time>{seconds(round.planned.seconds)}</time>
      </h3>
      <ul class="nodes">
        {nodes.map((view) => (
          <NodeRow key={view.key} session={session} view={view} />
        ))}
      </ul>
      {gathered && (
        <p class="gathered">
          {gathered.passages.length ? `${count(gathered.passages.length, "passage")} read` : "Nothing to read"}
          {gathered.dropped > 0 && `, ${gathered.dropped} left out as repeats or for room`}
        </p>
      )}
    </li>
  );
}

function NodeRow({ session, view }: { session: Session; view: NodeView }) {
  const { key, node, state, fill, result } = view;
  const picked = session.selected.value === key;
  return (
    <li class={`node ${state}`} data-at={key} data-picked={picked || undefined} id={`step-${key}`}>
      <button type="button" class="node-head" aria-expanded={picked} onClick={() => (session.selected.value = picked ? "" : key)}>
        <span class="node-id">{node.id}</span>
        <span class="node-query">
          {fill ? (
            <>
              <s>{node.query}</s> {fill.query}
            </>
          ) : (
            (result && "query" in result && result.query) || node.query
          )}
        </span>
        <span class="tag">{node.source}</span>
        <span class="node-state">
          {result?.kind === "searched" && result.passages.some((passage) => session.gold.has(goldKey(passage))) && <span class="tag gold">gold</span>} {stateOf(view)}
        </span>
        {result && "took" in result && <span class="node-took">{seconds(result.took)}</span>}
      </button>
      {picked && <NodeDetail session={session} view={view} />}
    </li>
  );
}

/** All that is known of one search. */
export function NodeDetail({ session, view }: { session: Session; view: NodeView }) {
  const { node, result, fill } = view;
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => place.current?.closest("[data-at]")?.scrollIntoView({ block: "nearest" }), []);
  const shown = session.outline.value.rounds.find(({ number }) => number === view.round)?.gathered?.passages ?? [];
  const numbers = new Map(shown.map((passage) => [`${passage.id}\n${passage.node}`, passage.number]));
  const notes = [
    node.parents.length ? `after ${node.parents.join(", ")}` : "",
    ...node.filters.map(({ name, value }) => `${name} ${value}`),
    ...(result?.kind === "searched" ? [result.backend && `by ${result.backend}`, result.note, result.cached && `${result.cached} from the cache`] : []),
    fill ? "the policy completed the query" : "",
  ].filter(Boolean);
  return (
    <div class="detail" ref={place}>
      {notes.length > 0 && <p class="meta">{notes.join(" · ")}</p>}
      {result && "why" in result && <p class={result.kind === "skipped" ? "meta" : "bad"}>{result.why}</p>}
      {result && "failures" in result && result.failures.map((failure, at) => <p class="meta" key={at}>{Object.values(failure).filter((v) => typeof v === "string").join(" · ")}</p>)}
      {result?.kind === "searched" && (
        <ol class="passages">
          {result.passages.map((passage, at) => (
            <PassageRow key={at} passage={passage} number={numbers.get(`${passage.id}\n${node.id}`) ?? 0} gold={session.gold.has(goldKey(passage))} />
          ))}
        </ol>
      )}
    </div>
  );
}

function PassageRow({ passage, number, gold }: { passage: Passage; number: number; gold: boolean }) {
  return (
    <li class={number ? "passage" : "passage unread"}>
      <p class="passage-title">
        {number > 0 && <span class="number">{number}</span>}
        <Source passage={passage} />
        {passage.date && <time dateTime={passage.date}>{passage.date}</time>}
        {gold && <span class="tag gold">gold</span>}
        {!number && <small>not read</small>}
      </p>
      <p class="plain">{passage.text}</p>
    </li>
  );
}
