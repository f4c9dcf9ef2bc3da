// Elements of the page. Text is set by textContent only: names of models and tenants are untrusted.

type Child = Node | string;

/** Returns a new element with these attributes and children. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Sets the text of an element if it differs. */
export function write(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets an attribute if it differs; `null` removes it. */
export function mark(element: Element, name: string, value: string | null): void {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

/** Shows or hides an element. */
export function show(element: HTMLElement, isShown: boolean): void {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/** Returns a button that looks like text; `title` says what it does. */
export function button(label: string, title: string, act: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", class: "quiet", title, "aria-label": `${label}: ${title}` }, label);
  element.addEventListener("click", act);
  return element;
}
