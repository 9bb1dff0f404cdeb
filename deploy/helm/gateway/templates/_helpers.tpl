{{- define "gateway.name" -}}
{{- printf "%s-gateway" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* A digest pins the image, whatever its tag. */}}
{{- define "gateway.image" -}}
{{- with .Values.image.digest -}}
{{- printf "%s@%s" $.Values.image.repository . -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Name of the pods together, which Envoy looks up. */}}
{{- define "gateway.pods" -}}
{{- printf "%s-pods.%s.svc.cluster.local" (include "gateway.name" .) .Release.Namespace -}}
{{- end -}}

{{/* Labels that select the pods of a part; with (list $ "part"). */}}
{{- define "gateway.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: gateway
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "gateway.labels" -}}
{{- $root := index . 0 -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end -}}

{{- define "gateway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "gateway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Where pods of a part run, and how they get their images; with (list $ "part"). */}}
{{- define "gateway.scheduling" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.imagePullSecrets -}}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with $root.Values.priorityClassName -}}
priorityClassName: {{ . }}
{{ end -}}
{{- with $root.Values.affinity -}}
affinity: {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with $root.Values.nodeSelector -}}
nodeSelector: {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with $root.Values.tolerations -}}
tolerations: {{- toYaml . | nindent 2 }}
{{ end -}}
{{- with $root.Values.topologySpread -}}
topologySpreadConstraints:
{{- range . }}
  - {{- toYaml . | nindent 4 }}
    labelSelector:
      matchLabels: {{- include "gateway.selector" (list $root (index $ 1)) | nindent 8 }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "gateway.disruptionBudget" -}}
{{- with .Values.podDisruptionBudget -}}
{{- if hasKey . "minAvailable" -}}
minAvailable: {{ .minAvailable }}
{{- else -}}
maxUnavailable: {{ .maxUnavailable }}
{{- end -}}
{{- end -}}
{{- end -}}
