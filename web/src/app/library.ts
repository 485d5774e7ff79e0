// Libraries and uploads: what there is, what is on its way, and what questions search.

import { effect, signal, type Signal } from "@preact/signals";
import { ApiError, ask, get, isPassing, post, sendFile } from "../api/call";
import type { FileObject, LibraryList, LibraryObject } from "../api/types.gen";
import { nameOf } from "./dropped";
import { complain, facts, options, readHistory } from "./state";

export const libraries: Signal<LibraryObject[]> = signal([]);

/** A file on its way to the server. */
export interface Upload {
  readonly key: number;
  readonly name: string;
  readonly size: number;
  sent: number;
  state: "waits" | "goes" | "done" | "failed";
  why: string;
}

export const uploads: Signal<readonly Upload[]> = signal([]);
const AT_ONCE = 2;
const POLL_MS = 700;
let counted = 0;
let polling = false;
let begun = 0;
let newest = 0;

/** Read the libraries, and again as long as one of them is being indexed. */
export async function readLibraries(): Promise<void> {
  if (!facts.value?.libraries) return;
  const read = ++begun;
  try {
    const { data } = await get<LibraryList>("/v1/vector_stores?limit=100");
    if (read < newest) return; // one that began later has come already
    newest = read;
    libraries.value = data;
  } catch (error) {
    complain(error);
    if (!isPassing(error)) return;
  }
  if (!polling && libraries.value.some(({ status }) => status === "in_progress")) {
    polling = true;
    setTimeout(() => {
      polling = false;
      void readLibraries();
    }, POLL_MS);
  }
}

effect(() => {
  if (facts.value) void readLibraries();
});

export async function createLibrary(name: string): Promise<LibraryObject> {
  const made = await post<LibraryObject>("/v1/vector_stores", { name });
  libraries.value = [made, ...libraries.value];
  return made;
}

export async function renameLibrary(id: string, name: string): Promise<void> {
  await post<LibraryObject>(`/v1/vector_stores/${id}`, { name });
  await readLibraries();
}

/** Remove a library with its files, and the runs and reports that quote them. */
export async function deleteLibrary(id: string): Promise<void> {
  await ask(`/v1/vector_stores/${id}?files=true&runs=true`, { method: "DELETE" });
  const { scope } = options.value;
  if (scope === id || scope.startsWith("file-")) options.value = { ...options.value, scope: "" }; // the file may be one of its
  await Promise.all([readLibraries(), readHistory()]);
}

export async function deleteFile(id: string): Promise<void> {
  await ask(`/v1/files/${id}`, { method: "DELETE" });
  if (options.value.scope === id) options.value = { ...options.value, scope: "" };
  await readLibraries();
}

/** The library that takes what is dropped on the question: the chosen one, or else the newest, or a new one. */
async function target(): Promise<string> {
  const chosen = libraries.value.find(({ id }) => id === options.value.scope) ?? libraries.value[0];
  return (chosen ?? (await createLibrary("My documents"))).id;
}

/** Upload files into a library, and ask there from now on. */
export async function addFiles(files: readonly File[], to?: string): Promise<void> {
  if (!files.length) return;
  try {
    const library = to ?? (await target());
    const waiting = files.map((file) => ({ file, upload: note(file) }));
    options.value = { ...options.value, scope: library };
    const work = async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) await send(next.file, next.upload, library);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } catch (error) {
    complain(error);
  }
}

/** Fetch a page of the web into a library. */
export async function addLink(url: string, to?: string): Promise<boolean> {
  try {
    const library = to ?? (await target());
    const file = await post<FileObject>("/v1/files/link", { url });
    await post(`/v1/vector_stores/${library}/files`, { file_id: file.id });
    options.value = { ...options.value, scope: library };
    await readLibraries();
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

function note(file: File): Upload {
  const upload: Upload = { key: ++counted, name: nameOf(file), size: file.size, sent: 0, state: "waits", why: "" };
  uploads.value = [...uploads.value, upload];
  return upload;
}

async function send(file: File, upload: Upload, library: string): Promise<void> {
  const most = facts.value?.file_bytes ?? 0;
  change(upload, { state: "goes" });
  try {
    if (file.size > most) throw new ApiError(413, `It is larger than ${Math.floor(most / 1_000_000)} MB, which is the most here.`);
    const made = await sendFile<FileObject>("/v1/files", file, upload.name, (sent) => change(upload, { sent }));
    await post(`/v1/vector_stores/${library}/files`, { file_id: made.id });
    await readLibraries(); // before it is done: until then the library looks as if there were nothing to read
    change(upload, { state: "done", sent: upload.size });
  } catch (error) {
    change(upload, { state: "failed", why: error instanceof Error ? error.message : String(error) });
  }
}

function change(upload: Upload, changes: Partial<Upload>): void {
  Object.assign(upload, changes);
  uploads.value = [...uploads.value];
}

export function forgetUploads(): void {
  uploads.value = uploads.value.filter(({ state }) => state === "waits" || state === "goes");
}
