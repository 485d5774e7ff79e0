// A component that is drawn again only when its properties are others. (preact/compat has one, and much more with it.)

import { Component, h, type ComponentChild, type FunctionComponent, type VNode } from "preact";

export function memo<P extends object>(draw: FunctionComponent<P>, same: (a: P, b: P) => boolean): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return !same(this.props as P, next);
    }
    override render(): ComponentChild {
      return h(draw as FunctionComponent<object>, this.props as object);
    }
  }
  return Memo as unknown as FunctionComponent<P> & ((props: P) => VNode);
}
