// Names of models and tenants, and texts of servers: others choose them.

/** Characters that cannot be seen, and those that change the direction of text: a name could look like another one. */
export const INVISIBLE = /[\p{Cc}\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800\ufff9-\ufffb]/gu;

/** Returns the name with a sign in place of each invisible character. */
export function visible(name: string): string {
  return name.replace(INVISIBLE, "\ufffd") || "(no name)";
}
