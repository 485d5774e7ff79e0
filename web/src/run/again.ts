// The request that searches again what a run searched.

import type { RunRequest, Trace } from "../api/types.gen";

/** The request of a run, as far as its trace holds it. */
export function again(trace: Trace): Omit<RunRequest, "model"> {
  const { question, history, filters = [], only = [], library_state = "" } = trace;
  // A follow-up names the libraries and files of the run before it, too; only what it searched has a state.
  const { libraries = [], files = [] } = library_state || !trace.follow_up ? trace : {};
  const sources = only.length || !library_state.endsWith(" and sources") ? only : ["all"];
  const turns = (history as [string, string][]).flatMap(([question, answer]) => [
    { role: "user" as const, content: question },
    { role: "assistant" as const, content: answer },
  ]);
  const said = (name: string) => filters.find((filter) => filter.name === name)?.value;
  const domains = filters.flatMap(({ name, value }) => (name === "site" ? [value] : name === "not" ? [`-${value}`] : []));
  return {
    messages: [...turns, { role: "user", content: question }],
    ...(sources.length ? { sources } : {}),
    ...(libraries.length ? { libraries } : {}),
    ...(files.length ? { files } : {}),
    ...(domains.length ? { search_domain_filter: domains } : {}),
    search_after_date_filter: said("after") ?? null,
    search_before_date_filter: said("before") ?? null,
    search_recency_filter: (said("recent") as RunRequest["search_recency_filter"]) ?? null,
  };
}
