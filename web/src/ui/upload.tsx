// What a question searches, and how documents get there: the choice of a library, the button, what is dropped.

import { useRef } from "preact/hooks";
import { droppedFiles } from "../app/dropped";
import { addFiles, addLink, forgetUploads, libraries, uploads, type Upload } from "../app/library";
import { toLibrary } from "../app/route";
import { complain, facts, options } from "../app/state";
import { count } from "../run/labels";
import { Icon } from "./icons";

/** What is searched. */
export function Scope() {
  const { scope } = options.value;
  const known = libraries.value;
  const isFile = scope.startsWith("file-");
  return (
    <label class="choice">
      <span class="hidden">Search in</span>
      <select value={scope} onChange={(event) => (options.value = { ...options.value, scope: event.currentTarget.value })}>
        <option value="">{(facts.value?.sources.length ?? 0) > 1 ? "default sources" : "default source"}</option>
        {known.length > 0 && <option value="all">everything</option>}
        {known.map(({ id, name }) => (
          <option key={id} value={id}>
            {name || "library"}
          </option>
        ))}
        {isFile && <option value={scope}>one document</option>}
      </select>
    </label>
  );
}

export function Attach() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        class="hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-hidden="true"
        accept={facts.value?.suffixes.join(",")}
        onChange={(event) => {
          void addFiles([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
      <button type="button" class="quiet round-button" aria-label="Add documents" title="Add documents" onClick={() => input.current?.click()}>
        <Icon name="clip" />
      </button>
    </>
  );
}

/** Files, folders or a link that were dropped. */
export async function take(dropped: DataTransfer, to?: string): Promise<void> {
  const link = dropped.getData("text/uri-list").split("\n").find((line) => /^https?:/.test(line));
  if (dropped.types.includes("Files")) await addFiles(await droppedFiles(dropped.items, complain), to);
  else if (link) await addLink(link.trim(), to);
}

/** What is on its way, and what of it failed. */
export function Uploads() {
  const shown = uploads.value;
  if (!shown.length) return null;
  const left = shown.filter(({ state }) => state === "waits" || state === "goes");
  const failed = shown.filter(({ state }) => state === "failed");
  const sent = shown.reduce((sum, upload) => sum + upload.sent, 0);
  const total = shown.reduce((sum, upload) => sum + upload.size, 0);
  return (
    <div class="uploads" role="status">
      <p>
        {left.length ? `Uploading ${count(left.length, "file")}` : `${count(shown.length - failed.length, "file")} uploaded`}
        {!left.length && <Indexed />}
        {!left.length && (
          <button type="button" class="quiet" onClick={forgetUploads}>
            Hide
          </button>
        )}
      </p>
      {left.length > 0 && <progress max={Math.max(1, total)} value={sent} aria-label="Sent" />}
      <ul>
        {failed.map((upload) => (
          <Failed key={upload.key} upload={upload} />
        ))}
      </ul>
    </div>
  );
}

function Failed({ upload }: { upload: Upload }) {
  return (
    <li class="bad">
      {upload.name}: {upload.why}
    </li>
  );
}

/** How far the library is that is searched. */
function Indexed() {
  const library = libraries.value.find(({ id }) => id === options.value.scope);
  if (!library) return null;
  const { in_progress, failed } = library.file_counts;
  const problems = failed ? `; ${count(failed, "file")} of the library could not be read` : "";
  return (
    <>
      {in_progress ? `; ${count(in_progress, "file")} being read` : "; ready"}
      {problems} · <a href={toLibrary(library.id)}>{library.name || "library"}</a>
    </>
  );
}
