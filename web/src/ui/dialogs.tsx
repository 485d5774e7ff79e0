// The help with its keys, and the question for the server's key.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKey, wantsKey } from "../api/call";
import { KEYS } from "../app/keys";
import { helpOpen } from "../app/state";
import { Icon } from "./icons";

function Dialog({ label, close, children }: { label: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={label} onClose={close} onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}>
      <div class="dialog">
        <header>
          <h2>{label}</h2>
          <button type="button" class="quiet round-button" aria-label="Close" onClick={() => dialog.current?.close()}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

export function Help() {
  if (!helpOpen.value) return null;
  return (
    <Dialog label="Keys" close={() => (helpOpen.value = false)}>
      <dl class="keys">
        {KEYS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

export function AskForKey({ then }: { then: () => void }) {
  const box = useRef<HTMLInputElement>(null);
  if (!wantsKey.value) return null;
  return (
    <Dialog label="This server wants a key" close={() => (wantsKey.value = false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          useKey(box.current?.value.trim() ?? "");
          then();
        }}
      >
        <p>Its operator has it (CAIRN_SERVER_KEY, or cairn key add). It is kept until this tab is closed.</p>
        <div class="bar-of-buttons">
          <input ref={box} type="password" aria-label="Key" autocomplete="off" required />
          <button type="submit" class="strong">
            Use it
          </button>
        </div>
      </form>
    </Dialog>
  );
}
