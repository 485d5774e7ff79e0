// Where a question is written: its box, and behind one button the options of its answer.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { RunDetail } from "../api/types.gen";
import { startReport } from "../app/reports";
import { go, toReport, toRun } from "../app/route";
import { PLAIN, complain, facts, options, requestOf, start, type RunOptions } from "../app/state";
import { Icon } from "./icons";
import { Attach, Scope, Uploads, take } from "./upload";

/** What was written and not sent, by the run that it follows up. */
const drafts = new Map<string, string>();

interface Props {
  /** The run that the question follows up; none: a new conversation. */
  before?: RunDetail;
  label: string;
  first?: boolean;
}

export function Ask({ before, label, first = false }: Props) {
  const box = useRef<HTMLTextAreaElement>(null);
  const place = before?.id ?? "";
  const text = useSignal(drafts.get(place) ?? "");
  const busy = useSignal(false);
  const more = useSignal(false);
  const over = useSignal(false);
  const wantsReport = useSignal(false);

  async function submit(question: string): Promise<void> {
    if (!question.trim() || busy.value) return;
    busy.value = true;
    try {
      const report = first && wantsReport.value;
      const card = report ? await startReport(question.trim(), options.value) : await start(requestOf(question.trim(), options.value, before));
      text.value = "";
      drafts.delete(place);
      go(report ? toReport(card.id) : toRun(card.id));
    } catch (error) {
      complain(error);
    } finally {
      busy.value = false;
    }
  }

  const changed = JSON.stringify({ ...options.value, scope: "" }) !== JSON.stringify(PLAIN);
  return (
    <form
      class={first ? "ask first" : "ask"}
      onSubmit={(event) => {
        event.preventDefault();
        void submit(text.value);
      }}
    >
      <div
        class={over.value ? "box over" : "box"}
        onDragOver={(event) => {
          if (!facts.value?.libraries || !event.dataTransfer) return;
          event.preventDefault();
          over.value = true;
        }}
        onDragLeave={() => (over.value = false)}
        onDrop={(event) => {
          over.value = false;
          if (!facts.value?.libraries || !event.dataTransfer) return;
          event.preventDefault();
          void take(event.dataTransfer);
        }}
      >
        <textarea
          ref={box}
          id="question"
          rows={first ? 2 : 1}
          maxLength={20000}
          aria-label={label}
          placeholder={label}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            drafts.set(place, text.value);
            fit(event.currentTarget);
          }}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return; // 229: Safari ends a composition before its Enter
            event.preventDefault();
            void submit(text.value);
          }}
        />
        <div class="box-row">
          <ModelChoice />
          {facts.value?.libraries && <Scope />}
          {facts.value?.libraries && <Attach />}
          {first && (
            <label class="pill report-choice">
              <input type="checkbox" checked={wantsReport.value} onChange={(event) => (wantsReport.value = event.currentTarget.checked)} />
              <span>Report</span>
            </label>
          )}
          <button type="button" class="quiet" aria-expanded={more.value} onClick={() => (more.value = !more.value)}>
            Options{changed && <span class="dot" title="changed" />}
          </button>
          <button type="submit" class="go" disabled={!text.value.trim() || busy.value} aria-label="Ask">
            <Icon name="arrow" />
          </button>
        </div>
        {more.value && <Options follows={before !== undefined} />}
        <Uploads />
      </div>
      {first && <Examples pick={(question) => void submit(question)} />}
    </form>
  );
}

function fit(area: HTMLTextAreaElement): void {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
}

function Examples({ pick }: { pick: (question: string) => void }) {
  const questions = facts.value?.examples ?? [];
  if (!questions.length) return null;
  return (
    <div class="examples">
      <h2>Try one</h2>
      <ul>
        {questions.map((question) => (
          <li key={question}>
            <button type="button" onClick={() => pick(question)}>
              {question}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function modelName(model: string): string {
  const own = facts.value?.protocol ?? "";
  return model === "cairn" ? `${own} (default)` : model === "cairn-chat" ? "no search" : model.replace("cairn/", "");
}

function ModelChoice() {
  return (
    <label class="choice">
      <span class="hidden">Protocol</span>
      <select value={options.value.model} onChange={(event) => set({ model: event.currentTarget.value })}>
        {(facts.value?.models ?? [options.value.model]).map((model) => (
          <option key={model} value={model}>
            {modelName(model)}
          </option>
        ))}
      </select>
    </label>
  );
}

function set(changes: Partial<RunOptions>): void {
  options.value = { ...options.value, ...changes };
}

const CONTEXTS = { summary: "its answer", evidence: "its claims, too", all: "what it found, too" } as const;

function Options({ follows }: { follows: boolean }) {
  const { effort, sources, domains, after, before, context } = options.value;
  const offered = facts.value?.sources ?? [];
  return (
    <div class="options">
      <fieldset>
        <legend>Effort</legend>
        {(["low", "medium", "high"] as const).map((level) => (
          <label key={level} class="pill">
            <input type="radio" name="effort" checked={effort === level} onChange={() => set({ effort: level })} />
            <span>{level}</span>
          </label>
        ))}
      </fieldset>
      <fieldset>
        <legend>Sources {sources.length ? "" : <small>all of them</small>}</legend>
        {offered.map((source) => (
          <label key={source} class="pill">
            <input
              type="checkbox"
              checked={sources.includes(source)}
              onChange={(event) => set({ sources: event.currentTarget.checked ? [...sources, source] : sources.filter((s) => s !== source) })}
            />
            <span>{source}</span>
          </label>
        ))}
      </fieldset>
      {follows && (
        <fieldset>
          <legend>Given of the run before</legend>
          {(Object.keys(CONTEXTS) as (keyof typeof CONTEXTS)[]).map((choice) => (
            <label key={choice} class="pill">
              <input type="radio" name="context" checked={context === choice} onChange={() => set({ context: choice })} />
              <span>{CONTEXTS[choice]}</span>
            </label>
          ))}
        </fieldset>
      )}
      <div class="fields">
        <label>
          Sites
          <input type="text" placeholder="nasa.gov, -example.org" value={domains} onInput={(event) => set({ domains: event.currentTarget.value })} />
        </label>
        <label>
          After
          <input type="date" value={after} onInput={(event) => set({ after: event.currentTarget.value })} />
        </label>
        <label>
          Before
          <input type="date" value={before} onInput={(event) => set({ before: event.currentTarget.value })} />
        </label>
      </div>
      <button type="button" class="quiet" onClick={() => (options.value = { ...PLAIN, model: options.value.model, scope: options.value.scope })}>
        Reset
      </button>
    </div>
  );
}
