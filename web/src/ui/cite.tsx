// A citation chip: focus, hover or press shows the exact words that it cites, where they stand and how they were checked.

import { signal } from "@preact/signals";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import type { Claim, Passage } from "../api/types.gen";
import { cut, passageOf, type Outline } from "../run/outline";
import { CHECKS } from "../run/labels";
import { toDocument } from "../app/route";
import { facts } from "../app/state";
import { Link } from "./markdown";

/** Which chip is open; one at a time. */
const open = signal("");

interface Props {
  number: number;
  shown: Outline["shown"];
  /** Those that cite it; their quotes are shown. */
  claims: readonly Claim[];
}

export function Cite({ number, shown, claims }: Props) {
  const id = useId();
  const place = useRef<HTMLSpanElement>(null);
  const passage = passageOf(shown, number, claims);
  if (!passage) return <span>[{number}]</span>;
  const isOpen = open.value === id;
  const leave = (event: FocusEvent | MouseEvent) => {
    const to = event.relatedTarget;
    const inside = to instanceof Node && place.current?.contains(to);
    if (!inside && !(event.type === "mouseleave" && place.current?.contains(document.activeElement)) && open.value === id) open.value = "";
  };
  return (
    <span class="cite" ref={place} onMouseEnter={() => (open.value = id)} onMouseLeave={leave} onFocusOut={leave}>
      <button
        type="button"
        class="chip"
        aria-expanded={isOpen}
        aria-controls={id}
        aria-label={`Source ${number}: ${passage.title || passage.id}`}
        onFocus={() => (open.value = id)}
        onClick={() => (open.value = id)}
        onKeyDown={(event) => event.key === "Escape" && isOpen && (event.stopPropagation(), (open.value = ""))}
      >
        {number}
      </button>
      {isOpen && <Peek id={id} passage={passage} claims={claims.filter((claim) => claim.cites.includes(number))} />}
    </span>
  );
}

function Peek({ id, passage, claims }: { id: string; passage: Passage; claims: readonly Claim[] }) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (box.current) place(box.current);
  }, []);
  useEffect(() => {
    const shut = (event: KeyboardEvent) => event.key === "Escape" && (open.value = "");
    const away = (event: PointerEvent) => {
      if (!(event.target instanceof Node) || !box.current?.parentElement?.contains(event.target)) open.value = "";
    };
    const moved = () => box.current && place(box.current);
    document.addEventListener("keydown", shut);
    document.addEventListener("pointerdown", away);
    addEventListener("scroll", moved, { passive: true, capture: true });
    return () => {
      document.removeEventListener("keydown", shut);
      document.removeEventListener("pointerdown", away);
      removeEventListener("scroll", moved, { capture: true });
    };
  }, []);
  const checks = new Set(claims.map(({ check }) => check));
  return (
    <div class="peek" id={id} ref={box} role="group" aria-label="What is cited">
      <p class="peek-title">
        <Source passage={passage} claims={claims} />
      </p>
      <p class="meta">
        <span class="tag">{passage.source}</span>
        {passage.date && <time dateTime={passage.date}>{passage.date}</time>}
        {checks.size === 1 && [...checks].map((check) => <Check key={check} check={check} />)}
      </p>
      <Quoted passage={passage} claims={claims} />
    </div>
  );
}

/** Its title: a link to the place in its document where there is one, or else to its page on the web. */
export function Source({ passage, claims = [] }: { passage: Passage; claims?: readonly Claim[] }) {
  const quote = claims.flatMap((claim) => claim.quotes).find(({ number }) => number === passage.number);
  const place = facts.value ? toDocument(passage.id, quote) : ""; // a shared page has no server to show it
  if (place) return <a href={place}>{passage.title || passage.id}</a>;
  return <Link url={passage.url}>{passage.title || passage.id}</Link>;
}

/** The passage's text with the words that are quoted marked. */
export function Quoted({ passage, claims }: { passage: Passage; claims: readonly Claim[] }) {
  const quotes = claims
    .flatMap((claim) => claim.quotes)
    .filter((quote) => quote.number === passage.number && cut(passage.text, quote.start, quote.end) === quote.text)
    .toSorted((a, b) => a.start - b.start);
  const parts = [];
  let at = 0;
  for (const quote of quotes) {
    if (quote.start < at) continue;
    parts.push(cut(passage.text, at, quote.start), <mark key={quote.start}>{quote.text}</mark>);
    at = quote.end;
  }
  return (
    <blockquote>
      {parts}
      {cut(passage.text, at)}
    </blockquote>
  );
}

export function Check({ check }: { check: Claim["check"] }) {
  return <span class={`check ${check}`}>{CHECKS[check]}</span>;
}

/** Under its chip, or above it where there is no room below; never outside of the window. */
function place(box: HTMLElement): void {
  const chip = box.parentElement?.querySelector(".chip")?.getBoundingClientRect();
  if (!chip) return;
  const { width, height } = box.getBoundingClientRect();
  const left = Math.max(8, Math.min(chip.left - 12, innerWidth - width - 8));
  const below = chip.bottom + height + 12 < innerHeight || chip.top < height + 12;
  box.style.left = `${left}px`;
  box.style.top = `${below ? chip.bottom + 4 : chip.top - height - 4}px`;
}
