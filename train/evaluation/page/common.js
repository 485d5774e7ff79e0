// What both pages share: elements from text alone (never from markup), the theme, the embedded data, a sortable list.

const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false && child !== ""));
  return node;
}

const number = (value, digits = 3) =>
  Number.isInteger(value) ? value.toLocaleString("en") : value.toLocaleString("en", { maximumFractionDigits: digits });
const seconds = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1)) + " s";
const clipped = (text, length) => (text.length > length ? text.slice(0, length).trimEnd() + "…" : text);

function theme() {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = $("theme");
  const name = () => {
    button.textContent = dark() ? "Light" : "Dark";
    document.querySelectorAll("iframe.trace").forEach(themed);
  };
  try {
    root.dataset.theme = localStorage.getItem("cairn-theme") || "";
  } catch {} // a file may have no storage
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("cairn-theme", root.dataset.theme);
    } catch {}
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  button.hidden = false;
  name();
}

async function embedded() {
  const [data, view] = await Promise.all([unpacked($("data")), unpacked($("view"))]);
  return { ...data, view };
}

async function unpacked(holder) {
  if (holder.dataset.form === "json") return JSON.parse(holder.textContent);
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser cannot unpack the questions (it lacks DecompressionStream); any of 2023 or later can.");
  const bytes = Uint8Array.from(atob(holder.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Rows with a search field, filters, sortable columns and details to unfold. A column is {name, title, kind, opens,
// key(row), cell(row)}, a filter {title, of(row), names}. `#q=ID` in the address opens a row.
function browse(holder, { rows, note, text, filters, columns, detail }) {
  const PAGE = 100;
  const sorted = { by: columns[0].name, down: false };
  let shown = PAGE;
  const body = el("tbody");
  const status = el("span", { class: "quiet", role: "status" });
  const search = el("input", { type: "search", placeholder: "Search questions and answers", "aria-label": "Search questions and answers" });
  const selects = filters.map((filter) => {
    const names = filter.names || [...new Set(rows.map(filter.of).filter(Boolean))].sort();
    const select = el("select", {}, el("option", { value: "" }, "all"), names.map((name) => el("option", { value: name }, name)));
    return { ...filter, select, drawn: names.length > 1 ? el("label", {}, filter.title, select) : null };
  });
  const heads = columns.map((column) =>
    el("th", { scope: "col", class: column.kind, "data-name": column.name },
      el("button", { type: "button", onclick: () => sort(column.name, sorted.by === column.name && !sorted.down) }, column.title)));
  const choose = el("select", {}, columns.map((column) => el("option", { value: column.name }, column.title)));
  const more = el("button", { type: "button", class: "more", onclick: () => { shown += PAGE; draw(); } });

  function sort(name, down) {
    Object.assign(sorted, { by: name, down });
    draw();
  }

  function kept() {
    const wanted = search.value.trim().toLowerCase();
    const passes = (row) => selects.every(({ select, of }) => !select.value || of(row) === select.value) &&
      (!wanted || text(row).filter(Boolean).join("\n").toLowerCase().includes(wanted));
    const key = columns.find((column) => column.name === sorted.by).key;
    const order = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
    return rows.filter(passes).sort((a, b) => order(key(a), key(b)) * (sorted.down ? -1 : 1));
  }

  function toggle(row, line, ask) {
    const open = ask.getAttribute("aria-expanded") === "true";
    ask.setAttribute("aria-expanded", String(!open));
    line.classList.toggle("open", !open);
    if (open) line.nextElementSibling.remove();
    else line.after(el("tr", { class: "unfolded" }, el("td", { class: "detail", colspan: columns.length }, detail(row))));
  }

  function line(row) {
    const ask = el("button", { type: "button", class: "ask", "aria-expanded": "false" });
    const cells = columns.map((column) => {
      const content = column.cell(row);
      if (column.opens) ask.append(...[content].flat());
      return el("td", { class: column.kind }, column.opens ? ask : content);
    });
    const drawn = el("tr", { class: "row", "data-id": row.id }, cells);
    drawn.addEventListener("click", () => {
      if (!String(getSelection())) toggle(row, drawn, ask);
    });
    drawn.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && ask.getAttribute("aria-expanded") === "true") toggle(row, drawn, ask);
    });
    return drawn;
  }

  function draw() {
    const found = kept();
    for (const head of heads) {
      const here = head.dataset.name === sorted.by;
      head.setAttribute("aria-sort", here ? (sorted.down ? "descending" : "ascending") : "none");
    }
    choose.value = sorted.by;
    body.replaceChildren(...found.slice(0, shown).map(line));
    more.hidden = found.length <= shown;
    more.textContent = `Show more (${number(found.length - shown)} left)`;
    status.textContent = found.length === rows.length ? `${number(rows.length)} questions` : `${number(found.length)} of ${number(rows.length)} questions`;
  }

  function addressed() {
    if (!location.hash.startsWith("#q=")) return;
    const id = decodeURIComponent(location.hash.slice(3));
    const place = kept().findIndex((row) => row.id === id);
    if (place < 0) return;
    if (place >= shown) { shown = place + 1; draw(); }
    const found = body.querySelector(`tr.row[data-id="${CSS.escape(id)}"]`);
    const ask = found.querySelector(".ask");
    if (ask.getAttribute("aria-expanded") !== "true") ask.click();
    found.scrollIntoView({ block: "start" });
  }

  const again = () => { shown = PAGE; draw(); };
  search.addEventListener("input", again);
  for (const { select } of selects) select.addEventListener("change", again);
  choose.addEventListener("change", () => sort(choose.value, false));
  addEventListener("hashchange", addressed);
  holder.replaceChildren(
    el("div", { class: "tools" }, search, selects.map(({ drawn }) => drawn), el("label", {}, "Sort", choose), status),
    note ? el("p", { class: "notice" }, note) : "",
    el("table", { class: "list" }, el("thead", {}, el("tr", {}, heads)), body), el("p", {}, more));
  draw();
  addressed();
}
