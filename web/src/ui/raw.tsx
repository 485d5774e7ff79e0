// The exact text of the context: what the environment wrote is tinted, for that is what training masks.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Segment, Trace } from "../api/types.gen";
import type { Session } from "../app/session";
import { complain } from "../app/state";
import { AUTHORS, rungsText, segmentsUntil, tokensOf, type Author } from "../run/raw";
import { count } from "../run/labels";

const SAID: Record<Author, string> = { prompt: "prompt", policy: "policy (trained)", environment: "environment (masked)", loop: "loop (masked)" };

export function Raw({ session }: { session: Session }) {
  const rounds = session.outline.value.rounds.length;
  const running = session.running.value;
  useEffect(() => {
    if (running && session.served) session.refresh().catch(complain);
  }, [rounds, running]);
  const trace = session.detail.value?.trace;
  if (!trace) return <p class="none">Nothing was written yet.</p>;
  const segments = segmentsUntil(trace, session.steps.value, session.replay.value === null);
  const rungs = rungsText(trace.rungs);
  return (
    <>
      {rungs && <p class="none">{rungs}</p>}
      <Counts segments={segments} />
      <div class="raw" tabIndex={0} role="group" aria-label="Text of the context">
        {segments.map((segment, at) => (
          <Piece key={at} segment={segment} trace={trace} />
        ))}
      </div>
    </>
  );
}

function Counts({ segments }: { segments: readonly Segment[] }) {
  return (
    <dl class="figures authors">
      {AUTHORS.map((author) => {
        const { count: tokens, guessed } = tokensOf(segments.filter(({ by }) => by === author));
        if (!tokens) return null;
        return (
          <div key={author}>
            <dt>
              <span class={`swatch ${author}`} />
              {SAID[author]}
            </dt>
            <dd>
              {guessed && "≈ "}
              {count(tokens, "token")}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

const LONG = 3000;

function Piece({ segment, trace }: { segment: Segment; trace: Trace }) {
  const { by, text, branch } = segment;
  const whole = useSignal(text.length <= LONG);
  const fork = trace.branches[branch];
  return (
    <span class={`piece ${by}${fork ? " fork" : ""}`} title={fork ? `${by}, in the fill of ${fork.node}` : by}>
      {whole.value ? text : text.slice(0, LONG)}
      {!whole.value && (
        <button type="button" onClick={() => (whole.value = true)}>
          … {(text.length - LONG).toLocaleString("en")} more characters
        </button>
      )}
    </span>
  );
}

/** Moves every view through the stored events. */
export function Replay({ session }: { session: Session }) {
  const total = session.run.value.steps.length;
  const at = session.replay.value ?? total;
  const replaying = useSignal(false);
  useEffect(() => {
    if (!replaying.value) return undefined;
    const tick = setInterval(() => {
      const next = (session.replay.value ?? 0) + 1;
      if (next >= session.run.value.steps.length) replaying.value = false;
      move(session, next);
    }, Math.min(450, 5000 / session.run.value.steps.length));
    return () => clearInterval(tick);
  }, [replaying.value]);
  if (session.running.value || total < 2) return null;
  return (
    <div class="replay">
      <button
        type="button"
        class="quiet"
        onClick={() => {
          if (!replaying.value && at >= total) move(session, 0);
          replaying.value = !replaying.value;
        }}
      >
        {replaying.value ? "Pause" : "Replay"}
      </button>
      <input
        type="range"
        min={0}
        max={total}
        value={at}
        aria-label="Steps shown"
        aria-valuetext={`${at} of ${total} steps`}
        onInput={(event) => {
          replaying.value = false;
          move(session, Number(event.currentTarget.value));
        }}
      />
      <output>
        {at} / {total}
      </output>
    </div>
  );
}

function move(session: Session, to: number): void {
  session.replay.value = to >= session.run.value.steps.length ? null : to;
}
