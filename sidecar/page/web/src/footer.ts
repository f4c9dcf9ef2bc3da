// The last lines: how certain the numbers are, and where the same ones are.

import { make } from "./element.ts";

export const footer = make(
  "footer",
  { class: "note" },
  "Token counts are the server’s own, unless a row says estimated. ",
  "Quantiles are estimates within a histogram’s bucket. ",
  "Times are in the time zone of this browser, days of spend in the ledger’s. The same numbers are in ",
  make("a", { href: "metrics" }, "/metrics"),
  " and, in a terminal, in tokenmeter top.",
);
