// A report while it is researched and when it is done: its sections with citations, what contradicts itself, what could
// not be verified, its sources, and the files that it can be taken along as.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask } from "../api/call";
import type { Report, ReportCard, ReportDetail, ReportSentence, ReportSource, Section } from "../api/types.gen";
import { commandReport, followReport, readReports } from "../app/reports";
import { go, toDocument, toReport, toRun } from "../app/route";
import { complain } from "../app/state";
import { count, seconds } from "../run/labels";
import { saved } from "./evidence";
import { Icon } from "./icons";
import { Link } from "./markdown";

const FORMATS = { md: "Markdown", html: "HTML", docx: "Word", pdf: "PDF", json: "JSON" } as const;

const STATES: Record<ReportCard["state"], string> = {
  running: "Being researched",
  done: "Done",
  cut: "Done early: a budget ended, or you requested it",
  failed: "Nothing could be researched",
  cancelled: "Cancelled",
  interrupted: "Interrupted: the server ended",
};

const SECTION_STATES: Record<Section["state"], string> = {
  waiting: "waits",
  running: "is being researched",
  researched: "",
  left_out: "left out",
  failed: "failed",
  cancelled: "cancelled",
};

export default function ReportView({ id }: { id: string }) {
  return id ? <One key={id} id={id} /> : <All />;
}

function All() {
  const reports = useSignal<ReportCard[] | null>(null);
  const older = useSignal("");
  const read = () =>
    readReports(older.value)
      .then((page) => {
        const known = new Set(reports.value?.map(({ id }) => id));
        reports.value = [...(reports.value ?? []), ...page.reports.filter(({ id }) => !known.has(id))];
        older.value = page.next ?? "";
      })
      .catch(complain);
  useEffect(() => void read(), []);
  if (!reports.value) return <p class="none page-note">Loading…</p>;
  return (
    <div class="library">
      <h1>Reports</h1>
      <p class="lead">A report is researched section by section, under one budget. Every sentence of it is one that a source says.</p>
      {!reports.value.length && <p class="none">There is no report yet: write a question, and choose “Report”.</p>}
      <ul class="cards">
        {reports.value.map((card) => (
          <li key={card.id}>
            <a href={toReport(card.id)}>{card.figures.title || card.question}</a>
            <span class="meta">
              {STATES[card.state]} · {count(card.figures.sentences, "sentence")} · {count(card.figures.sources, "source")}
            </span>
          </li>
        ))}
      </ul>
      {older.value && (
        <button type="button" class="quiet" onClick={() => void read()}>
          Show more
        </button>
      )}
    </div>
  );
}

function One({ id }: { id: string }) {
  const detail = useSignal<ReportDetail | null>(null);
  const error = useSignal("");
  useEffect(() => {
    const stop = new AbortController();
    followReport(id, (found) => (detail.value = found), stop.signal).catch((problem: unknown) => {
      if (!stop.signal.aborted) error.value = problem instanceof Error ? problem.message : String(problem);
    });
    return () => stop.abort();
  }, [id]);
  const found = detail.value;
  useEffect(() => {
    document.title = found ? `${found.report.title || found.question} · Cairn` : "Cairn";
    return () => void (document.title = "Cairn");
  }, [found?.report.title]);
  if (!found) return <p class="none page-note">{error.value || "Loading…"}</p>;
  return (
    <article class="document report">
      <h1>{found.report.title || found.question}</h1>
      {error.value && <p class="bad">{error.value}</p>}
      <Used detail={found} />
      {found.state === "running" ? <Commands id={id} /> : <TakeAlong id={id} />}
      {found.report.note && <p class="meta">{found.report.note}</p>}
      <Text report={found.report} />
    </article>
  );
}

/** What was used of the budget, live. */
function Used({ detail: { state, report } }: { detail: ReportDetail }) {
  const { used, budget } = report;
  const parts = [
    `${seconds(used.seconds)} of ${seconds(budget.seconds)}`,
    `${used.searches} of ${count(budget.searches, "search", "searches")}`,
    `${used.tokens.toLocaleString("en")} of ${count(budget.tokens, "token")}`,
    used.usd > 0 ? `$${used.usd.toFixed(3)}` : "",
  ];
  return (
    <div class="uploads" role="status">
      <p>
        {state === "running" && <span class="pulse" />}
        {STATES[state]} · {parts.filter(Boolean).join(" · ")}
      </p>
      {state === "running" && <progress max={budget.seconds} value={used.seconds} aria-label="Time used" />}
    </div>
  );
}

function Commands({ id }: { id: string }) {
  const commanded = useSignal("");
  const command = (what: "cancel" | "answer_now") => {
    commanded.value = what;
    commandReport(id, what).catch((error: unknown) => {
      commanded.value = "";
      complain(error);
    });
  };
  return (
    <div class="bar-of-buttons">
      <button type="button" disabled={commanded.value !== ""} onClick={() => command("answer_now")}>
        {commanded.value === "answer_now" ? "It will be written…" : "Write it now"}
      </button>
      <button type="button" disabled={commanded.value === "cancel"} onClick={() => command("cancel")}>
        <Icon name="stop" /> Cancel
      </button>
    </div>
  );
}

