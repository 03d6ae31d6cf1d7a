{{/* The name of the application. */}}
{{- define "seraphim.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The prefix of the names of all objects. Pods and labels add up to 23 characters, and labels have at most 63. */}}
{{- define "seraphim.fullname" -}}
{{- $name := "" -}}
{{- if .Values.fullnameOverride -}}
{{- $name = .Values.fullnameOverride -}}
{{- else if contains (include "seraphim.name" .) .Release.Name -}}
{{- $name = .Release.Name -}}
{{- else -}}
{{- $name = printf "%s-%s" .Release.Name (include "seraphim.name" .) -}}
{{- end -}}
{{- $name = $name | trunc 40 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "the objects would be named %q, but names of services start with a lower-case letter and have only lower-case letters, digits and hyphens: choose another name of the release, or set fullnameOverride" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* The labels that choose all pods of the release. Argument: the root. */}}
{{- define "seraphim.releaseSelector" -}}
app.kubernetes.io/name: {{ include "seraphim.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The labels that choose the pods of a role. Arguments: root, role. */}}
{{- define "seraphim.selector" -}}
{{ include "seraphim.releaseSelector" .root }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{/* The labels of an object that belongs to no role. Argument: the root. */}}
{{- define "seraphim.commonLabels" -}}
{{ include "seraphim.releaseSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | quote }}
{{- end -}}

{{/* The labels of an object of a role. Arguments: root, role. */}}
{{- define "seraphim.labels" -}}
{{ include "seraphim.commonLabels" .root }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "seraphim.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "seraphim.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "seraphim.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* The name of the Secret with the token. */}}
{{- define "seraphim.tokenSecret" -}}
{{- if and .Values.token.existingSecret .Values.token.value -}}
{{- fail "token.existingSecret and token.value exclude each other: set one of them" -}}
{{- end -}}
{{ default (printf "%s-token" (include "seraphim.fullname" .)) .Values.token.existingSecret }}
{{- end -}}

{{/* The HTTP port of a role. */}}
{{- define "seraphim.httpPort" -}}
{{ ternary "7071" "7073" (eq . "master") }}
{{- end -}}

{{/* The port of frames of a role; empty for workers, which have none. */}}
{{- define "seraphim.framesPort" -}}
{{ get (dict "master" "7070" "server" "7072") . }}
{{- end -}}

{{/* The arguments that servers and workers share. Argument: the root. */}}
{{- define "seraphim.memberArgs" -}}
- --master={{ include "seraphim.fullname" . }}-master:7070
- --http=$(POD_IP):7073
- --name=$(POD_NAME)
# A new master may need minutes to get a node and its volume.
- --lost-limit=300
{{- end -}}

{{/* The headless service of a role. It gives the pods their names. Arguments: root, role. */}}
{{- define "seraphim.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "seraphim.fullname" .root }}-{{ .role }}
  labels:
    {{- include "seraphim.labels" . | nindent 4 }}
spec:
  clusterIP: None
  # Members look for the master before it is ready, and try again.
  publishNotReadyAddresses: true
  selector:
    {{- include "seraphim.selector" . | nindent 4 }}
  ports:
    {{- with include "seraphim.framesPort" .role }}
    - name: frames
      port: {{ . }}
      targetPort: frames
    {{- end }}
    - name: http
      port: {{ include "seraphim.httpPort" .role }}
      targetPort: http
{{- end -}}

{{/* The disruption budget of a role. Arguments: root, role. */}}
{{- define "seraphim.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "seraphim.fullname" .root }}-{{ .role }}
  labels:
    {{- include "seraphim.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  # A pod that does not become ready does not block the drain of its node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "seraphim.selector" . | nindent 6 }}
{{- end -}}

{{/* A claim of a StatefulSet. Its labels never change, because a StatefulSet refuses that. Arguments: root, role, name, settings. */}}
{{- define "seraphim.claim" -}}
metadata:
  name: {{ .name }}
  labels:
    {{- include "seraphim.selector" . | nindent 4 }}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .settings.storageClassName }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources:
    requests:
      storage: {{ .settings.size | quote }}
{{- end -}}

{{/*
The pods of a role, on the level "restricted" of the Pod Security Standards. Arguments:
root, role; args: YAML of the arguments of the role; startupSeconds;
volume: the name of the volume for /var/lib/seraphim, or empty; isTemporary: whether that volume ends with the pod.
*/}}
{{- define "seraphim.pod" -}}
{{- $values := .root.Values -}}
{{- $role := index $values .role -}}
{{- $http := include "seraphim.httpPort" .role -}}
{{- range $name, $_ := $role.podLabels -}}
{{- if hasPrefix "app.kubernetes.io/" $name -}}
{{- fail (printf "%s.podLabels has %s, but the labels app.kubernetes.io/ are those of the chart: choose another label" $.role $name) -}}
{{- end -}}
{{- end -}}
{{- range $values.volumes -}}
{{- if has .name (list "token" "tmp" "state" "log") -}}
{{- fail (printf "volumes has a volume %q, but token, tmp, state and log are those of the chart: choose another name" .name) -}}
{{- end -}}
{{- end -}}
metadata:
  labels:
    {{- include "seraphim.selector" . | nindent 4 }}
    app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
    app.kubernetes.io/managed-by: {{ .root.Release.Service }}
    {{- with $role.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- $annotations := dict }}
  {{- if $values.metrics.annotations }}
  {{- $_ := set $annotations "prometheus.io/scrape" "true" }}
  {{- $_ := set $annotations "prometheus.io/port" $http }}
  {{- $_ := set $annotations "prometheus.io/path" "/metrics" }}
  {{- end }}
  {{- if $values.token.value }}
  {{- $_ := set $annotations "checksum/token" (sha256sum $values.token.value) }}
  {{- end }}
  {{- with merge (dict) (default (dict) $role.podAnnotations) $annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "seraphim.serviceAccountName" .root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ int $values.terminationGracePeriodSeconds }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: seraphim
      image: {{ include "seraphim.image" .root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        - {{ .role }}
        {{- .args | nindent 8 }}
        - --token-file=/etc/seraphim/token
        - --log={{ $values.log.level }}
        - --log-format={{ $values.log.format }}
      env:
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: HOME
          value: /tmp
        {{- with $values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        {{- with include "seraphim.framesPort" .role }}
        - name: frames
          containerPort: {{ . }}
        {{- end }}
        - name: http
          containerPort: {{ $http }}
      startupProbe:
        httpGet:
          path: /health
          port: http
        periodSeconds: 1
        failureThreshold: {{ int .startupSeconds }}
      # A lane may take 2 s to answer; then the answer is 503.
      readinessProbe:
        httpGet:
          path: /health
          port: http
        periodSeconds: 5
        timeoutSeconds: 3
      # A process that is busy must not be ended, so this does not ask /health.
      livenessProbe:
        tcpSocket:
          port: http
        periodSeconds: 10
        failureThreshold: 6
      {{- with $role.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationMessagePolicy: FallbackToLogsOnError
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: token
          mountPath: /etc/seraphim
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- with .volume }}
        - name: {{ . }}
          mountPath: /var/lib/seraphim
        {{- end }}
        {{- with $values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: token
      secret:
        secretName: {{ include "seraphim.tokenSecret" .root }}
        # 0440 in octal digits: the group of the pod reads it.
        defaultMode: 288
        items:
          - key: token
            path: token
    - name: tmp
      emptyDir:
        sizeLimit: {{ $values.tmp.sizeLimit | quote }}
    {{- if and .volume .isTemporary }}
    - name: {{ .volume }}
      emptyDir: {}
    {{- end }}
    {{- with $values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $role.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $role.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $role.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $role.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- $selector := dict "matchLabels" (include "seraphim.selector" $ | fromYaml) }}
    {{- range . }}
    - {{ toYaml (hasKey . "labelSelector" | ternary . (merge (dict "labelSelector" $selector) .)) | nindent 6 | trim }}
    {{- end }}
  {{- end }}
  {{- with $role.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
{{- end -}}
