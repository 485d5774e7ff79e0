// One trace, step by step. Everything in it was written by a model or found on the web: it becomes text, never markup.

let traces = 0;

function traceView(trace, data, budgets) {
  const mine = `t${++traces}`;
  const gold = new Set(trace.gold);
  const passage = (place) => data.passages[place];
  const heading = (place) => passage(place).title || clipped(data.texts[passage(place).text], 60);

  const goldChip = (place) => (gold.has(place) ? el("span", { class: "chip gold" }, "gold") : null);
  const chip = (text, kind = "") => (text ? el("span", { class: `chip ${kind}` }, text) : null);

  function head(title, step, ...chips) {
    return el("div", { class: "step-head" }, el("b", {}, title), chips, el("span", { class: "at" }, seconds(step.seconds || 0)));
  }

  function cites(text) {
    return String(text).split(/(\[\d+\])/).map((piece) => (/^\[\d+\]$/.test(piece) ? cite(Number(piece.slice(1, -1))) : piece));
  }

  function cite(count) {
    const target = () => document.getElementById(`${mine}-${count}`);
    return el("button", { type: "button", class: "cite", "aria-label": `Show passage ${count}`, onclick: () => {
      const found = target();
      if (!found) return;
      for (const lit of document.querySelectorAll(".passages .lit")) lit.classList.remove("lit");
      for (let up = found.parentElement; up; up = up.parentElement) if (up.tagName === "DETAILS") up.open = true;
      found.classList.add("lit");
      found.scrollIntoView({ block: "center" });
    } }, `[${count}]`);
  }

  function full(place, count, node) {
    const p = passage(place);
    return el("li", { class: gold.has(place) ? "gold" : "", id: count ? `${mine}-${count}` : null },
      el("div", { class: "step-head" }, el("b", {}, count ? `[${count}] ${p.title}` : p.title),
        chip([node, p.source, p.date].filter(Boolean).join(" · ")), goldChip(place)),
      el("div", { class: "text" }, data.texts[p.text]),
      p.url ? el("div", { class: "quiet mono" }, p.url) : null);
  }

  function failures(step) {
    return (step.failures || []).map((f) => el("div", { class: "quiet" }, `${f.backend}: ${f.kind}, ${f.why}`, f.took ? ` (${seconds(f.took)})` : ""));
  }

  function spent(step) {
    return [step.backend, step.cached && `cached: ${step.cached}`, step.credits && `${number(step.credits)} credits`, step.usd && `$${number(step.usd, 4)}`];
  }

  const filters = (node) => (node.filters || []).map((f) => `${f.name} ${f.value}`);
  const text = (value) => el("div", { class: "text" }, cites(value || ""));

  const draw = {
    thought: (s) => [head("Thought", s), text(s.text)],
    planned: (s) => [head(`Plan, round ${s.round}`, s),
      el("ul", { class: "passages" }, s.plan.nodes.map((n) => el("li", {}, el("div", { class: "step-head" }, el("b", {}, n.id), n.query,
        chip(n.source), filters(n).map((f) => chip(f)), (n.parents || []).length ? chip(`after ${n.parents.join(", ")}`) : null)))),
      (s.plan.dropped || []).length ? el("div", { class: "quiet" }, `Left out, for an unknown source: ${s.plan.dropped.join(", ")}`) : null],
    plan_rejected: (s) => [head(`Plan rejected, round ${s.round}`, s), el("div", {}, s.why), el("pre", { class: "raw" }, s.text)],
    filled: (s) => [head(`Query ${s.node} filled`, s), text(s.query)],
    searched: (s) => [head(`Search ${s.node}`, s, chip(s.source), spent(s).filter(Boolean).map((t) => chip(t)),
        chip((s.took || 0) < 0.01 ? "under 10 ms" : seconds(s.took)),
        (s.failures || []).length ? chip(`${s.failures.length} failed first`, "bad") : null),
      el("div", {}, s.query), s.note ? el("div", { class: "quiet" }, s.note) : null, failures(s),
      s.passages.length ? el("details", {}, el("summary", { class: "quiet" }, `found ${s.passages.length}: `,
          clipped(s.passages.map(heading).join(" · "), 90), " ", s.passages.some((p) => gold.has(p)) ? el("span", { class: "chip gold" }, "gold") : null),
        el("ul", { class: "passages" }, s.passages.map((p) => full(p)))) : el("div", { class: "quiet" }, "found nothing")],
    search_failed: (s) => [head(`Search ${s.node} failed`, s, chip(s.source), chip(s.error || "upstream", "bad"), s.took ? chip(seconds(s.took)) : null),
      el("div", {}, s.query), el("div", {}, s.why), failures(s)],
    skipped: (s) => [head(`Search ${s.node} skipped`, s), el("div", { class: "quiet" }, s.why)],
    gathered: (s) => [head(trace.protocol ? `Shown to the policy, round ${s.round}` : "What it cites", s, s.dropped ? chip(`${s.dropped} found but not shown`) : null),
      el("details", { open: s.passages.length <= 8 }, el("summary", { class: "quiet" }, `${s.passages.length} passages`),
        el("ul", { class: "passages" }, s.passages.map(([p, count, node]) => full(p, count, node))))],
    merged: (s) => [head("Merge", s), text(s.text)],
    reflected: (s) => [head("Reflection", s), text(s.text)],
    evidenced: (s) => [head("Evidence", s), (s.claims || []).length
      ? el("ul", {}, s.claims.map((c) => el("li", {}, c.text, " ", c.cites.map(cite), c.cites.length ? null : chip("cites nothing", "bad"))))
      : text(s.text)],
    answered: (s) => [head(s.by === "loop" ? "Answer (the product's own)" : "Answer", s), el("div", { class: "text" }, el("b", {}, s.text))],
    stopped: (s) => [head("Stopped", s, chip(s.reason, ["answered", "forced"].includes(s.reason) ? "" : "bad"), s.budget ? chip(`budget: ${s.budget}`) : null),
      s.detail ? el("div", {}, s.detail) : null],
  };
  const kinds = { searched: "found", gathered: "found", search_failed: "bad", plan_rejected: "bad", answered: "done" };
  const step = (s) => el("li", { class: kinds[s.kind] || "" }, draw[s.kind] ? draw[s.kind](s) : [head(s.kind, s), el("pre", { class: "raw" }, JSON.stringify(s, null, 1))]);

  function used() {
    const rows = [];
    const put = (name, value) => rows.push(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
    for (const [name, value] of Object.entries(trace.usage)) {
      const limit = budgets[name];
      put(name.replaceAll("_", " "), limit ? `${number(value)} of ${number(limit)}` : number(value));
    }
    for (const [name, value] of Object.entries(trace.timings)) {
      const limit = name === "total" ? budgets.seconds : null;
      put(`${name.replaceAll("_", " ")} time`, limit ? `${seconds(value)} of ${number(limit)} s` : seconds(value));
    }
    return el("dl", { class: "figures" }, rows);
  }

  function raw() {
    const part = (p) => (typeof p === "number" ? data.texts[p] : p);
    const names = { prompt: "prompt", policy: "policy", environment: "environment", loop: "loop" };
    return el("details", {}, el("summary", {}, "Raw text of the context"),
      el("p", {}, Object.keys(names).map((by) => [el("span", { class: `tint ${by}` }, names[by]), " "])),
      el("pre", { class: "raw" }, trace.raw.map((s) => el("span", { class: s.by, title: s.branch ? `${s.by}, branch ${s.branch}` : s.by }, s.parts.map(part)))));
  }

  return el("div", {},
    trace.missing.length ? el("p", { class: "notice" }, `Gold passages that were never ${trace.protocol ? "shown" : "cited"}: ${trace.missing.join(", ")}`) : null,
    (trace.history || []).map(([q, a]) => el("p", { class: "quiet" }, `Earlier turn: ${q} — ${a}`)),
    el("ol", { class: "steps" }, trace.steps.map(step)),
    el("h3", {}, "Used, of its budgets"), used(), trace.raw ? raw() : null);
}
