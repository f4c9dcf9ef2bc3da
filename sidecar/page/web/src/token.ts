// The admin token: taken from `#token=…` once, kept for this tab only, never in the address.

const KEY = "tokenmeter-token";
let token: string | null = null;

/** Takes the token out of the address, or from this tab's storage. */
export function takeToken(): void {
  const [, given] = /^#token=(.*)$/s.exec(location.hash) ?? [];
  if (given !== undefined) {
    history.replaceState(null, "", location.pathname + location.search);
    try {
      keepToken(decodeURIComponent(given));
    } catch {
      keepToken(given);
    }
    return;
  }
  try {
    token = sessionStorage.getItem(KEY);
  } catch {
    // Storage may be forbidden; then the token lasts until the page is left.
  }
}

export function keepToken(given: string): void {
  token = given;
  try {
    sessionStorage.setItem(KEY, given);
  } catch {
    // As above.
  }
}

export function hasToken(): boolean {
  return token !== null && token !== "";
}

/** Returns the headers that the admin listener asks for. */
export function authorization(): Record<string, string> {
  // A header cannot carry other characters; the listener answers 401 to the request without it.
  return token && /^[\x21-\x7e]+$/.test(token) ? { Authorization: `Bearer ${token}` } : {};
}
