// Your documents: libraries, what is in each, how it was read, and how to get rid of it.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/call";
import type { LibraryFileList, LibraryFileObject, LibraryObject } from "../api/types.gen";
import { addFiles, addLink, createLibrary, deleteFile, deleteLibrary, libraries, readLibraries, renameLibrary } from "../app/library";
import { plainFiles } from "../app/dropped";
import { go, home, toDocument, toLibrary } from "../app/route";
import { complain, facts, options } from "../app/state";
import { count } from "../run/labels";
import { Icon } from "./icons";
import { Uploads, take } from "./upload";

const PAGE = 100;

export default function LibraryView({ id }: { id: string }) {
  useEffect(() => void readLibraries(), [id]);
  useEffect(() => {
    document.title = "Your documents · Cairn";
    return () => void (document.title = "Cairn");
  }, []);
  const library = libraries.value.find((one) => one.id === id);
  return library ? <One key={id} library={library} /> : <All />;
}

function All() {
  const name = useSignal("");
  const busy = useSignal(false);
  async function make(): Promise<void> {
    if (busy.value) return;
    busy.value = true;
    try {
      const made = await createLibrary(name.value.trim() || "My documents");
      name.value = "";
      go(toLibrary(made.id));
    } catch (error) {
      complain(error);
    } finally {
      busy.value = false;
    }
  }
  return (
    <div class="library">
      <h1>Your documents</h1>
      <p class="lead">Files that you upload are read on the server and searched where you ask for it. Only your key can see them.</p>
      <form
        class="bar-of-buttons"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <input type="text" aria-label="Name of a new library" placeholder="New library" maxLength={200} value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        <button type="submit" class="strong" disabled={busy.value}>
          Make a library
        </button>
      </form>
      <ul class="cards">
        {libraries.value.map((library) => (
          <li key={library.id}>
            <a href={toLibrary(library.id)}>{library.name || "library"}</a>
            <span class="meta">{summary(library)}</span>
          </li>
        ))}
      </ul>
      {!libraries.value.length && <p class="none">There is no library yet.</p>}
    </div>
  );
}

function summary({ file_counts: counts, usage_bytes }: LibraryObject): string {
  const parts = [count(counts.total, "document"), size(usage_bytes)];
  if (counts.in_progress) parts.push(`${counts.in_progress.toLocaleString("en")} being read`);
  if (counts.failed) parts.push(`${counts.failed.toLocaleString("en")} could not be read`);
  return parts.join(" · ");
}

function size(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.ceil(bytes / 1000).toLocaleString("en")} kB`;
  return `${(bytes / 1_000_000).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;
}

function One({ library }: { library: LibraryObject }) {
  const over = useSignal(false);
  const link = useSignal("");
  const busy = useSignal(false);
  const ask = (scope: string) => {
    options.value = { ...options.value, scope };
    go(home);
  };
  async function fetchLink(): Promise<void> {
    if (busy.value) return;
    busy.value = true;
    if (await addLink(link.value.trim(), library.id)) link.value = "";
    busy.value = false;
  }
  return (
    <div class="library">
      <p>
        <a href={toLibrary()}>Your documents</a>
      </p>
      <Name library={library} />
      <p class="meta">{summary(library)}</p>
      <Indexing library={library} />
      <div class="bar-of-buttons">
        <button type="button" class="strong" onClick={() => ask(library.id)}>
          Ask here
        </button>
        <Delete library={library} />
      </div>
      <div
        class={over.value ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          over.value = true;
        }}
        onDragLeave={() => (over.value = false)}
        onDrop={(event) => {
          event.preventDefault();
          over.value = false;
          if (event.dataTransfer) void take(event.dataTransfer, library.id);
        }}
      >
        <p>
          Drop files, folders or a link here, or choose <Choose to={library.id} /> or <Choose to={library.id} folder />
        </p>
        <p class="meta">{facts.value?.suffixes.join(" ")}</p>
        <form
          class="bar-of-buttons"
          onSubmit={(event) => {
            event.preventDefault();
            void fetchLink();
          }}
        >
          <input type="url" required aria-label="Address of a page" placeholder="https://…" value={link.value} onInput={(event) => (link.value = event.currentTarget.value)} />
          <button type="submit" disabled={busy.value}>Add the page</button>
        </form>
      </div>
      <Uploads />
      <Files library={library} ask={ask} />
    </div>
  );
}

