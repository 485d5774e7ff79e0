// Reports: how one begins, and how far it is.

import { get, isPassing, post } from "../api/call";
import type { ReportCard, ReportDetail, ReportPage, ReportRequest } from "../api/types.gen";
import { optionsOf, type RunOptions } from "./state";

const POLL_MS = 1000;
const AGAIN_MS = 3000;

export async function startReport(question: string, wanted: RunOptions): Promise<ReportCard> {
  const request: ReportRequest = { question, model: wanted.model, reasoning_effort: wanted.effort, ...optionsOf(wanted) };
  return post<ReportCard>("/api/reports", request);
}

/** The latest reports, or those before a place: the `next` of another page. */
export async function readReports(before = ""): Promise<ReportPage> {
  const query = new URLSearchParams({ limit: "50", ...(before ? { before } : {}) });
  return get<ReportPage>(`/api/reports?${query}`);
}

/** Read a report until it has ended; `take` gets each state of it. */
export async function followReport(id: string, take: (report: ReportDetail) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const detail = await get<ReportDetail>(`/api/reports/${id}`).catch(waitable);
    if (signal.aborted) return;
    if (!detail) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      continue;
    }
    take(detail);
    if (detail.state !== "running") return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Nothing, where it is worth to ask again. */
function waitable(error: unknown): undefined {
  if (!isPassing(error)) throw error;
}

export async function commandReport(id: string, what: "cancel" | "answer_now"): Promise<void> {
  await post<ReportCard>(`/api/reports/${id}/${what}`);
}
