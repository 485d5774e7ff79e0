// What the browser keeps for this page. A file that was opened from a disk may have no storage: then nothing is kept.

type Where = "localStorage" | "sessionStorage";

export function stored(where: Where, name: string): string | null {
  try {
    return window[where].getItem(name);
  } catch {
    return null;
  }
}

export function store(where: Where, name: string, value: string): void {
  try {
    window[where].setItem(name, value);
  } catch {
    // kept until the page is closed
  }
}
