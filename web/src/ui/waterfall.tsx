// When what ran: policy time beside search time, on one scale of seconds.

import type { Session } from "../app/session";
import { barsOf, type Bar } from "../run/bars";
import { seconds } from "../run/labels";
import { Beside } from "./beside";

const KINDS: Record<Bar["kind"], string> = {
  policy: "the policy writes",
  fill: "the policy completes a query",
  search: "a source is searched",
  empty: "nothing found",
  failed: "failed",
  running: "still running",
};

export function Waterfall({ session }: { session: Session }) {
  const { rounds, seconds: ended } = session.outline.value;
  const total = Math.max(ended, session.running.value ? session.clock.value : 0, 0.001);
  const bars = barsOf(session.steps.value, rounds, total);
  const { policy, search } = sums(bars);
  return (
    <>
      <p class="meta sums">
        <span class="swatch policy" /> policy {seconds(policy)}
        <span class="swatch search" /> searches {seconds(search)} in all
        {bars.some(({ since, from }) => from - since > total / 200) && (
          <>
            <span class="swatch waits" /> waits for its parents
          </>
        )}
      </p>
      <div class="scale" aria-hidden="true">
        {ticks(total).map((tick) => (
          <span key={tick} style={{ left: `${(100 * tick) / total}%` }}>
            {seconds(tick)}
          </span>
        ))}
      </div>
      <ol class="falls" aria-label="Waterfall">
        {bars.map((bar, at) => (
          <BarRow key={`${bar.key}${bar.kind}${at}`} session={session} bar={bar} total={total} />
        ))}
      </ol>
      <Beside session={session} />
    </>
  );
}

function BarRow({ session, bar, total }: { session: Session; bar: Bar; total: number }) {
  const picked = session.selected.value === bar.key;
  const place = (from: number, to: number) => ({ left: `${(100 * from) / total}%`, width: `${(100 * (to - from)) / total}%` });
  return (
    <li>
      <button
        type="button"
        class="fall"
        aria-pressed={picked}
        data-key={bar.key}
        data-kind={bar.kind}
        data-from={bar.from}
        data-to={bar.to}
        onClick={() => (session.selected.value = picked ? "" : bar.key)}
      >
        <span class="fall-label">
          {bar.label}
          <span class="hidden">
            : {KINDS[bar.kind]}, from {seconds(bar.from)}, for
          </span>
        </span>
        <span class="fall-track">
          {bar.since < bar.from && <span class="lag" style={place(bar.since, bar.from)} />}
          <span class={`bar ${bar.kind}`} style={place(bar.from, bar.to)} />
        </span>
        <span class="fall-took">{seconds(bar.to - bar.from)}</span>
      </button>
    </li>
  );
}

function sums(bars: readonly Bar[]): { policy: number; search: number } {
  const sum = (kinds: readonly Bar["kind"][]) => bars.reduce((s, bar) => s + (kinds.includes(bar.kind) ? bar.to - bar.from : 0), 0);
  return { policy: sum(["policy", "fill"]), search: sum(["search", "empty", "failed", "running"]) };
}

/** Round numbers of seconds, two to five of them. */
function ticks(total: number): number[] {
  const rough = total / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, at) => at * step);
}
