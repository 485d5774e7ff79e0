// The page of one run: the list of its questions.

function questions(data) {
  const rank = ["failed", "wrong", "abstained", "right"];
  const figure = (name, show) => ({ name, kind: "number minor", key: (q) => metric(q, name), cell: (q) => (metric(q, name) < 0 ? "" : show(metric(q, name))) });
  browse($("questions"), {
    rows: data.questions,
    note: data.note,
    text: (q) => [q.id, q.question, q.prediction, ...(q.answers || [])],
    filters: [
      { title: "Verdict", of: (q) => q.verdict, names: Object.keys(MARKS) },
      { title: "Type", of: (q) => q.type || "" },
    ],
    columns: [
      { name: "verdict", title: "Verdict", key: (q) => rank.indexOf(q.verdict), cell: (q) => verdict(q.verdict) },
      { name: "question", title: "Question", kind: "wide", opens: true, key: (q) => q.question, cell: (q) => q.question },
      { name: "answer", title: "Answer", key: (q) => q.prediction || "", cell: (q) => [
        el("span", { class: q.verdict === "right" ? "" : `said ${q.verdict}` }, clipped(q.prediction || "—", 120)),
        q.verdict === "right" ? null : el("div", { class: "quiet" }, `gold: ${clipped((q.answers || []).join(" · ") || "none", 120)}`)] },
      { name: "type", title: "Type", kind: "minor", key: (q) => q.type || "", cell: (q) => clipped(q.type || "", 28) },
      { title: "F1", ...figure("f1", (value) => value.toFixed(2)) },
      { title: "Searches", ...figure("searches", number) },
      { title: "Seconds", ...figure("seconds", (value) => value.toFixed(2)) },
    ],
    detail: (q) => detail(q, data),
  });
}

theme();
embedded().then(questions).catch((error) => $("questions").replaceChildren(el("p", { class: "notice" }, error.message)));
