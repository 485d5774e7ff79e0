// The read-only view of one trace, without a server. `agent.trace.page` embeds it, with the trace as JSON beside it.

import { render } from "preact";
import type { Trace } from "./api/types.gen";
import { Session } from "./app/session";
import { SharedRun } from "./ui/shared";
import "./style/base.css";
import "./style/frame.css";
import "./style/run.css";
import "./style/trace.css";

const data = document.getElementById("data");
const place = document.getElementById("app");
if (data && place) {
  const { trace, gold } = JSON.parse(data.textContent) as { trace: Trace; gold?: string[] };
  place.replaceChildren();
  render(<SharedRun session={Session.of(trace, gold)} />, place);
}
