// The live region: a screen reader reads what is said here.

import { make } from "./element.ts";

export const speech = make("p", { class: "unseen", "aria-live": "polite", role: "status" });

export function speak(text: string): void {
  speech.textContent = text;
}
