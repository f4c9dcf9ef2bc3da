// The colours of the charts, from the style sheet, so that one file decides them.

export type Role = "accent" | "ink" | "muted" | "line" | "wash" | "bad" | "paper";

let colours = new Map<Role, string>();

/** Has each colour as its own, because a style sheet's variable is not resolved. */
const probe = document.createElement("i");
probe.hidden = true;

export function colour(role: Role): string {
  let value = colours.get(role);
  if (value === undefined) {
    if (!probe.isConnected) document.body.append(probe);
    probe.style.color = `var(--${role})`;
    value = getComputedStyle(probe).color;
    colours.set(role, value);
  }
  return value;
}

/** Forgets the colours: the theme has changed. */
export function repaint(): void {
  colours = new Map();
}
