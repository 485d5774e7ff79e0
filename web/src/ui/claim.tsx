// A claim's sentence with its citation chips, of which the first never stands alone on a line.

import type { Claim } from "../api/types.gen";
import type { Outline } from "../run/outline";
import { Cite } from "./cite";

interface Props {
  claim: Claim;
  shown: Outline["shown"];
}

export function Cited({ claim, shown }: Props) {
  const { text, cites } = claim;
  const at = text.lastIndexOf(" ") + 1;
  const [first, ...rest] = cites.map((number) => <Cite key={number} number={number} shown={shown} claims={[claim]} />);
  return (
    <span>
      {text.slice(0, at)}
      <span class={text.length - at < 24 ? "together" : ""}>
        {text.slice(at)} {first}
      </span>{" "}
      {rest}
    </span>
  );
}
