{{/* What the pods of all parts have in common. */}}

{{- define "stowplan.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* A user without rights, and no system calls but the usual ones. */}}
{{- define "stowplan.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "stowplan.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
privileged: false
capabilities: {drop: [ALL]}
{{- end }}

{{/* Health pages need no token. /readyz fails until all caches are filled, also in the replica that does not lead. */}}
{{- define "stowplan.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: https, scheme: HTTPS}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 30
livenessProbe:
  httpGet: {path: /livez, port: https, scheme: HTTPS}
  periodSeconds: 10
  timeoutSeconds: 15
  failureThreshold: 8
readinessProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 2
  timeoutSeconds: 5
{{- end }}

{{/* Two replicas on one node would fail together. A preference, so that a cluster with one node gets both. */}}
{{- define "stowplan.affinity" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "stowplan.selector" . | nindent 12 }}
{{- end }}

{{/* Who may reach the pages of a part. The argument: {root, part, name, policy}. */}}
{{- define "stowplan.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "stowplan.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "stowplan.selector" . | nindent 6 }}
      {{- with .also }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
  policyTypes: [Ingress{{ if .policy.egress }}, Egress{{ end }}]
  ingress:
    - from: {{- toYaml .policy.from | nindent 8 }}
      ports:
        - {protocol: TCP, port: https}
  {{- with .policy.egress }}
  egress: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* A drain evicts one replica at a time. A replica that is not ready does not block a drain. */}}
{{- define "stowplan.podDisruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "stowplan.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .budget.maxUnavailable }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "stowplan.selector" . | nindent 6 }}
{{- end }}

{{/* The code of plugins as a ConfigMap. The argument: {root, part, name, files}. */}}
{{- define "stowplan.pluginFiles" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "stowplan.labels" . | nindent 4 }}
data: {{- toYaml .files | nindent 2 }}
{{- end }}
