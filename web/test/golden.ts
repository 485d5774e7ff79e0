// The recorded runs and traces that Python's tests read, too.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunDetail, Trace } from "../src/api/types.gen";
import type { RunEvent } from "../src/run/reduce";

const GOLDEN = join(import.meta.dirname, "../../tests/golden");

export interface Recorded {
  events: RunEvent[];
  run: RunDetail;
}

function lines(path: string): unknown[] {
  return readFileSync(path, "utf8").trim().split("\n").map((line) => JSON.parse(line) as unknown);
}

/** Name → its events in their order, and the run as the server reports it in the end. */
export const RUNS: Record<string, Recorded> = Object.fromEntries(
  readdirSync(join(GOLDEN, "runs")).map((file) => {
    const all = lines(join(GOLDEN, "runs", file)) as (RunEvent | { event: "run"; data: RunDetail })[];
    const last = all.at(-1);
    if (last?.event !== "run") throw new Error(`${file} does not end with its run`);
    return [file.replace(".jsonl", ""), { events: all.slice(0, -1) as RunEvent[], run: last.data }];
  }),
);

/** Name → trace: scripts of every way in which a rollout goes. */
export const TRACES: Record<string, Trace> = Object.fromEntries(
  readdirSync(GOLDEN)
    .filter((file) => file.endsWith(".jsonl"))
    .map((file) => [file.replace(".jsonl", ""), lines(join(GOLDEN, file))[0] as Trace]),
);
