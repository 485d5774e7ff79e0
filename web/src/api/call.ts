// Requests to the server that this page came from, with the key if it wants one.

import { signal } from "@preact/signals";
import type { ErrorBody } from "./types.gen";

const SLOT = "cairn.key";

/** The server wants a key, or another one than it was sent. */
export const wantsKey = signal(false);

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** What may be over in a moment: the server is away, busy or broken. */
export function isPassing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);
}

/** How often a key was given: what was refused before is sent again. */
export const keys = signal(0);
/** Milliseconds that the server's clock is ahead of this one; less than two seconds is not reported. */
export let ahead = 0;

/** Keep the key until the tab is closed. */
export function useKey(key: string): void {
  sessionStorage.setItem(SLOT, key);
  keys.value++;
  wantsKey.value = false;
}

/** A response that says yes; what the server refuses is an `ApiError` with its sentence. */
export async function ask(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const key = sessionStorage.getItem(SLOT);
  if (key) headers.set("authorization", `Bearer ${key}`);
  let response: Response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "The server cannot be reached. Check that it runs, then try again.");
  }
  const skew = Date.parse(response.headers.get("date") ?? "") - Date.now();
  ahead = Math.abs(skew) > 2000 ? skew : 0;
  if (response.ok) return response;
  if (response.status === 401) wantsKey.value = true;
  throw new ApiError(response.status, await sentence(response));
}

export async function get<T>(path: string): Promise<T> {
  return (await (await ask(path)).json()) as T;
}

export async function post<T>(path: string, body?: object): Promise<T> {
  const json = body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return (await (await ask(path, { method: "POST", ...json })).json()) as T;
}

/** Send one file as a form; `report` gets how many bytes are on their way. */
export function sendFile<T>(path: string, file: File, name: string, report: (sent: number) => void): Promise<T> {
  const form = new FormData();
  form.append("purpose", "user_data");
  form.append("file", file, name);
  const request = new XMLHttpRequest(); // fetch does not say how far a body is
  return new Promise<T>((resolve, reject) => {
    request.open("POST", path);
    const key = sessionStorage.getItem(SLOT);
    if (key) request.setRequestHeader("authorization", `Bearer ${key}`);
    request.upload.onprogress = (event) => report(event.loaded);
    request.onerror = () => reject(new ApiError(0, "The server cannot be reached. Check that it runs, then try again."));
    request.onload = () => {
      if (request.status === 401) wantsKey.value = true;
      try {
        const said = JSON.parse(request.responseText) as T & Partial<ErrorBody>;
        if (request.status < 300) resolve(said);
        else reject(new ApiError(request.status, said.error?.message ?? ""));
      } catch {
        reject(new ApiError(request.status, `The server answered ${request.status}.`));
      }
    };
    request.send(form);
  });
}

/** Put a text where it can be pasted from. */
export async function copyText(text: string): Promise<void> {
  const board = navigator.clipboard as Clipboard | undefined;
  if (!board) throw new Error("This browser lets pages copy only on https and on localhost.");
  await board.writeText(text);
}

async function sentence(response: Response): Promise<string> {
  try {
    return ((await response.json()) as ErrorBody).error.message;
  } catch {
    return `The server answered ${response.status}.`;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
