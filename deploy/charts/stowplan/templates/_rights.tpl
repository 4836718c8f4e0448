{{/*
A role, and its binding to an account of this release. The argument: {root, part, name, account, rules}; with `role` an
existing ClusterRole is bound instead, and with `namespace` it is a Role there.
*/}}
{{- define "stowplan.rights" -}}
{{- $kind := ternary "Role" "ClusterRole" (hasKey . "namespace") -}}
{{- if not .role -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "stowplan.labels" . | nindent 4 }}
rules: {{- .rules | nindent 2 }}
---
{{ end -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "stowplan.labels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ $kind }}, name: {{ .role | default .name | quote }}}
subjects:
  - {kind: ServiceAccount, name: {{ .account }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}

{{- define "stowplan.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account }}
  namespace: {{ .in | default .root.Release.Namespace }}
  labels: {{- include "stowplan.labels" . | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
# Pods that need the token mount it explicitly.
automountServiceAccountToken: false
{{- end }}
