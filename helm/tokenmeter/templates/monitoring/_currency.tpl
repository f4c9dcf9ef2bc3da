{{/* A rule file or dashboard in the price book's currency; costs of GPUs stay in US dollars. */}}
{{- define "tokenmeter.inCurrency" -}}
{{- $code := .currency -}}
{{- $spend := printf `_spend_%s_total{basis=${1}"price` $code -}}
{{- $text := regexReplaceAll `_spend_usd_total\{basis=(\\?)"price` .text $spend -}}
{{- regexReplaceAll `(budget_(?:limit|used|forecast))_usd` $text (printf `${1}_%s` $code) -}}
{{- end -}}
