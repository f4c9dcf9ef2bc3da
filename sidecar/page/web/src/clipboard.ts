// Copies text. Pages served without TLS have no clipboard API; for them the text is selected and copied.

import { make } from "./element.ts";
import { speak } from "./speech.ts";

export async function copy(text: string, from: HTMLElement): Promise<void> {
  const isCopied = (await byApi(text)) || bySelection(text);
  const label = from.dataset["label"] ?? from.textContent ?? "";
  from.dataset["label"] = label;
  from.textContent = isCopied ? "Copied" : "Not copied";
  speak(isCopied ? "Copied" : "The browser refused to copy");
  setTimeout(() => {
    from.textContent = label;
  }, 1500);
}

async function byApi(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function bySelection(text: string): boolean {
  const area = make("textarea", { class: "unseen", readonly: "" });
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
