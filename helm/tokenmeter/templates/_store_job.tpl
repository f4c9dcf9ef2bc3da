{{/*
A CronJob that runs the binary on the central store.
Context: a dictionary of root, component, job (its values), command, args, and history (successful jobs to keep).
*/}}
{{- define "tokenmeter.storeJob" }}
{{- $root := .root }}
{{- if not $root.Values.ledger.store.url }}{{ fail (printf "%s.enabled needs ledger.store.url" .component) }}{{ end }}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "tokenmeter.fullname" $root }}-{{ .component }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "tokenmeter.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  schedule: {{ .job.schedule | quote }}
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: {{ .history }}
  jobTemplate:
    spec:
      backoffLimit: 3
      template:
        metadata:
          labels:
            {{- include "tokenmeter.labels" $root | nindent 12 }}
            app.kubernetes.io/component: {{ .component }}
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          {{- with $root.Values.imagePullSecrets }}
          imagePullSecrets:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            runAsGroup: 65532
            fsGroup: 65532
            seccompProfile: {type: RuntimeDefault}
          containers:
            - name: {{ .component }}
              image: {{ include "tokenmeter.image" $root }}
              imagePullPolicy: {{ $root.Values.image.pullPolicy }}
              command: {{ prepend .command "/usr/bin/tokenmeter" | toJson }}
              args:
                {{- toYaml .args | nindent 16 }}
              env:
                - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
                - name: TOKENMETER_LEDGER
                  value: {{ regexReplaceAll "://[^@]+@" $root.Values.ledger.store.url (printf "://%s@" .job.user) | quote }}
                {{- with .job.passwordSecret }}
                {{- if .name }}
                - name: PGPASSWORD
                  valueFrom: {secretKeyRef: {name: {{ .name }}, key: {{ .key }}}}
                {{- end }}
                {{- end }}
              resources:
                {{- toYaml .job.resources | nindent 16 }}
              securityContext:
                runAsNonRoot: true
                allowPrivilegeEscalation: false
                readOnlyRootFilesystem: true
                capabilities: {drop: [ALL]}
                seccompProfile: {type: RuntimeDefault}
              terminationMessagePolicy: FallbackToLogsOnError
              {{- if .job.volume }}
              volumeMounts:
                - {name: reports, mountPath: /reports}
              {{- end }}
          {{- with .job.volume }}
          volumes:
            - name: reports
              {{- toYaml . | nindent 14 }}
          {{- end }}
{{- end }}
