// The claims with the words that carry them, and the ways to take them along.

import { useSignal } from "@preact/signals";
import { ask, copyText, get, post } from "../api/call";
import type { RunAnswer, RunEvidence } from "../api/types.gen";
import type { Session } from "../app/session";
import { complain, facts } from "../app/state";
import { evidenceOf, type EvidenceRow } from "../run/evidence";
import { Check, Source } from "./cite";
import { Icon } from "./icons";

export function Evidence({ session }: { session: Session }) {
  const rows = evidenceOf(session.steps.value);
  return (
    <>
      {rows.length ? (
        <div class="table-frame" tabIndex={0} role="group" aria-label="Evidence">
          <table class="evidence" role="table">
            <thead role="rowgroup">
              <tr role="row">
                <th scope="col" role="columnheader">Claim</th>
                <th scope="col" role="columnheader">Quote</th>
                <th scope="col" role="columnheader">Source</th>
                <th scope="col" role="columnheader">Check</th>
                <th scope="col" role="columnheader">Used in</th>
              </tr>
            </thead>
            <tbody role="rowgroup">
              {rows.map((row) => (
                <ClaimRow key={row.key} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p class="none">{session.running.value ? "No claims yet." : "This run made no claims that cite something."}</p>
      )}
      {session.served && !session.running.value && <TakeAlong session={session} />}
    </>
  );
}

function ClaimRow({ row: { claim, quotes, used } }: { row: EvidenceRow }) {
  return (
    <tr role="row">
      <td role="cell" class="claim">
        {claim.text}
        {claim.derived && <small> derived</small>}
      </td>
      <td role="cell">
        {quotes.map(({ quote, number }, at) => quote && <q key={at} data-number={number}>{quote.text}</q>)}
        {!quotes.some(({ quote }) => quote) && <span class="none">–</span>}
      </td>
      <td role="cell">
        {quotes.map(({ quote, passage, number }, at) => (
          <p key={at} class="source-line">
            <span class="number">{number}</span>
            <span>
              {passage ? <Source passage={passage} claims={[{ ...claim, quotes: quote ? [quote] : [] }]} /> : "never shown"}{" "}
              <span class="meta">{[passage?.source, passage?.date].filter(Boolean).join(" · ")}</span>
            </span>
          </p>
        ))}
      </td>
      <td role="cell">
        <Check check={claim.check} />
      </td>
      <td role="cell" class="meta">{used.join(", ")}</td>
    </tr>
  );
}

function TakeAlong({ session }: { session: Session }) {
  const copied = useSignal(false);
  async function copy(): Promise<void> {
    try {
      const { bundle } = await get<RunEvidence>(`/api/runs/${session.id}/evidence`);
      await copyText(JSON.stringify(bundle, null, 1));
      copied.value = true;
      setTimeout(() => (copied.value = false), 2000);
    } catch (error) {
      complain(error);
    }
  }
  return (
    <>
      <div class="bar-of-buttons">
        {(["json", "markdown", "bibtex"] as const).map((format) => (
          <button type="button" key={format} onClick={() => void download(session.id, format)}>
            {{ json: "JSON", markdown: "Markdown", bibtex: "BibTeX" }[format]}
          </button>
        ))}
        <button type="button" onClick={() => void copy()}>
          {copied.value ? "Copied" : "Copy as RSTool bundle"}
        </button>
      </div>
      <OtherModel session={session} />
    </>
  );
}

/** Save an export of a run as a file. */
export async function download(id: string, format: "json" | "markdown" | "bibtex" | "html"): Promise<void> {
  await saved(`/api/runs/${id}/export?format=${format}`);
}

/** A file of the server's, kept by the browser under the name that the server gives it. */
export async function saved(path: string): Promise<void> {
  try {
    const response = await ask(path);
    const name = /filename="([\w.-]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? "cairn";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    complain(error);
  }
}

/** Another model answers from the evidence; its answer is shown beside ours. */
function OtherModel({ session }: { session: Session }) {
  const models = facts.value?.answer_models ?? [];
  const model = useSignal("");
  const busy = useSignal(false);
  const said = useSignal<RunAnswer["downstream"] | null>(null);
  if (!models.length)
    return (
      <p class="meta hint">
        To send this evidence to another model, start the server with <code>CAIRN_ANSWER_URL</code> and <code>CAIRN_ANSWER_MODELS</code>.
      </p>
    );
  async function send(): Promise<void> {
    busy.value = true;
    try {
      said.value = (await post<RunAnswer>(`/api/runs/${session.id}/answer_with`, { model: model.value || models[0] })).downstream;
    } catch (error) {
      complain(error);
    } finally {
      busy.value = false;
    }
  }
  return (
    <section class="other">
      <h3>Send to another model</h3>
      <div class="bar-of-buttons">
        <select aria-label="Model" value={model.value || models[0]} onChange={(event) => (model.value = event.currentTarget.value)}>
          {models.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <button type="button" disabled={busy.value} onClick={() => void send()}>
          <Icon name="out" /> {busy.value ? "It answers…" : "Send"}
        </button>
      </div>
      {said.value && (
        <div class="beside-ours" role="status">
          <div>
            <h4>Ours</h4>
            <p>{said.value.ours ?? "no answer"}</p>
          </div>
          <div>
            <h4>{said.value.model}</h4>
            <p class={said.value.outcome === "answered" ? "" : "bad"}>{said.value.answer ?? said.value.why}</p>
          </div>
        </div>
      )}
    </section>
  );
}
