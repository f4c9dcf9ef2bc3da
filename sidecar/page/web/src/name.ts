// Names of models and tenants as text: clients choose them.

/** Control characters, and those that change the direction of text: a name could look like another one. */
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Returns the name with a sign in place of each invisible character. */
export function visible(name: string): string {
  return name.replace(INVISIBLE, "\ufffd") || "(no name)";
}
