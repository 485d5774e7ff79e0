// The page of one run: the list of questions and what is behind each.

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

function questions(data) {
  const chosen = { verdict: "", type: "", text: "" };
  const status = el("span", { class: "quiet", role: "status" });
  const keep = (q) => (!chosen.verdict || q.verdict === chosen.verdict) && (!chosen.type || q.type === chosen.type) &&
    (!chosen.text || [q.question, q.prediction || "", q.id, ...(q.answers || [])].join("\n").toLowerCase().includes(chosen.text));
  const columns = [
    { name: "verdict", title: "Verdict", key: (q) => ["failed", "wrong", "abstained", "right"].indexOf(q.verdict), cell: (q) => verdict(q.verdict) },
    { name: "question", title: "Question", kind: "wide", opens: true, key: (q) => q.question, cell: (q) => q.question },
    { name: "answer", title: "Answer", key: (q) => q.prediction || "", cell: (q) => [
      el("span", { class: q.verdict === "right" ? "" : `said ${q.verdict}` }, clipped(q.prediction || "—", 120)),
      q.verdict === "right" ? null : el("div", { class: "quiet" }, `gold: ${clipped((q.answers || []).join(" · ") || "none", 120)}`)] },
    { name: "type", title: "Type", kind: "minor", key: (q) => q.type || "", cell: (q) => q.type || "" },
    { name: "f1", title: "F1", kind: "number minor", key: (q) => metric(q, "f1"), cell: (q) => (q.metrics.f1 === undefined ? "" : q.metrics.f1.toFixed(2)) },
    { name: "searches", title: "Searches", kind: "number minor", key: (q) => metric(q, "searches"), cell: (q) => (q.metrics.searches === undefined ? "" : number(q.metrics.searches)) },
    { name: "seconds", title: "Seconds", kind: "number minor", key: (q) => metric(q, "seconds"), cell: (q) => (q.metrics.seconds === undefined ? "" : q.metrics.seconds.toFixed(2)) },
  ];
  const shown = list({ rows: data.questions, columns, keep, detail: (q) => detail(q, data),
    state: { counted: (some, all) => (status.textContent = some === all ? `${number(all)} questions` : `${number(some)} of ${number(all)} questions`) } });
  const select = (name, title, names) => {
    const drawn = el("select", { id: `choose-${name}` }, el("option", { value: "" }, "all"), names.map((n) => el("option", { value: n }, n)));
    drawn.addEventListener("change", () => { chosen[name] = drawn.value; shown.reset(); });
    return el("label", {}, title, drawn);
  };
  const search = el("input", { type: "search", id: "search", placeholder: "Search questions and answers", "aria-label": "Search questions and answers" });
  search.addEventListener("input", () => { chosen.text = search.value.trim().toLowerCase(); shown.reset(); });
  const types = [...new Set(data.questions.map((q) => q.type).filter(Boolean))].sort();
  $("questions").replaceChildren(
    el("div", { class: "tools" }, search, select("verdict", "Verdict", Object.keys(MARKS)), types.length > 1 ? select("type", "Type", types) : null,
      el("label", {}, "Sort", shown.choose), status),
    data.note ? el("p", { class: "notice" }, data.note) : "", shown.table, el("p", {}, shown.more));
  shown.draw();
  const wanted = () => {
    const id = decodeURIComponent(location.hash.replace(/^#q=/, ""));
    if (location.hash.startsWith("#q=") && !shown.open(id)) { shown.all(); shown.open(id); }
  };
  addEventListener("hashchange", wanted);
  wanted();
}

theme();
embedded().then(questions).catch((error) => $("questions").replaceChildren(el("p", { class: "notice" }, error.message)));
