// What the whole page shares: what the server offers, the runs there were, and how the page looks.

import { effect, signal, type Signal } from "@preact/signals";
import { ApiError, get, messageOf, post } from "../api/call";
import type { PageFacts, RunCard, RunDetail, RunPage, RunRequest } from "../api/types.gen";
import { messagesOf, turnsBefore, type Turn } from "../run/again";
import { store, stored } from "./storage";

export const facts: Signal<PageFacts | null> = signal(null);
/** A sentence about what went wrong, shown until it is closed. */
export const trouble = signal("");
export const helpOpen = signal(false);
export const sideOpen = signal(false);

export type Theme = "auto" | "light" | "dark";
export const theme = signal<Theme>((stored("localStorage", "cairn.theme") as Theme | null) ?? "auto");
effect(() => {
  store("localStorage", "cairn.theme", theme.value);
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

export function nextTheme(): void {
  const dark = theme.value === "auto" ? !matchMedia("(prefers-color-scheme: dark)").matches : theme.value === "light";
  theme.value = dark ? "dark" : "light";
}

export async function introduce(): Promise<void> {
  try {
    const offered = await get<PageFacts>("/api/ui");
    facts.value = offered;
    const sources = options.value.sources.filter((name) => offered.sources.includes(name));
    if (sources.length < options.value.sources.length) options.value = { ...options.value, sources };
    if (!offered.models.includes(options.value.model)) options.value = { ...options.value, model: PLAIN.model };
  } catch (error) {
    complain(error);
  }
}

export function complain(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return; // a dialog asks for the key
  trouble.value = messageOf(error);
}

// ---- history

export const history: Signal<RunCard[]> = signal([]);
export const sought = signal("");
export const more: Signal<string | null> = signal(null);

/** Read the latest runs, or with `further` those before them. */
export async function readHistory(further = false): Promise<void> {
  const words = sought.value;
  const query = new URLSearchParams({ limit: "30" });
  if (words) query.set("search", words);
  if (further && more.value) query.set("before", more.value);
  try {
    const page = await get<RunPage>(`/api/runs?${query}`);
    if (words !== sought.value) return;
    const known = new Set(page.runs.map(({ id }) => id));
    history.value = further ? [...history.value.filter(({ id }) => !known.has(id)), ...page.runs] : page.runs;
    more.value = page.next;
  } catch (error) {
    complain(error);
  }
}

/** See how the runs are that were running when they were read; a server that is away is requested again. */
export async function refreshHistory(): Promise<void> {
  const running = history.peek().filter(({ state }) => state === "running");
  const cards = await Promise.allSettled(running.map(({ id }) => get<RunCard>(`/api/runs/${id}`)));
  cards.forEach((card, at) => {
    if (card.status === "fulfilled") {
      if (card.value.state !== "running") noteCard(card.value);
    } else if (card.reason instanceof ApiError && card.reason.status === 404) {
      history.value = history.peek().filter(({ id }) => id !== running[at]?.id); // deleted meanwhile, with its library
    }
  });
}

/** A card that is known better now. */
export function noteCard(card: RunCard): void {
  const known = history.peek();
  if (!known.some(({ id }) => id === card.id)) {
    if (!sought.peek()) history.value = [card, ...known].toSorted((a, b) => b.created.localeCompare(a.created));
  } else history.value = known.map((other) => (other.id === card.id ? card : other));
}

// ---- questions

export interface RunOptions {
  model: string;
  effort: "low" | "medium" | "high";
  sources: string[];
  /** What is searched: "" the server's sources, `all` those and every library, a library's id, or a file's. */
  scope: string;
  domains: string;
  after: string;
  before: string;
  /** What a follow-up gives the policy of the run before it. */
  context: NonNullable<RunRequest["context"]>;
}

const STORED_AS = "cairn.options";
export const PLAIN: RunOptions = { model: "cairn", effort: "medium", sources: [], scope: "", domains: "", after: "", before: "", context: "summary" };
export const options = signal<RunOptions>({ ...PLAIN, ...(JSON.parse(stored("sessionStorage", STORED_AS) ?? "{}") as Partial<RunOptions>) });
effect(() => store("sessionStorage", STORED_AS, JSON.stringify(options.value)));

/** @param before the run that the question follows up. */
export function requestOf(question: string, wanted: RunOptions, before?: RunDetail): RunRequest {
  const turns: Turn[] = before ? [...turnsBefore(before.trace), [before.question, before.answer ?? ""]] : [];
  return {
    messages: messagesOf(turns, question),
    model: wanted.model,
    reasoning_effort: wanted.effort,
    conversation: before?.conversation || freshId(),
    ...(before ? { follows: before.id, context: wanted.context } : {}),
    ...optionsOf(wanted),
  };
}

type SearchOptions = Pick<RunRequest, "sources" | "libraries" | "files" | "search_domain_filter" | "search_after_date_filter" | "search_before_date_filter">;

/** What is searched, of a question as of a report. */
export function optionsOf(wanted: RunOptions): SearchOptions {
  const domains = wanted.domains.split(/[\s,]+/).filter(Boolean);
  return {
    ...scopeOf(wanted),
    ...(domains.length ? { search_domain_filter: domains } : {}),
    ...(wanted.after ? { search_after_date_filter: wanted.after } : {}),
    ...(wanted.before ? { search_before_date_filter: wanted.before } : {}),
  };
}

function scopeOf({ scope, sources }: RunOptions): Pick<RunRequest, "sources" | "libraries" | "files"> {
  const chosen = sources.length ? { sources } : {};
  if (scope.startsWith("file-")) return { ...chosen, files: [scope] };
  if (scope.startsWith("vs_")) return { ...chosen, libraries: [scope] };
  return scope === "all" ? { sources: ["all"], ...chosen, libraries: ["all"] } : chosen;
}

/** Start a run; its card. */
export async function start(request: RunRequest): Promise<RunCard> {
  const card = await post<RunCard>("/api/runs", request);
  noteCard(card);
  return card;
}

/** No `randomUUID`: browsers have it on https and on localhost only. */
function freshId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
