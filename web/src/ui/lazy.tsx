// A component whose code is loaded when it is first shown.

import { useSignal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";

export type Lazy<P> = (props: P) => JSX.Element;

export function lazy<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): Lazy<P> {
  let loaded: ComponentType<P> | undefined;
  return function Later(props: P) {
    const state = useSignal<"waits" | "there" | "failed">(loaded ? "there" : "waits");
    useEffect(() => {
      if (loaded) return;
      load().then(
        (module) => {
          loaded = module.default;
          state.value = "there";
        },
        () => (state.value = "failed"),
      );
    }, []);
    const Loaded = loaded;
    if (state.value === "there" && Loaded) return <Loaded {...props} />;
    return <p class="none">{state.value === "failed" ? "This view could not be loaded; reload the page." : "Loading…"}</p>;
  };
}