function Name({ library }: { library: LibraryObject }) {
  const name = useSignal(library.name);
  async function keep(): Promise<void> {
    if (name.value.trim() === library.name) return;
    await renameLibrary(library.id, name.value.trim()).catch(complain);
  }
  return (
    <h1>
      <input class="title" type="text" aria-label="Name of the library" maxLength={200} value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} onBlur={() => void keep()} onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()} />
    </h1>
  );
}

function Indexing({ library }: { library: LibraryObject }) {
  const { file_counts, indexing, trouble } = library;
  if (trouble) return <p class="bad">The documents cannot be read now, and will be tried again: {trouble}</p>;
  if (!file_counts.in_progress) return null;
  return (
    <div class="uploads" role="status">
      <p>
        <span class="pulse" />
        {indexing ? `${indexing.stage}, part ${indexing.part} of ${indexing.parts}` : "waiting to be read"}
      </p>
      <progress max={Math.max(1, indexing?.total ?? 1)} {...(indexing ? { value: indexing.done } : {})} aria-label="Read" />
    </div>
  );
}

function Choose({ to, folder = false }: { to: string; folder?: boolean }) {
  return (
    <label class="as-link">
      {folder ? "a folder" : "files"}
      <input
        class="hidden"
        type="file"
        multiple
        {...(folder ? { webkitdirectory: true } : { accept: facts.value?.suffixes.join(",") ?? "" })}
        onChange={(event) => {
          void addFiles(plainFiles(event.currentTarget.files ?? []), to);
          event.currentTarget.value = "";
        }}
      />
    </label>
  );
}

function Delete({ library }: { library: LibraryObject }) {
  const sure = useSignal(false);
  async function remove(): Promise<void> {
    try {
      await deleteLibrary(library.id);
      go(toLibrary());
    } catch (error) {
      complain(error);
    }
  }
  if (!sure.value) {
    return (
      <button type="button" onClick={() => (sure.value = true)}>
        <Icon name="bin" /> Delete
      </button>
    );
  }
  return (
    <>
      <span>The files, the index, and every run and report that searched it will be gone.</span>
      <button type="button" class="danger" onClick={() => void remove()}>
        Delete it all
      </button>
      <button type="button" onClick={() => (sure.value = false)}>
        Keep it
      </button>
    </>
  );
}

/** The files of a library, read again when their number or state changes. */
function Files({ library, ask }: { library: LibraryObject; ask: (scope: string) => void }) {
  const files = useSignal<LibraryFileObject[]>([]);
  const more = useSignal(false);
  const begun = useRef(0);
  /** Read as many pages as hold `wanted` files; where another reading has begun meanwhile, that one counts. */
  async function read(wanted: number): Promise<void> {
    const reading = ++begun.current;
    const found: LibraryFileObject[] = [];
    try {
      for (let further = true; further; further = more.value && found.length < wanted) {
        const after = found.at(-1)?.id;
        const query = new URLSearchParams({ limit: `${PAGE}`, ...(after ? { after } : {}) });
        const list = await get<LibraryFileList>(`/v1/vector_stores/${library.id}/files?${query}`);
        if (reading !== begun.current) return;
        found.push(...list.data);
        more.value = list.has_more;
      }
      files.value = found;
    } catch (error) {
      complain(error);
    }
  }
  useEffect(() => {
    files.value = [];
  }, [library.id]);
  useEffect(() => void read(files.peek().length), [library.id, JSON.stringify(library.file_counts)]);
  return (
    <>
      <ul class="cards">
        {files.value.map((file) => (
          <File key={file.id} file={file} ask={ask} />
        ))}
      </ul>
      {more.value && (
        <button type="button" class="quiet" onClick={() => void read(files.value.length + PAGE)}>
          Show more
        </button>
      )}
    </>
  );
}

function File({ file, ask }: { file: LibraryFileObject; ask: (scope: string) => void }) {
  const read = file.status === "completed";
  return (
    <li>
      {read ? <a href={toDocument(`${file.id}#1`)}>{file.filename}</a> : <span>{file.filename}</span>}
      <span class="meta">
        {size(file.usage_bytes)}
        {read && ` · ${count(file.passages, "passage")}`}
        {file.status === "in_progress" && " · being read"}
      </span>
      {file.last_error && <span class="bad">{file.last_error.message}</span>}
      {file.note && <span class="meta">{file.note}</span>}
      <span class="row-buttons">
        {read && (
          <button type="button" class="quiet" onClick={() => ask(file.id)}>
            Ask this one
          </button>
        )}
        <button type="button" class="quiet" aria-label={`Delete ${file.filename}`} onClick={() => void deleteFile(file.id).catch(complain)}>
          <Icon name="bin" />
        </button>
      </span>
    </li>
  );
}
