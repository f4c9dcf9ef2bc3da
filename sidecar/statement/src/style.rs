//! The style sheet of the page: A4 paper, black on white, fonts of the reader's machine.

/// The style sheet.
pub(crate) const STYLE: &str = "
@page { size: A4; margin: 18mm 16mm; }
body { font: 10pt/1.4 system-ui, sans-serif; color: #111; background: #fff; max-width: 178mm; margin: 0 auto; }
@media screen { body { padding: 12mm 6mm; } }
h1 { font-size: 18pt; margin: 0 0 2mm; }
h2 { font-size: 11.5pt; margin: 8mm 0 2mm; border-bottom: 0.3mm solid #111; break-after: avoid; }
p { margin: 1.5mm 0; }
dl { display: grid; grid-template-columns: 32mm 1fr; gap: 0.5mm 4mm; margin: 4mm 0; }
dt { color: #555; }
dd { margin: 0; }
dd, td, li { overflow-wrap: anywhere; }
.due { font-size: 15pt; font-weight: 600; }
.draft { border: 0.5mm solid #a00; color: #a00; padding: 2mm 3mm; font-weight: 600; }
.small { color: #555; font-size: 8.5pt; }
table { border-collapse: collapse; width: 100%; font-size: 9pt; }
thead { display: table-header-group; }
tfoot { display: table-row-group; }
tr { break-inside: avoid; }
th { text-align: left; font-weight: 600; vertical-align: bottom; border-bottom: 0.2mm solid #111; }
th, td { padding: 0.8mm 3mm 0.8mm 0; vertical-align: top; }
td:first-child { min-width: 26mm; }
td.k { min-width: 20mm; }
th.n, td.n { text-align: right; padding: 0.8mm 0 0.8mm 3mm; font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; }
tfoot td { border-top: 0.2mm solid #111; font-weight: 600; }
svg { width: 100%; height: auto; break-inside: avoid; }
svg text { font: 3.2px system-ui, sans-serif; fill: #333; }
code { font: 8.5pt ui-monospace, monospace; overflow-wrap: anywhere; }
";
