// The frame around every page: the bar, the history beside it, what went wrong, and the dialogs.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { copyText, keys } from "../api/call";
import type { LocalModels } from "../api/types.gen";
import { readLibraries } from "../app/library";
import { home, route, settings } from "../app/route";
import { complain, facts, helpOpen, introduce, nextTheme, readHistory, sideOpen, trouble } from "../app/state";
import { Ask } from "./ask";
import { CompareView } from "./compare";
import { AskForKey, Help } from "./dialogs";
import { History } from "./history";
import { Cairn, Icon } from "./icons";
import { lazy, type Lazy } from "./lazy";
import { RunView } from "./run";

const Library: Lazy<{ id: string }> = lazy(() => import("./library"));
const Settings: Lazy<object> = lazy(() => import("./settings"));
const Report: Lazy<{ id: string }> = lazy(() => import("./report"));
const Document: Lazy<{ file: string; passage: number; from: number; to: number }> = lazy(() => import("./document"));

export function App() {
  useEffect(() => void introduce(), []);
  const begin = () => {
    void introduce();
    void readHistory();
    void readLibraries();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        Skip to the content
      </a>
      <Bar />
      <div class="frame">
        <History />
        {sideOpen.value && <div class="shade" onClick={() => (sideOpen.value = false)} />}
        <main id="main" tabIndex={-1}>
          <Trouble />
          <Page />
        </main>
      </div>
      <Help />
      <AskForKey then={begin} />
    </>
  );
}

function Page() {
  const here = route.value;
  const given = keys.value;
  if (here.page === "run") return <RunView key={`${here.id} ${given}`} id={here.id} />;
  if (here.page === "library") return <Library key={given} id={here.id} />;
  if (here.page === "settings") return <Settings key={given} />;
  if (here.page === "report") return <Report key={`${here.id} ${given}`} id={here.id} />;
  if (here.page === "document") return <Document key={`${here.file} ${given}`} {...here} />;
  if (here.page === "compare") return <CompareView key={`${here.ids.join()} ${given}`} ids={here.ids} />;
  return <Home />;
}

function Bar() {
  return (
    <header class="top">
      <button type="button" class="quiet round-button menu" aria-label="History" aria-expanded={sideOpen.value} aria-controls="history" onClick={() => (sideOpen.value = !sideOpen.value)}>
        <Icon name="menu" />
      </button>
      <a class="brand" href={home}>
        <Cairn />
        Cairn
      </a>
      <span class="version">{facts.value && `${facts.value.version} · ${facts.value.policy}`}</span>
      <button type="button" class="quiet round-button" aria-label="Dark or light" onClick={nextTheme}>
        <Icon name="moon" />
      </button>
      {facts.value?.settings && (
        <a class="quiet round-button" aria-label="Settings" href={settings}>
          <Icon name="gear" />
        </a>
      )}
      <button type="button" class="quiet round-button" aria-label="Help" onClick={() => (helpOpen.value = true)}>
        <Icon name="help" />
      </button>
    </header>
  );
}

function Trouble() {
  if (!trouble.value) return null;
  return (
    <div class="trouble" role="alert">
      <span>{trouble.value}</span>
      <button type="button" class="quiet round-button" aria-label="Close" onClick={() => (trouble.value = "")}>
        <Icon name="close" />
      </button>
    </div>
  );
}

function Home() {
  return (
    <div class="home">
      <h1>What do you want to know?</h1>
      <p class="lead">Cairn plans its searches, runs them side by side, and shows every stone of the way to its answer.</p>
      <Ask label="Ask a question" first />
      <Banner />
      {facts.value?.settings && (
        <p class="meta first-steps">
          <a href={settings}>Connect a model, add keys or a folder</a>, or drop documents on the question.
        </p>
      )}
      <LocalServers />
    </div>
  );
}

/** What a person should know before believing an answer. */
function Banner() {
  const notices = facts.value?.notices ?? [];
  return notices.map((notice) => (
    <p class="banner" key={notice}>
      {notice}
    </p>
  ));
}

/** Model servers of this machine that could write instead, each with the command that connects it. */
function LocalServers() {
  const found = facts.value?.local_models ?? [];
  return found.map((local) => <LocalServer key={local.base_url} local={local} />);
}

function LocalServer({ local }: { local: LocalModels }) {
  const copied = useSignal(false);
  async function copy(): Promise<void> {
    try {
      await copyText(local.command);
      copied.value = true;
      setTimeout(() => (copied.value = false), 2000);
    } catch (error) {
      complain(error);
    }
  }
  return (
    <p class="local-server" title={local.models.join(", ")}>
      {local.server} runs on this machine: <code>{local.command}</code>
      <button type="button" class="quiet" onClick={() => void copy()}>
        {copied.value ? "Copied" : "Copy"}
      </button>
    </p>
  );
}
