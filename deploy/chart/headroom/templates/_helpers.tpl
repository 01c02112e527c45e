{{/* 40 characters leave room for what is appended: a StatefulSet's pods carry its name and a hash in a label of at most 63. */}}
{{- define "headroom.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Objects outside of namespaces: two releases of one name may lie in two namespaces. */}}
{{- define "headroom.clusterwide" -}}
{{- printf "%s-%s" .Release.Namespace (include "headroom.fullname" .) -}}
{{- end -}}

{{/* What selectors are made of never changes: neither version nor labels of the user. Called with (list $ "component"). */}}
{{- define "headroom.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "headroom.labels" -}}
{{- $root := index . 0 -}}
{{ include "headroom.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "headroom.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of a pod: no root, no powers. The user is the one of the image. */}}
{{- define "headroom.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "headroom.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What every pod has. Called with (list $ "component" values-of-it). */}}
{{- define "headroom.podCommon" -}}
{{- $root := index . 0 -}}
{{- $own := index . 2 -}}
securityContext:
  {{- include "headroom.podSecurity" $root | nindent 2 }}
enableServiceLinks: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $own.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Not beside its like, where there is another node. Called with the selector of the like. */}}
{{- define "headroom.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- . | nindent 12 }}
{{- end -}}

{{- define "headroom.databaseEnvironment" -}}
- name: HEADROOM_DATABASE
  valueFrom:
    secretKeyRef:
      name: {{ required "database.secretName: name a Secret with the URL of the database" .Values.database.secretName }}
      key: {{ .Values.database.secretKey }}
{{- end -}}

{{/* A section of headroom.toml. JSON's numbers, booleans and texts are TOML's, too. What the chart sets is not to be set
again, and the URL of the database is a secret. Called with (dict "section" "own" "settings" "where"). */}}
{{- define "headroom.section" -}}
[{{ .section }}]
{{- $own := .own }}
{{- $where := .where }}
{{- range $key, $value := .settings }}
{{- if hasKey $own $key }}
{{- fail (printf "%s.%s: the chart sets it by another value" $where $key) }}
{{- end }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- range $key, $value := .own }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{ end -}}

{{- define "headroom.scheme" -}}
{{- if .Values.quotaService.tls.secretName }}https{{ else }}http{{ end -}}
{{- end -}}

{{/* Pods that are not ready are asked, too: the first usage has to reach a service that has no quota yet. */}}
{{- define "headroom.url" -}}
{{- if .Values.connector.headroomUrl -}}
{{- .Values.connector.headroomUrl -}}
{{- else if .Values.quotaService.enabled -}}
{{- printf "%s://%s-pods.%s.svc:%v" (include "headroom.scheme" .) (include "headroom.fullname" .) .Release.Namespace .Values.quotaService.port -}}
{{- else -}}
{{- fail "connector.headroomUrl: say where quota-service answers, which this release has none of" -}}
{{- end -}}
{{- end -}}

{{/* The clusters of a shard, separated by commas; empty: all. Called with (list $ shard). */}}
{{- define "headroom.clustersOfShard" -}}
{{- $root := index . 0 -}}
{{- $shard := int (index . 1) -}}
{{- $shards := int $root.Values.quotaService.shards -}}
{{- if gt $shards (max 1 (len $root.Values.clusters)) -}}
{{- fail (printf "quotaService.shards is %d: name at least as many clusters" $shards) -}}
{{- end -}}
{{- $own := list -}}
{{- range $at, $cluster := $root.Values.clusters -}}
{{- if eq (mod $at $shards) $shard -}}
{{- $own = append $own $cluster -}}
{{- end -}}
{{- end -}}
{{- join "," $own -}}
{{- end -}}

{{/* "true" where the connector writes anything to the Kubernetes API, for which it needs its Lease. */}}
{{- define "headroom.writes" -}}
{{- with .Values.modes -}}
{{- if or (ne .kueue "off") .admissionCheck .priorityBoost .resourceQuota .evict -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" where something is published that outlives the connector. */}}
{{- define "headroom.publishes" -}}
{{- if and .Values.connector.enabled (or (ne .Values.modes.kueue "off") .Values.modes.resourceQuota) -}}true{{- end -}}
{{- end -}}

{{- define "headroom.leaseName" -}}
{{- include "headroom.fullname" . }}-connector
{{- end -}}

{{- define "headroom.extenderSecret" -}}
{{- $tls := .Values.extender.tls -}}
{{- if $tls.certManager.create -}}
{{- default (printf "%s-extender-tls" (include "headroom.fullname" .)) $tls.secretName -}}
{{- else -}}
{{- required "extender.tls.secretName: name a Secret with tls.crt, tls.key and ca.crt, or set extender.tls.certManager.create" $tls.secretName -}}
{{- end -}}
{{- end -}}

{{/* A rule of a NetworkPolicy: peers, where they are named. Called with (list "to" peers ports). */}}
{{- define "headroom.rule" -}}
{{- $direction := index . 0 -}}
- ports:
    {{- range index . 2 }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
  {{- with index . 1 }}
  {{ $direction }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The settings of quota-service and train as a volume. */}}
{{- define "headroom.serviceConfig" -}}
- name: config
  configMap:
    name: {{ include "headroom.fullname" . }}-quota-service
{{- end -}}

{{/* What the connector's container and the watchdog's have in common; ports come last, so that more can follow. Called with
(list $ resources). */}}
{{- define "headroom.connectorContainer" -}}
{{- $root := index . 0 -}}
env:
  # Who holds the Lease.
  - name: HEADROOM_IDENTITY
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
# One that stands still leaves the Service within 15 s: the scheduler waits for it with each pod.
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 2
resources:
  {{- toYaml (index . 1) | nindent 2 }}
securityContext:
  {{- include "headroom.containerSecurity" $root | nindent 2 }}
ports:
  - {name: http, containerPort: {{ $root.Values.connector.metricsPort }}}
{{- end -}}

{{- define "headroom.gpuResource" -}}
{{- default "nvidia.com/gpu" .Values.connector.settings.gpu_resource -}}
{{- end -}}

{{/* Of a ClusterQueue all but its quotas. */}}
{{- define "headroom.clusterQueueSpec" -}}
namespaceSelector: {{ toJson .Values.kueue.namespaceSelector }}
queueingStrategy: BestEffortFIFO
preemption:
  withinClusterQueue: {{ .Values.kueue.withinClusterQueue }}
{{- if .Values.modes.admissionCheck }}
admissionChecksStrategy:
  admissionChecks:
    - {name: {{ .Values.kueue.admissionCheck }}}
{{- end }}
{{- end -}}

{{/* The port of http://HOST:PORT/PATH. */}}
{{- define "headroom.portOfUrl" -}}
{{- $host := (urlParse .).host -}}
{{- if regexMatch ":[0-9]+$" $host -}}
{{- regexFind "[0-9]+$" $host -}}
{{- else if hasPrefix "https:" . -}}
443
{{- else -}}
80
{{- end -}}
{{- end -}}
