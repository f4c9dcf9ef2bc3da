// An answer of the admin listener's JSON paths.

import { authorization } from "./token.ts";

export type Answer<T> =
  | { readonly kind: "ok"; readonly body: T; readonly text: string }
  | { readonly kind: "refused"; readonly status: number; readonly why: string }
  | { readonly kind: "unreachable" };

/** Asks for a path below `/api`. */
export async function ask<T>(path: string): Promise<Answer<T>> {
  try {
    const response = await fetch(`api/${path}`, { headers: authorization(), cache: "no-store" });
    const text = await response.text();
    if (response.ok) return { kind: "ok", body: JSON.parse(text) as T, text };
    return { kind: "refused", status: response.status, why: errorIn(text) };
  } catch {
    return { kind: "unreachable" };
  }
}

function errorIn(text: string): string {
  try {
    return String((JSON.parse(text) as { error: unknown }).error);
  } catch {
    return text.trim();
  }
}
