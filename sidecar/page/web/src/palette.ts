// The colours of the charts, from the style sheet, so that one file decides them.

export type Role = "accent" | "ink" | "muted" | "line" | "wash" | "bad" | "paper";

let colours = new Map<Role, string>();

export function colour(role: Role): string {
  let value = colours.get(role);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();
    colours.set(role, value);
  }
  return value;
}

/** Forgets the colours: the theme has changed. */
export function repaint(): void {
  colours = new Map();
}
