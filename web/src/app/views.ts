// Which run and which of its views the person looks at.

import { effect, signal, type Signal } from "@preact/signals";
import type { Session } from "./session";
import { store, stored } from "./storage";

export type Tab = "list" | "graph" | "waterfall" | "evidence" | "raw";

const SLOT = "cairn.tab";
export const tab = signal<Tab>((stored("sessionStorage", SLOT) as Tab | null) ?? "list");
effect(() => store("sessionStorage", SLOT, tab.value));

/** The run on the page, for keys that act on it. */
export const current: Signal<Session | null> = signal(null);
