// Dark or light: as the system says, or as chosen with the switch.

import { make, write } from "./element.ts";
import { repaint } from "./palette.ts";

type Theme = "auto" | "light" | "dark";

const KEY = "tokenmeter-theme";
const NEXT: Record<Theme, Theme> = { auto: "dark", dark: "light", light: "auto" };
const WORDS: Record<Theme, string> = { auto: "Theme: system", dark: "Theme: dark", light: "Theme: light" };

/** Returns the switch. `changed` is called when the colours have changed. */
export function themeSwitch(changed: () => void): HTMLElement {
  let theme = stored();
  const element = make("button", { type: "button", class: "quiet" });
  const apply = (): void => {
    if (theme === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    write(element, WORDS[theme]);
    repaint();
    changed();
  };
  element.addEventListener("click", () => {
    theme = NEXT[theme];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Storage may be forbidden; then the choice lasts until the page is left.
    }
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
  return element;
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "dark" || value === "light" ? value : "auto";
  } catch {
    return "auto";
  }
}
