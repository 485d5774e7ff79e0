// One question: what was said, what was right, its figures, and its trace.

const MARKS = { right: "✓ right", wrong: "✗ wrong", abstained: "– abstained", failed: "! failed" };

function verdict(name) {
  return el("span", { class: `verdict ${name}` }, MARKS[name]);
}

function metric(question, name, missing = -1) {
  const value = question.metrics[name];
  return value === undefined ? missing : value;
}

// The page of one trace, in a frame of its own: the only part of it that is not of this package is JSON.
function traceView(question, data) {
  const { trace } = question;
  const gold = trace.gold.map((place) => `${data.passages[place].source}\n${data.passages[place].id}`);
  const json = JSON.stringify({ trace: traceOf(question, data), gold });
  const safe = json.replace(/[<>&\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const frame = el("iframe", { class: "trace", title: "Trace" });
  frame.srcdoc = data.view.join(safe);
  frame.addEventListener("load", () => {
    themed(frame);
    const { body } = frame.contentDocument;
    new ResizeObserver(() => (frame.style.height = `${body.scrollHeight}px`)).observe(body);
  });
  return el("div", {},
    trace.missing.length ? el("p", { class: "notice" }, `Gold passages that were never ${trace.protocol ? "shown" : "cited"}: ${trace.missing.join(", ")}`) : null,
    frame, el("h3", {}, "Used, of its budgets"), used(trace, data.budgets));
}

function themed(frame) {
  if (frame.contentDocument) frame.contentDocument.documentElement.dataset.theme = document.documentElement.dataset.theme || "auto";
}

// The trace as it was before it was packed, but for token ids and places in the context.
function traceOf(question, data) {
  const { trace } = question;
  const text = (part) => (typeof part === "number" ? data.texts[part] : part);
  const passage = (place, number = 0, node = "") => ({ url: "", date: "", ...data.passages[place], text: text(data.passages[place].text), number, node });
  const unpack = {
    searched: (step) => step.passages.map((place) => passage(place)),
    gathered: (step) => step.passages.map((shown) => passage(...shown)),
  };
  const steps = trace.steps.map((step) => ({ ...step, segments: [], ...(unpack[step.kind] ? { passages: unpack[step.kind](step) } : {}) }));
  const segments = (trace.raw || []).map(({ by, branch = "main", parts }) => ({ by, branch, text: parts.map(text).join("") }));
  return { id: question.id, conversation: "", question: question.question, history: trace.history || [], protocol: trace.protocol, policy: trace.policy,
    steps, segments, branches: {}, passages: [], usage: trace.usage, timings: trace.timings };
}

function used(trace, budgets) {
  const rows = [];
  const put = (name, value) => rows.push(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  for (const [name, value] of Object.entries(trace.usage)) {
    const limit = budgets[name];
    if (value || limit) put(name.replaceAll("_", " "), limit ? `${number(value)} of ${number(limit)}` : number(value));
  }
  for (const [name, value] of Object.entries(trace.timings)) {
    const limit = name === "total" ? budgets.seconds : null;
    if (value) put(`${name.replaceAll("_", " ")} time`, limit ? `${seconds(value)} of ${number(limit)} s` : seconds(value));
  }
  return el("dl", { class: "figures" }, rows);
}

function detail(question, data) {
  const figure = (name) => [el("dt", { title: (data.metrics[name] || {}).definition || "" }, (data.metrics[name] || { label: name }).label), el("dd", {}, number(question.metrics[name]))];
  return [
    el("div", { class: "pair" },
      el("div", {}, el("b", {}, "Answer"), question.prediction || el("span", { class: "quiet" }, "none")),
      el("div", {}, el("b", {}, "Gold"), (question.answers || []).join(" · ") || el("span", { class: "quiet" }, "has no answer")),
      el("div", {}, el("b", {}, "Verdict"), verdict(question.verdict), question.stopped ? ` · ${question.stopped}` : "", question.budget ? ` (${question.budget})` : ""),
      el("div", {}, el("b", {}, "Question"), el("span", { class: "mono" }, question.id), question.hops ? ` · ${question.hops} ${question.hops === 1 ? "hop" : "hops"}` : "")),
    question.failure || question.detail ? el("p", { class: "notice" }, [question.failure && (data.failures[question.failure] || question.failure), question.detail].filter(Boolean).join(": ")) : null,
    question.said ? el("p", { class: "text" }, question.said) : null,
    (question.citations || []).length ? el("p", {}, "Cites: ", el("span", { class: "mono" }, question.citations.join(", "))) : null,
    el("details", {}, el("summary", {}, "Figures of this question"),
      el("dl", { class: "figures" }, Object.keys(question.metrics).map((name) => el("div", {}, figure(name))))),
    question.trace ? traceView(question, data) : el("p", { class: "quiet" }, "No trace was kept."),
  ];
}
