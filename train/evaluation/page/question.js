// One question: what was said, what was right, its figures, and its trace.

const MARKS = { right: "✓ right", wrong: "✗ wrong", abstained: "– abstained", failed: "! failed" };

function verdict(name) {
  return el("span", { class: `verdict ${name}` }, MARKS[name]);
}

function metric(question, name, missing = -1) {
  const value = question.metrics[name];
  return value === undefined ? missing : value;
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
    question.trace ? traceView(question.trace, data, data.budgets) : el("p", { class: "quiet" }, "No trace was kept."),
  ];
}
