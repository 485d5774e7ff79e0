// The page of two runs: the questions on which their verdicts differ, with both traces.

function changes(data) {
  const [first, second] = data.names;
  const order = ["now right", "no longer right", "otherwise changed"];
  const said = (q) => [verdict(q.verdict), el("div", { class: q.verdict === "right" ? "" : "quiet" }, clipped(q.prediction || "—", 100))];
  browse($("questions"), {
    rows: data.changed,
    note: data.note,
    text: (c) => [c.id, c.question, c.first.prediction, c.second.prediction, ...c.answers],
    filters: [
      { title: "Change", of: (c) => c.change, names: order.filter((name) => data.changed.some((c) => c.change === name)) },
      { title: "Type", of: (c) => c.type },
    ],
    columns: [
      { name: "change", title: "Change", key: (c) => order.indexOf(c.change), cell: (c) => el("span", { class: "verdict" }, c.change) },
      { name: "question", title: "Question", kind: "wide", opens: true, key: (c) => c.question, cell: (c) => [c.question, el("span", { class: "quiet" }, ` ${clipped(c.answers.join(" · ") || "has no answer", 100)}`)] },
      { name: "first", title: first, key: (c) => c.first.prediction || "", cell: (c) => said(c.first) },
      { name: "second", title: second, key: (c) => c.second.prediction || "", cell: (c) => said(c.second) },
      { name: "type", title: "Type", kind: "minor", key: (c) => c.type, cell: (c) => clipped(c.type, 28) },
    ],
    detail: (c) => el("div", { class: "side-by-side" }, [[first, c.first, data.first], [second, c.second, data.second]].map(([name, question, pool]) =>
      el("div", {}, el("h3", {}, name), detail(question, { ...data, ...pool })))),
  });
}

theme();
embedded().then(changes).catch((error) => $("questions").replaceChildren(el("p", { class: "notice" }, error.message)));
