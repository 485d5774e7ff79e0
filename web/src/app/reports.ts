// Reports: how one begins, and how far it is.

import { get, post } from "../api/call";
import type { ReportCard, ReportDetail, ReportPage, ReportRequest } from "../api/types.gen";
import { optionsOf, type RunOptions } from "./state";

const POLL_MS = 1000;

export async function startReport(question: string, wanted: RunOptions): Promise<ReportCard> {
  const request: ReportRequest = { question, model: wanted.model, ...optionsOf(wanted) };
  return post<ReportCard>("/api/reports", request);
}

export async function readReports(): Promise<ReportCard[]> {
  return (await get<ReportPage>("/api/reports?limit=50")).reports;
}

/** Read a report until it has ended; `take` gets each state of it. */
export async function followReport(id: string, take: (report: ReportDetail) => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const detail = await get<ReportDetail>(`/api/reports/${id}`);
    if (signal.aborted) return;
    take(detail);
    if (detail.state !== "running") return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

export async function commandReport(id: string, what: "cancel" | "answer_now"): Promise<void> {
  await post<ReportCard>(`/api/reports/${id}/${what}`);
}
