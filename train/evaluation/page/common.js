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
  const name = () => (button.textContent = dark() ? "Light" : "Dark");
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
  const holder = $("data");
  if (holder.dataset.form === "json") return JSON.parse(holder.textContent);
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser cannot unpack the questions (it lacks DecompressionStream); any of 2023 or later can.");
  const bytes = Uint8Array.from(atob(holder.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// A list in pages: columns are {name, title, cell(row), key(row), kind}; `detail(row)` is drawn when a row is opened.
function list({ rows, columns, keep, detail, state }) {
  const PAGE = 100;
  const sorted = { by: state.sort || columns[0].name, down: false };
  let shown = PAGE;
  const body = el("tbody");
  const heads = columns.map((column) =>
    el("th", { scope: "col", class: column.kind, "data-name": column.name },
      el("button", { type: "button", onclick: () => sort(column.name) }, column.title)));
  const table = el("table", { class: "list" }, el("thead", {}, el("tr", {}, heads)), body);
  const more = el("button", { type: "button", class: "more", onclick: () => { shown += PAGE; draw(); } });
  const choose = el("select", { "aria-label": "Sort by" }, columns.map((c) => el("option", { value: c.name }, c.title)));
  choose.addEventListener("change", () => sort(choose.value, false));

  function sort(name, flip = true) {
    sorted.down = flip && sorted.by === name ? !sorted.down : false;
    sorted.by = name;
    draw();
  }

  function unfold(row, line, button, focus) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    line.classList.toggle("open", !open);
    if (open) line.nextElementSibling.remove();
    else line.after(el("tr", { class: "unfolded" }, el("td", { class: "detail", colspan: columns.length }, detail(row))));
    if (focus) line.scrollIntoView({ block: "start" });
  }

  function line(row) {
    const ask = el("button", { type: "button", class: "ask", "aria-expanded": "false" });
    const cells = columns.map((column) => {
      if (!column.opens) return el("td", { class: column.kind }, column.cell(row));
      ask.append(column.cell(row));
      return el("td", { class: column.kind }, ask);
    });
    const drawn = el("tr", { class: "row", "data-id": row.id }, cells);
    drawn.addEventListener("click", () => {
      if (!String(getSelection())) unfold(row, drawn, ask, false);
    });
    drawn.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && ask.getAttribute("aria-expanded") === "true") unfold(row, drawn, ask, false);
    });
    return drawn;
  }

  function draw() {
    const column = columns.find((c) => c.name === sorted.by);
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    const found = rows.filter(keep).sort((a, b) => compare(column.key(a), column.key(b)) * (sorted.down ? -1 : 1));
    for (const head of heads) {
      const here = head.dataset.name === sorted.by;
      head.setAttribute("aria-sort", here ? (sorted.down ? "descending" : "ascending") : "none");
    }
    choose.value = sorted.by;
    body.replaceChildren(...found.slice(0, shown).map(line));
    more.hidden = found.length <= shown;
    more.textContent = `Show more (${number(found.length - shown)} left)`;
    state.counted(found.length, rows.length);
  }

  function open(id) {
    const index = rows.filter(keep).length && body.querySelector(`tr[data-id="${CSS.escape(id)}"]`);
    if (!index) return false;
    const ask = index.querySelector(".ask");
    if (ask.getAttribute("aria-expanded") !== "true") unfold(rows.find((row) => row.id === id), index, ask, true);
    return true;
  }

  return { table, more, choose, draw, open, reset: () => { shown = PAGE; draw(); }, all: () => { shown = rows.length; draw(); } };
}
