// One run's events over as many connections as it takes: each goes on behind the last event that was seen.

import type { RunEvent } from "../run/reduce";
import { ApiError, ask } from "./call";
import { Reader } from "./sse";

export interface Listener {
  /** Where the next connection begins. */
  place(): string;
  /** What came; false: something is missing, and this connection is of no use. */
  take(events: RunEvent[]): boolean;
  connected(yes: boolean): void;
  over(): boolean;
  failed(error: ApiError): void;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 4000;

/** Follow a run down to its end, or until the signal says no more. */
export async function follow(id: string, listener: Listener, signal: AbortSignal): Promise<void> {
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted && !listener.over()) {
    try {
      if (await connection(id, listener, signal)) wait = FIRST_WAIT_MS;
      if (listener.over()) return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        listener.failed(error);
        return;
      }
    }
    listener.connected(false);
    await pause(wait, signal);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  }
}

/** One connection, until it ends; whether anything came. */
async function connection(id: string, listener: Listener, signal: AbortSignal): Promise<boolean> {
  const place = listener.place();
  const headers: HeadersInit = place ? { "last-event-id": place } : {};
  const response = await ask(`/api/runs/${id}/events`, { headers, signal, cache: "no-store" });
  if (!response.body) return false;
  listener.connected(true);
  const pieces = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const reader = new Reader();
  let any = false;
  try {
    for (;;) {
      const { value, done } = await pieces.read();
      if (done) return any;
      const events = reader.feed(value).filter(({ id }) => id !== "").map(({ id, event, data }) => ({ id, event, data: JSON.parse(data) }) as RunEvent);
      any ||= events.length > 0;
      if (events.length && !listener.take(events)) return any;
    }
  } finally {
    void pieces.cancel().catch(() => undefined);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      window.removeEventListener("online", done);
      resolve();
    }
    signal.addEventListener("abort", done);
    window.addEventListener("online", done);
  });
}
