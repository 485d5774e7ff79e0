// The few pictures of the page, as paths: nothing is loaded for them. All are for the eye only; words say the same.

const PATHS = {
  search: "M10.5 3a7.5 7.5 0 1 0 4.7 13.3l4.3 4.2 1.4-1.4-4.2-4.3A7.5 7.5 0 0 0 10.5 3Zm0 2a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11Z",
  close: "m6.4 5 5.6 5.6L17.6 5 19 6.4 13.4 12l5.6 5.6-1.4 1.4-5.6-5.6L6.4 19 5 17.6l5.6-5.6L5 6.4Z",
  menu: "M4 6h16v2H4Zm0 5h16v2H4Zm0 5h10v2H4Z",
  moon: "M12 3a9 9 0 1 0 9 9.6 7 7 0 0 1-9-9.6Zm-2 2.3A9 9 0 0 0 18.3 15 7 7 0 1 1 10 5.3Z",
  help: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Zm0 2a7 7 0 1 1 0 14 7 7 0 0 1 0-14Zm-1 9.5h2V16h-2v2-3.5Zm1-7.5c-1.9 0-3.2 1.2-3.4 2.9l1.9.3c.2-.8.7-1.4 1.5-1.4s1.4.5 1.4 1.3c0 1.3-2.3 1.4-2.3 3.6h2c0-1.4 2.3-1.6 2.3-3.7 0-1.8-1.5-3-3.4-3Z",
  plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6Z",
  arrow: "m12 4 7 7-1.4 1.4L13 7.8V20h-2V7.8l-4.6 4.6L5 11Z",
  stop: "M7 7h10v10H7Z",
  link: "M10 7H7a5 5 0 0 0 0 10h3v-2H7a3 3 0 0 1 0-6h3Zm4 0v2h3a3 3 0 0 1 0 6h-3v2h3a5 5 0 0 0 0-10Zm-5 4v2h6v-2Z",
  books: "M4 4h4v16H4Zm2 2v12Zm4-2h4v16h-4Zm5.6.6 3.8-1 3.9 14.5-3.9 1Z",
  gear: "M10.6 3h2.8l.5 2.4 1.6.7 2.1-1.3 2 2-1.3 2.1.7 1.6 2.4.5v2.8l-2.4.5-.7 1.6 1.3 2.1-2 2-2.1-1.3-1.6.7-.5 2.4h-2.8l-.5-2.4-1.6-.7-2.1 1.3-2-2 1.3-2.1-.7-1.6L2.6 13.8V11l2.4-.5.7-1.6-1.3-2.1 2-2 2.1 1.3 1.6-.7ZM12 9a3.2 3.2 0 1 0 0 6.4A3.2 3.2 0 0 0 12 9Z",
  pages: "M5 3h10l4 4v14H5Zm2 2v14h10V8h-3V5Zm2 5h6v2H9Zm0 4h6v2H9Z",
  clip: "M8 6a4 4 0 0 1 8 0v9a3 3 0 0 1-6 0V8h2v7a1 1 0 0 0 2 0V6a2 2 0 0 0-4 0v9a5 5 0 0 0 10 0V8h-2v7a3 3 0 0 1-6 0Z",
  bin: "M9 4h6l1 2h4v2H4V6h4Zm-3 6h12l-1 10H7Zm3 2 .4 6h1.6l-.3-6Zm4.3 0-.3 6h1.6l.4-6Z",
  columns: "M4 5h7v14H4Zm2 2v10h3V7Zm7-2h7v14h-7Zm2 2v10h3V7Z",
  share: "M12 3l5 5-1.4 1.4L13 6.8V15h-2V6.8L8.4 9.4 7 8Zm-7 10h2v6h10v-6h2v8H5Z",
  out: "M5 5h6v2H7v10h10v-4h2v6H5Zm8 0h6v6h-2V8.4l-6.3 6.3-1.4-1.4L15.6 7H13Z",
  chevron: "m9 6 6 6-6 6-1.4-1.4L12.2 12 7.6 7.4Z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="currentColor" />
    </svg>
  );
}

/** The stones of the sign. */
export function Cairn() {
  return (
    <svg class="cairn" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <g class="stones">
        <ellipse cx="16" cy="26" rx="12" ry="4.5" />
        <ellipse cx="15" cy="18" rx="8.5" ry="3.8" />
        <ellipse cx="17" cy="11" rx="6" ry="3.2" />
      </g>
      <ellipse class="highest" cx="16" cy="5.2" rx="3.6" ry="2.4" />
    </svg>
  );
}
