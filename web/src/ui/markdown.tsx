// Text of a policy as Markdown. HTML in it is shown as what it is: text. What Markdown makes is sanitised against a short
// list and then built again from it: no markup is ever handed to the page, and nothing in it can load, run or style.

import DOMPurify from "dompurify";
import { Marked } from "marked";
import { h, type ComponentChildren, type VNode } from "preact";
import { useMemo } from "preact/hooks";

const TAGS = [
  "p", "br", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
  "table", "thead", "tbody", "tr", "th", "td", "a",
];
/** A year or a number with a full stop, and nothing behind it but citations, is no list. */
const LONE_NUMBER = /^ {0,3}\d{1,9}[.)][ \t]*(\[\d[^\]\n]*\][ \t\u200b]*)*(\n|$)/;
const APART = "\u200b";
const CITE = /\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]/;

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (c) => ESCAPES[c] ?? c);
const reader = new Marked({
  gfm: true,
  breaks: true,
  tokenizer: { list: (text) => (LONE_NUMBER.test(text) ? undefined : false) },
  renderer: { html: ({ text }) => escaped(text), image: ({ text }) => escaped(text) },
});

interface Props {
  text: string;
  /** What replaces a mark `[n]`; left out, marks are text. */
  cite?: ((number: number, key: string) => ComponentChildren) | undefined;
}

export function Markdown({ text, cite }: Props) {
  const nodes = useMemo(() => parse(text), [text]);
  return <div class="prose">{[...nodes.childNodes].map((node, at) => build(node, cite, `${at}`))}</div>;
}

function parse(text: string): DocumentFragment {
  const apart = text.replace(/\[(\d[\d,;\s]*)\](?=[([:])/g, `[$1]${APART}`); // marks that touch are no links
  const markup = reader.parse(apart, { async: false });
  return DOMPurify.sanitize(markup, { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "start"], RETURN_DOM_FRAGMENT: true, ALLOW_DATA_ATTR: false });
}

function build(node: Node, cite: Props["cite"], key: string): ComponentChildren {
  if (node.nodeType === Node.TEXT_NODE) return withMarks(node.textContent ?? "", cite, key);
  if (!(node instanceof Element)) return null;
  const tag = node.localName;
  const children = [...node.childNodes].map((child, at) => build(child, tag === "code" || tag === "a" ? undefined : cite, `${key}.${at}`));
  if (tag === "a") return <Link key={key} url={node.getAttribute("href") ?? ""}>{children}</Link>;
  if (!TAGS.includes(tag)) return children;
  const level = /^h[1-6]$/.test(tag) ? "h4" : tag; // the page has headings of its own
  const start = node.getAttribute("start");
  return h(level, start ? { key, start } : { key }, children) as VNode;
}

function withMarks(text: string, cite: Props["cite"], key: string): ComponentChildren {
  if (!cite) return text.replaceAll(APART, "");
  return text.split(new RegExp(CITE, "g")).map((part, at) =>
    at % 2 ? part.split(/[,;]/).map((n, place) => cite(Number(n), `${key}:${at}.${place}`)) : part.replaceAll(APART, ""),
  );
}

/** An address on the web as a link that sends no referrer; any other one as its text. */
export function Link({ url, children }: { url: string; children: ComponentChildren }) {
  if (!isWeb(url)) return <span>{children}</span>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

export function isWeb(url: string): boolean {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    return false;
  }
}
