// One run on the page: follows it, and holds what its views share. Views read it and never talk to the server.

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { ahead, ApiError, get, post, messageOf } from "../api/call";
import { follow } from "../api/follow";
import type { RunCard, RunDetail, Trace } from "../api/types.gen";
import { cardOf } from "../run/card";
import { outlineOf, type Outline } from "../run/outline";
import { NOTHING, fromTrace, reduce, type Run, type RunEvent, type Step } from "../run/reduce";

export class Session {
  readonly run: Signal<Run> = signal(NOTHING);
  readonly card: Signal<RunCard | null> = signal(null);
  /** With its trace; of a run on its way, as far as it was when it was last fetched. */
  readonly detail: Signal<RunDetail | null> = signal(null);
  readonly connected = signal(true);
  readonly error = signal("");
  /** Key of the item or node that every view points at. */
  readonly selected = signal("");
  /** How many steps are shown; null: all there are. */
  readonly replay: Signal<number | null> = signal(null);
  /** Seconds since it began, ten times a second as long as it runs. */
  readonly clock = signal(0);
  readonly commanded = signal<"" | "cancel" | "answer_now">("");

  readonly steps: ReadonlySignal<readonly Step[]> = computed(() => {
    const { steps } = this.run.value;
    return this.replay.value === null ? steps : steps.slice(0, this.replay.value);
  });
  readonly outline: ReadonlySignal<Outline> = computed(() => outlineOf(this.steps.value));
  readonly running: ReadonlySignal<boolean> = computed(() => this.run.value.end === null && this.error.value === "");
  /** The block that is being written; none in a replay. */
  readonly open = computed(() => (this.replay.value === null ? this.run.value.open : []));

  #stop = new AbortController();
  #state = NOTHING;
  #due = false;

  /**
   * @param id of the run.
   * @param served false: the page has no server.
   * @param gold passages that an evaluation looked for, each as its source, a line break and its id.
   */
  constructor(
    readonly id: string,
    readonly served = true,
    readonly gold: ReadonlySet<string> = new Set(),
  ) {}

  /** A run that has ended, of its trace alone. */
  static of(trace: Trace, gold: readonly string[] = []): Session {
    const session = new Session(trace.id, false, new Set(gold));
    const card = cardOf(trace);
    session.card.value = card;
    session.detail.value = { ...card, trace };
    session.#state = session.run.value = { ...fromTrace(trace, card), end: card };
    return session;
  }

  /** Read it, and follow it if it goes on. */
  async begin(): Promise<void> {
    try {
      const detail = await this.refresh();
      if (detail.state !== "running") {
        this.#state = this.run.value = fromTrace(detail.trace, detail);
        return;
      }
      this.#tick(Date.parse(detail.created));
      await follow(this.id, this.#listener(), this.#stop.signal);
      if (!this.#stop.signal.aborted && this.#state.end) await this.refresh();
    } catch (error) {
      if (!this.#stop.signal.aborted) this.error.value = messageOf(error);
    }
  }

  async refresh(): Promise<RunDetail> {
    const detail = await get<RunDetail>(`/api/runs/${this.id}`);
    const known = this.detail.value;
    if (known && known.state !== "running" && detail.state === "running") return known; // requested before it ended
    this.card.value = detail;
    this.detail.value = detail;
    return detail;
  }

  async command(what: "cancel" | "answer_now"): Promise<void> {
    const before = this.commanded.value;
    if (!this.running.value || before === "cancel" || before === what) return;
    this.commanded.value = what;
    try {
      await post<RunCard>(`/api/runs/${this.id}/${what}`);
    } catch (error) {
      this.commanded.value = before;
      throw error;
    }
  }

  end(): void {
    this.#stop.abort();
  }

  #tick(began: number): void {
    const tick = () => {
      const { steps, end } = this.#state;
      this.clock.value = Math.max(steps.at(-1)?.seconds ?? 0, (Date.now() + ahead - began) / 1000);
      if (end || this.#stop.signal.aborted || this.error.value) clearInterval(timer);
    };
    const timer = setInterval(tick, 100);
  }

  #listener() {
    return {
      place: () => this.#state.place,
      take: (events: RunEvent[]) => this.#take(events),
      connected: (yes: boolean) => void (this.connected.value = yes),
      over: () => this.#state.end !== null,
      failed: (error: ApiError) => void (this.error.value = error.message),
    };
  }

  /** Fold what came at once, and show it with the next picture: sixty events a second are sixty pictures at most. */
  #take(events: RunEvent[]): boolean {
    for (const event of events) this.#state = reduce(this.#state, event);
    if (!this.#due) {
      this.#due = true;
      const show = () => {
        this.#due = false;
        this.run.value = this.#state;
        if (this.#state.end) this.card.value = this.#state.end;
      };
      if (document.hidden) setTimeout(show, 100);
      else requestAnimationFrame(show);
    }
    return !this.#state.gap;
  }
}
