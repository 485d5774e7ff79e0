// The request that searches again what a run searched, and the turns that stood before it.

import type { RunRequest, Trace } from "../api/types.gen";

/** A question and its answer. */
export type Turn = [question: string, answer: string];

/** The turns before a run, oldest first, as they were sent: of its own branch of a conversation alone. */
export function turnsBefore({ history, follow_up }: Pick<Trace, "history" | "follow_up">): Turn[] {
  return ((follow_up ? follow_up.history : history) ?? []) as Turn[];
}

export function messagesOf(turns: readonly Turn[], question: string): { role: "user" | "assistant"; content: string }[] {
  const before = turns.flatMap(([question, answer]) => [
    { role: "user" as const, content: question },
    { role: "assistant" as const, content: answer },
  ]);
  return [...before, { role: "user", content: question }];
}

/** The request of a run, as far as its trace holds it. */
export function again(trace: Trace): Omit<RunRequest, "model"> {
  const { question, history, filters = [], only = [], library_state = "" } = trace;
  // A follow-up names the libraries and files of the run before it, too; only what it searched has a state.
  const { libraries = [], files = [] } = library_state || !trace.follow_up ? trace : {};
  const sources = only.length || !library_state.endsWith(" and sources") ? only : ["all"];
  const said = (name: string) => filters.find((filter) => filter.name === name)?.value;
  const domains = filters.flatMap(({ name, value }) => (name === "site" ? [value] : name === "not" ? [`-${value}`] : []));
  return {
    messages: messagesOf(history as Turn[], question),
    ...(sources.length ? { sources } : {}),
    ...(libraries.length ? { libraries } : {}),
    ...(files.length ? { files } : {}),
    ...(domains.length ? { search_domain_filter: domains } : {}),
    search_after_date_filter: said("after") ?? null,
    search_before_date_filter: said("before") ?? null,
    search_recency_filter: (said("recent") as RunRequest["search_recency_filter"]) ?? null,
  };
}
