// A bar that shows a share, beside the number that says it. Estimates are hatched.

import { make, mark } from "./element.ts";

export interface Part {
  readonly share: number;
  readonly kind: "solid" | "soft" | "dim" | "hatched" | "bad";
}

export class Bar {
  readonly element = make("span", { class: "share", "aria-hidden": "true" });

  set(parts: readonly Part[]): void {
    while (this.element.children.length > parts.length) this.element.lastChild?.remove();
    while (this.element.children.length < parts.length) this.element.append(make("span"));
    parts.forEach(({ share, kind }, at) => {
      const part = this.element.children[at] as HTMLElement;
      const width = `${(Math.max(0, Math.min(1, share)) * 100).toFixed(1)}%`;
      if (part.style.width !== width) part.style.width = width;
      mark(part, "class", kind);
    });
  }
}
