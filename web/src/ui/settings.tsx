// Keys, sources and the model of a server on this machine, with what a check says beside each of them.

import { useSignal, type Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../api/call";
import type { CheckedSettings, SettingField, SettingsPage } from "../api/types.gen";
import { toLibrary } from "../app/route";
import { complain, introduce } from "../app/state";

type Values = Record<string, string | boolean | null>;
type Check = CheckedSettings["checks"][number];

const MARKS: Record<Check["state"], string> = { ok: "✓", warn: "!", bad: "✗", skip: "·" };
const WAIT_MS = 500;
const LONGEST_WAIT_MS = 120_000;

export default function SettingsView() {
  const page = useSignal<SettingsPage | null>(null);
  const changed = useSignal<Values>({});
  const checks = useSignal<Check[] | null>(null);
  const busy = useSignal<"" | "check" | "save" | "restart">("");
  useEffect(() => {
    get<SettingsPage>("/api/settings")
      .then((found) => (page.value = found))
      .catch(complain);
  }, []);
  async function act(what: "check" | "save" | "restart", work: () => Promise<void>): Promise<void> {
    busy.value = what;
    await work().catch(complain);
    busy.value = "";
  }
  const check = async () => void (checks.value = (await post<CheckedSettings>("/api/settings/check", { values: changed.value })).checks);
  const save = async () => {
    const sent = changed.value;
    page.value = await post<SettingsPage>("/api/settings", { values: sent });
    changed.value = Object.fromEntries(Object.entries(changed.value).filter(([name, value]) => value !== sent[name]));
  };
  const found = page.value;
  if (!found) return <p class="none page-note">Loading…</p>;
  const groups = [...new Set(found.fields.map(({ group }) => group))];
  const loose = (checks.value ?? []).filter(({ fields }) => !fields.length);
  return (
    <form
      class="library settings"
      onSubmit={(event) => {
        event.preventDefault();
        void act("save", save);
      }}
    >
      <h1>Settings</h1>
      <p class="lead">Of this server, which only this machine reaches. They are kept in {found.file}, and hold after a restart.</p>
      {groups.map((group) => (
        <fieldset key={group}>
          <legend>{group}</legend>
          {found.fields
            .filter((field) => field.group === group)
            .map((field) => (
              <Field key={field.name} field={field} changed={changed} checks={(checks.value ?? []).filter(({ fields }) => fields.includes(field.name))} />
            ))}
        </fieldset>
      ))}
      <p class="meta">
        Documents that you upload are in <a href={toLibrary()}>your libraries</a>.
      </p>
      {loose.length > 0 && (
        <ul>
          {loose.map((one) => (
            <Said key={one.name} check={one} named />
          ))}
        </ul>
      )}
      <div class="bar-of-buttons">
        <button type="button" disabled={busy.value !== ""} onClick={() => void act("check", check)}>
          {busy.value === "check" ? "Checking…" : "Check"}
        </button>
        <button type="submit" class="strong" disabled={busy.value !== "" || !Object.keys(changed.value).length}>
          Save
        </button>
        {found.pending && found.can_restart && (
          <button type="button" disabled={busy.value !== ""} onClick={() => void act("restart", restart)}>
            {busy.value === "restart" ? "Restarting…" : "Restart now"}
          </button>
        )}
        {found.pending && !found.can_restart && <span>Saved; restart the server to use it.</span>}
      </div>
    </form>
  );
}

/** End the server, wait until it answers again, and begin with what it says then. */
async function restart(): Promise<void> {
  const until = Date.now() + LONGEST_WAIT_MS;
  await post("/api/settings/restart").catch((error: unknown) => {
    if (!(error instanceof SyntaxError)) throw error; // it answers with nothing
  });
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    const said = await fetch("/readyz").then((response) => response.ok, () => false);
    const fresh = said && !(await get<SettingsPage>("/api/settings").catch(() => ({ pending: true }))).pending;
    if (fresh) break;
    if (Date.now() > until) throw new Error("The server did not come back; look at the terminal that it runs in.");
  }
  await introduce();
  location.hash = "#/";
}

interface FieldProps {
  field: SettingField;
  changed: Signal<Values>;
  checks: Check[];
}

function Field({ field, changed, checks }: FieldProps) {
  const { name, label, kind, fixed, is_set, hint } = field;
  const value = name in changed.value ? changed.value[name] : field.value;
  const set = (next: string | boolean | null) => (changed.value = { ...changed.value, [name]: next });
  const leave = () => (changed.value = Object.fromEntries(Object.entries(changed.value).filter(([other]) => other !== name)));
  const id = `setting-${name}`;
  const common = {
    autocomplete: "off",
    disabled: fixed,
    value: String(value ?? ""),
    onInput: (event: { currentTarget: HTMLInputElement }) => set(event.currentTarget.value || null),
  } as const;
  return (
    <div class="setting">
      <label for={id}>{label}</label>
      {kind === "switch" ? (
        <input id={id} type="checkbox" disabled={fixed} checked={value === true} onChange={(event) => set(event.currentTarget.checked || null)} />
      ) : kind === "choice" ? (
        <select id={id} disabled={fixed} value={String(value ?? "")} onChange={(event) => set(event.currentTarget.value || null)}>
          <option value="">default</option>
          {field.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      ) : kind === "secret" ? (
        <input
          id={id}
          type="password"
          {...common}
          onInput={(event) => (event.currentTarget.value ? set(event.currentTarget.value) : leave())}
          placeholder={is_set ? "set; write a new one to replace it" : ""}
        />
      ) : (
        <input id={id} type="text" {...common} placeholder={hint} spellcheck={false} />
      )}
      {kind === "secret" && is_set && !fixed && (
        <button type="button" class="quiet" onClick={() => (changed.value[name] === null ? leave() : set(null))}>
          {changed.value[name] === null ? "Will be removed; keep it" : "Remove"}
        </button>
      )}
      {fixed && <span class="meta">said by a flag, the environment or cairn.toml</span>}
      <ul>
        {checks.map((one) => (
          <Said key={one.name} check={one} />
        ))}
      </ul>
    </div>
  );
}

function Said({ check: { name, state, says, fix }, named = false }: { check: Check; named?: boolean }) {
  return (
    <li class={`said ${state}`}>
      <span aria-hidden="true">{MARKS[state]}</span> {named && <b>{name}: </b>}
      {says}
      {fix && <small> → {fix}</small>}
    </li>
  );
}
