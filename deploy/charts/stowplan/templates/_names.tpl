{{/* Names and labels. */}}

{{- define "stowplan.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* The release's name; the chart's name is added unless it is in there. */}}
{{- define "stowplan.fullname" -}}
{{- $name := include "stowplan.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "stowplan.placement.fullname" -}}
{{- .Values.placement.fullnameOverride | default (printf "%s-placement" (include "stowplan.fullname" .)) -}}
{{- end }}

{{- define "stowplan.scores.fullname" -}}
{{- .Values.scores.fullnameOverride | default (printf "%s-scores" (include "stowplan.fullname" .)) -}}
{{- end }}

{{- define "stowplan.account" -}}
{{- .Values.scheduler.serviceAccount.name | default (include "stowplan.fullname" .) -}}
{{- end }}

{{- define "stowplan.priorityClass" -}}
{{- .Values.priorityClass.name | default (include "stowplan.fullname" .) -}}
{{- end }}

{{/* The labels by which a part's pods are found. The argument: {root, part}; part is empty for the scheduler. */}}
{{- define "stowplan.selector" -}}
app.kubernetes.io/name: {{ include "stowplan.name" .root }}{{ with .part }}-{{ . }}{{ end }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}

{{- define "stowplan.labels" -}}
{{ include "stowplan.selector" . }}
app.kubernetes.io/component: {{ .part | default "scheduler" }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: stowplan
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}
