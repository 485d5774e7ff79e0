// Server-sent events out of pieces of text, however these are cut. It knows no network and no run.

export interface Message {
  id: string;
  event: string;
  data: string;
}

export class Reader {
  #held = "";

  /** The messages that are whole now. Comments and unknown fields are left out. */
  feed(text: string): Message[] {
    const blocks = (this.#held + text).replaceAll("\r\n", "\n").split("\n\n");
    this.#held = blocks.pop() ?? "";
    return blocks.map(read).filter((message) => message.data !== "");
  }
}

function read(block: string): Message {
  const message: Message = { id: "", event: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    if (at <= 0) continue;
    const value = line.slice(at + 1).replace(/^ /, "");
    const name = line.slice(0, at);
    if (name === "data") data.push(value);
    else if (name === "id") message.id = value;
    else if (name === "event") message.event = value;
  }
  return { ...message, data: data.join("\n") };
}
