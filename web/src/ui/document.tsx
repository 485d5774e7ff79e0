// One document as it was read, opened at a passage, with the quoted words marked.

import { useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ask, get } from "../api/call";
import type { DocumentPassage, DocumentText } from "../api/types.gen";
import { home, go, toLibrary } from "../app/route";
import { complain, options } from "../app/state";
import { lastPage, pagesOf } from "../run/pages";

const PAGE = 200;

interface Place {
  file: string;
  passage: number;
  from: number;
  to: number;
}

export default function DocumentView({ file, passage, from, to }: Place) {
  const text = useSignal<DocumentText | null>(null);
  const first = useSignal(0);
  const error = useSignal("");
  useEffect(() => {
    error.value = "";
    void read(Math.max(0, Math.floor((passage - 1) / PAGE) * PAGE));
  }, [file, passage]);
  async function read(start: number): Promise<void> {
    try {
      text.value = await get<DocumentText>(`/v1/files/${file}/text?start=${start}&limit=${PAGE}`);
      first.value = start;
    } catch (problem) {
      if (text.value?.file.id === file) complain(problem);
      else error.value = problem instanceof Error ? problem.message : String(problem);
    }
  }
  const found = text.value?.file.id === file ? text.value : null;
  if (!found) return <p class="none page-note">{error.value || "Loading…"}</p>;
  const { total, passages } = found;
  return (
    <article class="document">
      <p>
        <a href={toLibrary()}>Your documents</a>
      </p>
      <h1>{found.file.filename}</h1>
      <div class="bar-of-buttons">
        <button
          type="button"
          class="strong"
          onClick={() => {
            options.value = { ...options.value, scope: file };
            go(home);
          }}
        >
          Ask this document
        </button>
        <button type="button" onClick={() => void save(file, found.file.filename).catch(complain)}>
          Save the original
        </button>
      </div>
      {!total && <p class="none">It has not been read yet.</p>}
      {first.value > 0 && (
        <button type="button" class="quiet" onClick={() => void read(Math.max(0, first.value - PAGE))}>
          Earlier passages
        </button>
      )}
      {passages.map((one, at) => {
        const number = first.value + at + 1;
        const before = passages[at - 1];
        return <Passage key={one.id} passage={one} {...(before ? { before } : {})} here={number === passage} from={from} to={to} />;
      })}
      {first.value + passages.length < total && (
        <button type="button" class="quiet" onClick={() => void read(first.value + PAGE)}>
          Further passages
        </button>
      )}
    </article>
  );
}

/** One passage, under its heading and page where these change. */
function Passage({ passage, before, here, from, to }: { passage: DocumentPassage; before?: DocumentPassage; here: boolean; from: number; to: number }) {
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!here) return;
    (place.current?.querySelector("mark") ?? place.current)?.scrollIntoView({ block: "center" });
    place.current?.focus({ preventScroll: true });
  }, [here]);
  const begins = here || !before || passage.page !== lastPage(before);
  return (
    <section ref={place} class={here ? "passage here" : "passage"} {...(here ? { tabIndex: -1 } : {})}>
      {passage.title !== before?.title && <h2>{passage.title}</h2>}
      {pagesOf(passage, here ? from : 0, here ? to : 0).map(({ page, text: [start, quoted, rest] }, at) => (
        <Fragment key={page}>
          {page > 0 && (at > 0 || begins) && <p class="meta">page {page}</p>}
          <p class="plain">
            {start}
            {quoted && <mark>{quoted}</mark>}
            {rest}
          </p>
        </Fragment>
      ))}
    </section>
  );
}

/** The file as it was uploaded, saved by the browser. */
async function save(file: string, name: string): Promise<void> {
  const blob = await (await ask(`/v1/files/${file}/content`)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.split("/").at(-1) ?? name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
