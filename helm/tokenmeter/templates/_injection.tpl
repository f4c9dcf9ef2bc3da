{{/* The injection: its mode, its scope and its configuration. */}}

{{- define "tokenmeter.injection.mode" -}}
{{- $stable := semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version -}}
{{- if eq .Values.injection.mode "auto" -}}
{{- ternary "policy" "webhook" $stable -}}
{{- else if and (eq .Values.injection.mode "policy") (not $stable) -}}
{{- $version := .Capabilities.KubeVersion.Version -}}
{{- fail (printf "injection.mode: policy needs Kubernetes 1.36, this is %s: use webhook or auto" $version) -}}
{{- else -}}
{{- .Values.injection.mode -}}
{{- end -}}
{{- end -}}

{{/* The namespaces without injection, as a list. */}}
{{- define "tokenmeter.injection.excludedNamespaces" -}}
{{- $always := list "kube-system" "kube-node-lease" "kube-public" .Release.Namespace -}}
{{- concat $always .Values.injection.excludedNamespaces | uniq | toYaml -}}
{{- end -}}

{{/* The configuration, as YAML: read by the webhook, embedded into the policy. */}}
{{- define "tokenmeter.injection" -}}
{{- $config := dict
    "container" (include "tokenmeter.container" . | fromYaml)
    "volumes" (include "tokenmeter.volumes" . | fromYamlArray)
    "native" (eq (include "tokenmeter.native" .) "true")
    "address" (include "tokenmeter.address" .)
    "server_port" (int .Values.sidecar.serverPort)
    "grace_seconds" (int .Values.sidecar.drain.graceSeconds)
    "delay_seconds" (int .Values.sidecar.drain.delaySeconds)
    "platforms" (.Files.Get "files/platforms.yaml" | fromYamlArray)
    "servers" (.Files.Get "files/servers.yaml" | fromYamlArray) -}}
{{- if .Values.injection.redirect.enabled -}}
{{- $config = set $config "redirect" (include "tokenmeter.redirect" . | fromYaml) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The init container of the mode redirect; the ports are added for each pod. */}}
{{- define "tokenmeter.redirect" -}}
name: tokenmeter-redirect
image: {{ include "tokenmeter.redirect.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [/usr/bin/tokenmeter, redirect]
resources:
  {{- toYaml .Values.sidecar.resources | nindent 2 }}
# The rules of the pod's network namespace are the one thing that needs a capability.
securityContext:
  runAsNonRoot: false
  runAsUser: 0
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL], add: [NET_ADMIN]}
  seccompProfile: {type: RuntimeDefault}
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{- define "tokenmeter.webhook.secretName" -}}
{{- if eq .Values.webhook.certificate.mode "existing" -}}
{{- $message := "webhook.certificate.mode: existing needs webhook.certificate.secretName" -}}
{{- required $message .Values.webhook.certificate.secretName -}}
{{- else -}}
{{- include "tokenmeter.fullname" . }}-webhook-tls
{{- end -}}
{{- end -}}
