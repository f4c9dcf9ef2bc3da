{{/* The sidecar: one shape for the injection, for other charts and for the test. */}}

{{/* "true" if the sidecar is a native one. */}}
{{- define "tokenmeter.native" -}}
{{- $since := semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version -}}
{{- if eq (toString .Values.sidecar.native) "auto" -}}
{{- $since -}}
{{- else if and (eq (toString .Values.sidecar.native) "true") (not $since) -}}
{{- fail (printf "sidecar.native: true needs Kubernetes 1.29, this is %s" .Capabilities.KubeVersion.Version) -}}
{{- else -}}
{{- .Values.sidecar.native -}}
{{- end -}}
{{- end -}}

{{/* A setting's value as text. Helm reads whole numbers as floats and would print large ones with an exponent. */}}
{{- define "tokenmeter.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- . -}}
{{- end -}}
{{- end -}}

{{/* The variables of the sidecar without those of a pod. */}}
{{- define "tokenmeter.env" -}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
- {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
- {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}
- {name: NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: CONTAINER_NAME, value: tokenmeter}
{{- with .Values.sidecar.resourceAttributes }}
{{- $pairs := list }}
{{- range $name, $value := . }}
{{- $pairs = append $pairs (printf "%s=%s" $name (toString $value)) }}
{{- end }}
- {name: OTEL_RESOURCE_ATTRIBUTES, value: {{ join "," $pairs | quote }}}
{{- end }}
- {name: TOKENMETER_DRAIN_TOKEN_FILE, value: /var/lib/tokenmeter/drain.token}
- {name: TOKENMETER_DRAIN_DELAY_MS, value: {{ mul .Values.sidecar.drain.delaySeconds 1000 | quote }}}
- {name: TOKENMETER_DRAIN_GRACE_MS, value: {{ mul .Values.sidecar.drain.graceSeconds 1000 | quote }}}
{{- if .Values.sidecar.adminTokenSecret.name }}
- {name: TOKENMETER_ADMIN_TOKEN_FILE, value: /etc/tokenmeter/admin-token/token}
{{- end }}
{{- with .Values.ledger }}
{{- if .enabled }}
- {name: TOKENMETER_LEDGER, value: /var/lib/tokenmeter/ledger.db}
- {name: TOKENMETER_LEDGER_KEEP_DAYS, value: {{ .keepDays | quote }}}
{{- with .store }}
{{- if .url }}
- {name: TOKENMETER_LEDGER_SHIP, value: {{ .url | quote }}}
{{- with .passwordSecret }}
{{- if .name }}
# A pod without the Secret starts; its rows wait in its ledger.
- {name: PGPASSWORD, valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}, optional: true}}}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.sidecar.settings }}
- {name: {{ printf "TOKENMETER_%s" (upper $name) }}, value: {{ include "tokenmeter.text" $value | quote }}}
{{- end }}
{{- with .Values.sidecar.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The complete container without the parts of a pod: the addresses, the public port, files. */}}
{{- define "tokenmeter.container" -}}
name: tokenmeter
image: {{ include "tokenmeter.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command: [/usr/bin/tokenmeter]
args: [run]
workingDir: /var/lib/tokenmeter
{{- if eq (include "tokenmeter.native" .) "true" }}
restartPolicy: Always
{{- end }}
env:
  {{- include "tokenmeter.env" . | nindent 2 }}
ports:
  - {name: tm-admin, containerPort: {{ include "tokenmeter.adminPort" . }}, protocol: TCP}
# /readyz waits for the model: a startup probe on it would keep a native sidecar's pod from starting.
startupProbe: {httpGet: {path: /livez, port: tm-admin}, periodSeconds: 1, failureThreshold: 60}
livenessProbe: {httpGet: {path: /livez, port: tm-admin}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6}
readinessProbe: {httpGet: {path: /readyz, port: tm-admin}, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 2}
lifecycle: {preStop: {exec: {command: [/usr/bin/tokenmeter, drain]}}}
resources:
  {{- toYaml .Values.sidecar.resources | nindent 2 }}
securityContext:
  {{- toYaml .Values.sidecar.securityContext | nindent 2 }}
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
  - {name: tokenmeter-state, mountPath: /var/lib/tokenmeter}
  # Empty. The API server mounts the pod's token there in each container that mounts nothing there itself.
  - name: tokenmeter-state
    mountPath: /var/run/secrets/kubernetes.io/serviceaccount
    subPath: no-token
    readOnly: true
  {{- if .Values.sidecar.adminTokenSecret.name }}
  - {name: tokenmeter-admin-token, mountPath: /etc/tokenmeter/admin-token, readOnly: true}
  {{- end }}
{{- end -}}

{{/* The address of all listeners: that of the admin address, if it is the one of IPv6 and IPv4. */}}
{{- define "tokenmeter.address" -}}
{{- ternary "[::]" "0.0.0.0" (hasPrefix "[::]:" .Values.sidecar.settings.admin) -}}
{{- end -}}

{{- define "tokenmeter.adminPort" -}}
{{- regexFind "[0-9]+$" .Values.sidecar.settings.admin -}}
{{- end -}}

{{- define "tokenmeter.volumes" -}}
- name: tokenmeter-state
  emptyDir: {sizeLimit: {{ .Values.sidecar.state.sizeLimit }}}
{{- with .Values.sidecar.adminTokenSecret }}
{{- if .name }}
# A pod starts without the Secret; requests for its numbers fail until the Secret exists.
- name: tokenmeter-admin-token
  secret: {secretName: {{ .name }}, optional: true, items: [{key: {{ .key | quote }}, path: token}]}
{{- end }}
{{- end }}
{{- end -}}

{{/*
For other charts. Each takes a dict: `context` (the chart's scope: .Subcharts.tokenmeter of a chart that depends on it),
`port` (the public number), and optionally `serverPort`, `kind`, `usage`, `role`, `prices` and `tenants` (names of
ConfigMaps with the keys prices.yaml and tenants.yaml).

tokenmeter.sidecar: a list with the container, for initContainers (for containers where it is not native)
*/}}
{{- define "tokenmeter.sidecar" -}}
{{- $context := required "tokenmeter.sidecar: context" .context -}}
{{- $port := required "tokenmeter.sidecar: port" .port -}}
{{- $container := include "tokenmeter.container" $context | fromYaml -}}
{{- $server := default $context.Values.sidecar.serverPort .serverPort -}}
{{- $env := list
    (dict "name" "TOKENMETER_LISTEN" "value" (printf "%s:%v" (include "tokenmeter.address" $context) $port))
    (dict "name" "TOKENMETER_UPSTREAM" "value" (printf "http://127.0.0.1:%v" $server)) -}}
{{- $mounts := $container.volumeMounts -}}
{{- $arguments := . -}}
{{- range $name := list "kind" "usage" "role" -}}
{{- with get $arguments $name -}}
{{- $env = append $env (dict "name" (printf "TOKENMETER_%s" (upper $name)) "value" .) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "prices" "tenants" -}}
{{- if get $arguments $name -}}
{{- $folder := printf "/etc/tokenmeter/%s" $name -}}
{{- $file := printf "%s/%s.yaml" $folder $name -}}
{{- $env = append $env (dict "name" (printf "TOKENMETER_%s" (upper $name)) "value" $file) -}}
{{- $mounts = append $mounts (dict "name" (printf "tokenmeter-%s" $name) "mountPath" $folder "readOnly" true) -}}
{{- end -}}
{{- end -}}
{{- $ports := append $container.ports (dict "name" "tm-http" "containerPort" (int $port) "protocol" "TCP") -}}
{{- $pod := dict "env" (concat $container.env $env) "ports" $ports "volumeMounts" $mounts -}}
{{- toYaml (list (merge $pod $container)) -}}
{{- end -}}

{{/* tokenmeter.sidecar.volumes: the volumes of that container */}}
{{- define "tokenmeter.sidecar.volumes" -}}
{{- include "tokenmeter.volumes" .context }}
{{- range $name := list "prices" "tenants" }}
{{- with get $ $name }}
- {name: tokenmeter-{{ $name }}, configMap: {name: {{ . }}}}
{{- end }}
{{- end }}
{{- end -}}

{{/* tokenmeter.sidecar.lifecycle: of the model container, which must not stop before its last stream has ended */}}
{{- define "tokenmeter.sidecar.lifecycle" -}}
preStop: {httpGet: {path: /drained, port: {{ include "tokenmeter.adminPort" .context }}}}
{{- end -}}

{{/* tokenmeter.sidecar.graceSeconds: the least terminationGracePeriodSeconds of the pod */}}
{{- define "tokenmeter.sidecar.graceSeconds" -}}
{{- with .context.Values.sidecar.drain }}{{ add .delaySeconds .graceSeconds 30 }}{{ end -}}
{{- end -}}

{{/* tokenmeter.sidecar.labels: labels of the pod, by which the PodMonitor and the network policies select it */}}
{{- define "tokenmeter.sidecar.labels" -}}
tokenmeter.io/injected: "true"
{{- end -}}
