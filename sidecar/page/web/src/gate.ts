// Asks for the admin token.

import { make, show, write } from "./element.ts";
import { hasToken, keepToken } from "./token.ts";

export class Gate {
  readonly element: HTMLElement;
  readonly #why = make("p");
  readonly #field = make("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "token-why",
  });

  constructor(entered: () => void) {
    this.#why.id = "token-why";
    const form = make(
      "form",
      {},
      make("label", { for: "token" }, "Admin token"),
      this.#field,
      make("button", { type: "submit", class: "main-action" }, "Show the page"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const token = this.#field.value.trim();
      if (!token) return;
      this.#field.value = "";
      keepToken(token);
      entered();
    });
    this.element = make("section", { class: "gate", "aria-label": "Admin token" }, this.#why, form);
    show(this.element, false);
  }

  open(): void {
    write(
      this.#why,
      hasToken()
        ? "tokenmeter refused the token. Enter the first line of the file that --admin-token-file names."
        : "This tokenmeter needs a token. Enter the first line of the file that --admin-token-file names.",
    );
    show(this.element, true);
    this.#field.focus();
  }

  close(): void {
    show(this.element, false);
  }
}