function TakeAlong({ id }: { id: string }) {
  async function remove(): Promise<void> {
    try {
      await ask(`/api/reports/${id}`, { method: "DELETE" });
      go(toReport());
    } catch (error) {
      complain(error);
    }
  }
  return (
    <div class="bar-of-buttons">
      {Object.entries(FORMATS).map(([format, name]) => (
        <button type="button" key={format} onClick={() => void saved(`/api/reports/${id}/export?format=${format}`)}>
          {name}
        </button>
      ))}
      <button type="button" aria-label="Delete the report" onClick={() => void remove()}>
        <Icon name="bin" />
      </button>
    </div>
  );
}

function Text({ report }: { report: Report }) {
  const sources = new Map(report.sources.map((source) => [source.number, source]));
  return (
    <>
      {report.sections.map((section) => (
        <Part key={section.heading} section={section} sources={sources} />
      ))}
      {report.contradictions.length > 0 && (
        <section>
          <h2>Contradictions</h2>
          <ul class="prose">
            {report.contradictions.map((one, at) => (
              <li key={at}>
                {one.says} <Marks numbers={one.says_sources} sources={sources} /> — but: {one.against} <Marks numbers={one.against_sources} sources={sources} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {report.unverified.length > 0 && (
        <section>
          <h2>Not verified</h2>
          <p class="meta">These were claimed on the way, and no source that they cite says them.</p>
          <ul>
            {report.unverified.map((one, at) => (
              <li key={at}>
                {one.text} <small>{one.section}</small>
              </li>
            ))}
          </ul>
        </section>
      )}
      {report.sources.length > 0 && <Sources sources={report.sources} />}
    </>
  );
}

function Part({ section, sources }: { section: Section; sources: ReadonlyMap<number, ReportSource> }) {
  const state = SECTION_STATES[section.state];
  return (
    <section>
      <h2>{section.heading}</h2>
      {(state || section.why) && (
        <p class="meta">
          {section.state === "running" && <span class="pulse" />}
          {[state, section.why].filter(Boolean).join(": ")}
        </p>
      )}
      <p>
        {section.sentences.map((sentence, at) => (
          <Sentence key={at} sentence={sentence} sources={sources} />
        ))}
      </p>
      {section.run && (
        <p class="meta">
          <a href={toRun(section.run)}>How this was researched</a>
        </p>
      )}
    </section>
  );
}

function Sentence({ sentence, sources }: { sentence: ReportSentence; sources: ReadonlyMap<number, ReportSource> }) {
  return (
    <span>
      {sentence.kind === "quote" ? <q>{sentence.text}</q> : sentence.text} <Marks numbers={sentence.sources} sources={sources} quotes={sentence.quotes} />{" "}
    </span>
  );
}

interface MarksProps {
  numbers: readonly number[];
  sources: ReadonlyMap<number, ReportSource>;
  quotes?: ReportSentence["quotes"];
}

/** Each number: a link to the quoted place of an uploaded document, or to the list of sources. */
function Marks({ numbers, sources, quotes = [] }: MarksProps) {
  return (
    <>
      {numbers.map((number) => {
        const quote = quotes.find(({ source }) => source === number);
        const place = quote ? toDocument(quote.passage, quote) : "";
        const label = `Source ${number}: ${sources.get(number)?.title ?? ""}`;
        const title = quote?.text ?? label;
        return place ? (
          <a key={number} class="chip" href={place} aria-label={label} title={title}>
            {number}
          </a>
        ) : (
          <button key={number} type="button" class="chip" aria-label={label} title={title} onClick={() => show(`source-${number}`)}>
            {number}
          </button>
        );
      })}
    </>
  );
}

/** Scroll there, and read on from there with the keyboard. */
function show(id: string): void {
  const place = document.getElementById(id);
  place?.scrollIntoView({ block: "center" });
  place?.focus({ preventScroll: true });
}

function Sources({ sources }: { sources: readonly ReportSource[] }) {
  return (
    <section>
      <h2>Sources</h2>
      <ol class="sources">
        {sources.map((source) => (
          <li key={source.number} id={`source-${source.number}`} tabIndex={-1} value={source.number}>
            <Link url={source.url}>{source.title || source.url}</Link> <span class="meta">{[source.source, source.date].filter(Boolean).join(" · ")}</span>
            <details>
              <summary>{count(source.passages.length, "passage")}</summary>
              {source.passages.map((passage) => (
                <blockquote key={passage.id}>{passage.text}</blockquote>
              ))}
            </details>
          </li>
        ))}
      </ol>
    </section>
  );
}
