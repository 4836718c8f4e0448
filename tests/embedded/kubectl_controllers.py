"""More kubectl commands, about controllers and limits: they follow those of `kubectl_features`.

A step whose output depends on a controller comes after one that waits for it.
"""

from __future__ import annotations

from tests.embedded.kubectl_features import Step, told_of

QUOTA = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: room}
spec:
  hard: {pods: "2", requests.cpu: 500m, limits.memory: 1Gi, persistentvolumeclaims: "1", count/deployments.apps: "2"}
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], storageClassName: nobody, resources: {requests: {storage: SIZE}}}
"""
NO_DEPLOYMENTS = r"--for=jsonpath={.status.used.count/deployments\.apps}=0"
RAISED = '{"spec":{"hard":{"pods":"9","requests.cpu":"2"}}}'
SCOPED = """
apiVersion: v1
kind: ResourceQuota
metadata: {name: SCOPED}
spec: {hard: {HARD: "1"}, scopes: [SCOPES]}
"""


def _scoped(name: str, hard: str, scopes: str) -> str:
    return SCOPED.replace("SCOPED", name).replace("HARD", hard).replace("SCOPES", scopes)


def _pod(name: str, resources: str = "{}", more: str = "") -> str:
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec:
  automountServiceAccountToken: false
  nodeSelector: {{topology.kubernetes.io/zone: zone-0}}
  containers: [{{name: main, image: "registry.example/{name}:1", resources: {resources}}}]
{more}
"""


SMALL = "{requests: {cpu: 200m}, limits: {memory: 100Mi}}"
REPLICATED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: made}
spec:
  replicas: 3
  selector: {matchLabels: {app: made}}
  template:
    metadata: {labels: {app: made}}
    spec:
      automountServiceAccountToken: false
      containers:
      - {name: main, image: "registry.example/made:1", resources: {requests: {cpu: 200m}, limits: {memory: 100Mi}}}
"""
REFUSED = "reason=FailedCreate -o custom-columns=REASON:.reason,TYPE:.type,KIND:.involvedObject.kind,SAYS:.message"

QUOTAS = (
    Step("a quota", "apply -f -", QUOTA),
    Step("it is counted", "wait quota/room --for=jsonpath={.status.used.pods}=0 --timeout=180s"),
    Step("all of it", f"wait quota/room {NO_DEPLOYMENTS} --timeout=180s"),
    Step("get it", "get quota"),
    Step("get it as yaml", "get quota room -o yaml"),
    Step("describe it", "describe quota room"),
    Step("a pod that says nothing of its needs", "apply -f -", _pod("lone"), fails=True),
    Step("a pod that is too large", "apply -f -", _pod("lone", SMALL.replace("200m", "2")), fails=True),
    Step("a pod that is too large by two", "apply -f -", _pod("lone", "{limits: {cpu: 1, memory: 2Gi}}"), fails=True),
    Step("a pod with room", "apply -f -", _pod("lone", SMALL)),
    Step("it is counted", "wait quota/room --for=jsonpath={.status.used.pods}=1 --timeout=180s"),
    Step("a dry run of one too many", "apply --dry-run=server -f -",
         _pod("huge", SMALL.replace("200m", "2")), fails=True),
    Step("a deployment that is too large", "apply -f -", REPLICATED),
    Step("it says so", "wait deployment/made --for=condition=ReplicaFailure --timeout=180s"),
    Step("one pod has room", "wait deployment/made --for=jsonpath={.status.readyReplicas}=1 --timeout=180s"),
    Step("get it", "get deployment made"),
    Step("its condition",
         "get deployment made -o jsonpath={.status.conditions[?(@.type=='ReplicaFailure')].message}", sorts=True),
    Step("the condition of its replica set",
         "get rs -l app=made -o jsonpath={.items[0].status.conditions[0].message}", sorts=True),
    Step("its events", f"get events --field-selector {REFUSED}", sorts=True, shows="FailedCreate"),
    Step("describe the full quota", "describe quota room"),
    Step("get the full quota", "get quota"),
    Step("raise it", f"patch quota room -p {RAISED}"),
    Step("now all have room", "rollout status deployment/made --timeout=180s", last=True),
    Step("the condition goes", "wait deployment/made --for=jsonpath={.status.availableReplicas}=3 --timeout=180s"),
    Step("they are counted", "wait quota/room --for=jsonpath={.status.used.pods}=4 --timeout=180s"),
    Step("the raised quota", "get quota room -o yaml"),
    Step("a claim", "apply -f -", CLAIM.replace("SIZE", "1Gi")),
    Step("one too many", "apply -f -", CLAIM.replace("SIZE", "1Gi").replace("name: claim", "name: other"), fails=True),
    Step("a second deployment", "create deployment second --image=registry.example/x:1 --replicas=0"),
    Step("a third one", "create deployment third --image=registry.example/x:1 --replicas=0", fails=True),
    Step("delete a pod", "delete pod lone"),
    Step("its room is free", "wait quota/room --for=jsonpath={.status.used.pods}=3 --timeout=180s"),
    Step("a quota by a command", "create quota best --hard=pods=1 --scopes=BestEffort"),
    Step("it is counted", "wait quota/best --for=jsonpath={.status.used.pods}=0 --timeout=180s"),
    Step("both", "get quota"),
    Step("describe the scope", "describe quota best"),
    Step("describe the namespace's quotas", "describe quota"),
    Step("a scope that does not fit", "apply -f -", _scoped("wrong", "services", "BestEffort"), fails=True),
    Step("scopes that exclude each other", "apply -f -",
         _scoped("wrong", "pods", "BestEffort,NotBestEffort"), fails=True),
    Step("an unknown scope", "apply -f -", _scoped("wrong", "pods", "Nowhere"), fails=True),
    Step("an unknown resource", "apply -f -", _scoped("wrong", "nonsense", ""), fails=True),
    Step("an amount below zero", "apply -f -", QUOTA.replace('pods: "2"', 'pods: "-2"'), fails=True),
    Step("a part of a pod", "apply -f -", QUOTA.replace('pods: "2"', 'pods: "0.5"'), fails=True),
    Step("scopes stay", 'patch quota best --type=merge -p {"spec":{"scopes":["NotBestEffort"]}}', fails=True),
    Step("delete them", "delete quota room best"),
    Step("delete the rest", "delete deployment/made deployment/second pvc/claim"),
    Step("pods go with their owners", "wait pods --all --for=delete --timeout=180s", races=True),
)  # fmt: skip

LIMIT_RANGE = """
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec:
  limits:
  - type: Container
    min: {cpu: 50m}
    max: {cpu: "1", memory: 1Gi}
    default: {cpu: 400m}
    defaultRequest: {cpu: 200m}
    maxLimitRequestRatio: {cpu: 4}
  - {type: Pod, max: {cpu: 1500m}}
  - {type: PersistentVolumeClaim, min: {storage: 1Gi}, max: {storage: 2Gi}}
"""
TWO = """
  - {name: second, image: "registry.example/lone:1", resources: {limits: {cpu: "1"}}}
"""

LIMITS = (
    Step("a limit range", "apply -f -", LIMIT_RANGE),
    Step("get it", "get limits"),
    Step("get it as yaml", "get limits bounds -o yaml"),
    Step("describe it", "describe limits bounds", sorts=True),  # kubectl shows resources as they come
    Step("a pod that says nothing", "apply -f -", _pod("lone")),
    Step("wait for it", "wait pod/lone --for=condition=Ready --timeout=180s"),
    Step("it has what is usual", "get pod lone -o yaml"),
    Step("describe it", "describe pod lone --show-events=false"),
    Step("a container that is too small", "apply -f -", _pod("huge", "{requests: {cpu: 10m}}"), fails=True),
    Step("one that is too large", "apply -f -", _pod("huge", "{limits: {cpu: 3, memory: 2Gi}}"), fails=True),
    Step("a limit far above the request", "apply -f -", _pod("huge", "{requests: {cpu: 100m}, limits: {cpu: 900m}}"),
         fails=True),
    Step("two containers that are too large together", "apply -f -",
         _pod("huge", "{limits: {cpu: 800m}}", TWO.strip("\n")).replace("containers: [{", "containers:\n  - {")
         .replace("800m}}}]", "800m}}}"), fails=True),
    Step("a claim that is too large", "apply -f -", CLAIM.replace("SIZE", "3Gi"), fails=True),
    Step("a claim that is too small", "apply -f -", CLAIM.replace("SIZE", "1Mi"), fails=True),
    Step("a claim that fits", "apply -f -", CLAIM.replace("SIZE", "1Gi")),
    Step("a default above the maximum", "apply -f -", LIMIT_RANGE.replace("cpu: 400m", "cpu: 2"), fails=True),
    Step("a minimum above the maximum", "apply -f -", LIMIT_RANGE.replace("cpu: 50m", "cpu: 5"), fails=True),
    Step("the same type twice", "apply -f -", LIMIT_RANGE.replace("type: Pod,", "type: Container,"), fails=True),
    Step("an unknown type", "apply -f -", LIMIT_RANGE.replace("type: Pod,", "type: Thing,"), fails=True),
    Step("a default of pods", "apply -f -", LIMIT_RANGE.replace("type: Pod,", "type: Pod, default: {cpu: 1},"),
         fails=True),
    Step("delete it", "delete limits bounds"),
    Step("delete the rest", "delete pod/lone pvc/claim"),
)  # fmt: skip

TOLERANT = "{key: busy, operator: Exists, effect: NoExecute}"
EVICTED = "reason=TaintManagerEviction -o custom-columns=TYPE:.type,ABOUT:.involvedObject,SAYS:.message,BY:.source"

TAINTS = (
    Step("a pod", "apply -f -", _pod("lone")),
    Step("a pod that tolerates a taint", "apply -f -", _pod("made", more=f"  tolerations: [{TOLERANT}]")),
    Step("a pod that does so for two seconds", "apply -f -",
         _pod("huge", more=f"  tolerations: [{TOLERANT.replace('}', ', tolerationSeconds: 2}')}]")),
    Step("wait for them", "wait pod lone made huge --for=condition=Ready --timeout=180s"),
    Step("taint their node", "taint node {node} busy=yes:NoExecute"),
    Step("the first goes", "wait pod/lone --for=delete --timeout=180s", races=True),
    Step("the one that stays for a while goes", "wait pod/huge --for=delete --timeout=180s", races=True),
    Step("the tolerant one stays", "get pods"),
    Step("its tolerations", "get pod made -o jsonpath={.spec.tolerations}"),
    Step("the events", f"get events --field-selector {EVICTED}", sorts=True, shows="huge"),
    Step("the node", "get node {node} -o jsonpath={.spec.taints[*].key}{.spec.taints[*].effect}"),
    Step("a pod that cannot go there", "apply -f -", _pod("once")),
    Step("it waits", "wait pod/once --for=condition=PodScheduled=False --timeout=180s"),
    Step("why", "get pod once -o jsonpath={.status.conditions[0].message}"),
    Step("a toleration of seconds without NoExecute", "apply -f -",
         _pod("db", more="  tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 3}]"),
         fails=True),
    Step("another value of the taint", "taint node {node} busy=no:NoExecute", fails=True),
    Step("by force", "taint node {node} busy=no:NoExecute --overwrite"),
    Step("untaint", "taint node {node} busy-"),
    Step("now it can", "wait pod/once --for=condition=Ready --timeout=180s"),
    Step("delete them", "delete pod once made"),
)  # fmt: skip


def _cron(name: str, spec: str, policy: str = "Never") -> str:
    return f"""
apiVersion: batch/v1
kind: CronJob
metadata: {{name: {name}}}
spec:
  {spec}
  jobTemplate:
    metadata: {{labels: {{made-by: {name}}}, annotations: {{note: hello}}}}
    spec:
      template:
        spec:
          automountServiceAccountToken: false
          restartPolicy: {policy}
          containers: [{{name: main, image: "registry.example/report:1"}}]
"""


NIGHTLY = _cron("nightly", "schedule: 30 2 * * mon-fri\n  timeZone: Europe/Paris")
# It is suspended as soon as it has run: a minute before its next time comes.
OFTEN = _cron("often", 'schedule: "* * * * *"\n  concurrencyPolicy: Forbid\n  startingDeadlineSeconds: 200')

CRON = (
    Step("a cron job", "apply -f -", NIGHTLY),
    Step("get it", "get cronjobs"),
    Step("get it wide, by its short name", "get cj -o wide"),
    Step("get it as yaml", "get cronjob nightly -o yaml"),
    Step("describe it", "describe cronjob nightly"),
    Step("suspend it", 'patch cronjob nightly -p {"spec":{"suspend":true}}'),
    Step("it is suspended", "get cronjob nightly"),
    Step("a cron job by a command", "create cronjob hourly --image=registry.example/h:1 --schedule=@yearly"),
    Step("get it as yaml", "get cronjob hourly -o yaml"),
    Step("apply, changed", "apply -f -", NIGHTLY.replace("30 2", "45 3")),
    Step("its generation", "get cronjob nightly -o jsonpath={.metadata.generation}{.spec.schedule}{.spec.suspend}"),
    Step("a job of it, now", "create job once --from=cronjob/nightly"),
    Step("wait for it", "wait job/once --for=condition=Complete --timeout=180s"),
    Step("the job as yaml", "get job once -o yaml"),
    Step("the cron job has seen it", "wait cronjob/nightly --for=jsonpath={.status.lastSuccessfulTime} --timeout=180s"),
    Step("describe the job", "describe job once", shows="Job completed"),
    Step("describe the cron job", "describe cronjob nightly --show-events=false"),
    Step("one that runs soon", "apply -f -", OFTEN),
    Step("it runs", "wait cronjob/often --for=jsonpath={.status.lastScheduleTime} --timeout=180s"),
    Step("once is enough", 'patch cronjob often -p {"spec":{"suspend":true}}'),
    Step("it ends well", "wait cronjob/often --for=jsonpath={.status.lastSuccessfulTime} --timeout=180s"),
    told_of("SawCompletedJob", "often"),
    Step("its job", "get jobs -l made-by=often"),
    Step("its job as yaml", "get jobs -l made-by=often -o yaml"),
    Step("the pod of its job", "get pods -l batch.kubernetes.io/job-name!=once"),
    Step("get it", "get cronjob often -o yaml"),
    Step("describe it", "describe cronjob often"),
    Step("its events", "get events --field-selector involvedObject.kind=CronJob,involvedObject.name=often"),
    Step("no schedule", "apply -f -", _cron("wrong", "suspend: true"), fails=True),
    Step("too few fields", "apply -f -", _cron("wrong", 'schedule: "* * *"'), fails=True),
    Step("a minute that is none", "apply -f -", _cron("wrong", "schedule: 61 * * * *"), fails=True),
    Step("a range from high to low", "apply -f -", _cron("wrong", "schedule: 9-3 * * * *"), fails=True),
    Step("a word that is no number", "apply -f -", _cron("wrong", "schedule: x * * * *"), fails=True),
    Step("an unknown descriptor", "apply -f -", _cron("wrong", 'schedule: "@often"'), fails=True),
    Step("a duration that is none", "apply -f -", _cron("wrong", 'schedule: "@every day"'), fails=True),
    Step("a zone in the schedule", "apply -f -", _cron("wrong", "schedule: TZ=UTC 1 * * * *"), fails=True),
    Step("a zone that is none", "apply -f -", NIGHTLY.replace("Europe/Paris", "Europe/Atlantis"), fails=True),
    Step("a local zone", "apply -f -", NIGHTLY.replace("Europe/Paris", "Local"), fails=True),
    Step("an unknown policy", "apply -f -", OFTEN.replace("Forbid", "Sometimes"), fails=True),
    Step("limits below zero", "apply -f -", OFTEN.replace("Seconds: 200", "Seconds: -1\n  failedJobsHistoryLimit: -2"),
         fails=True),
    Step("pods that never end", "apply -f -", _cron("wrong", "schedule: 1 * * * *", "Always"), fails=True),
    Step("a long name", "apply -f -", _cron("a" * 53, "schedule: 1 * * * *"), fails=True),
    Step("delete them", "delete cronjob nightly hourly often"),
    Step("their jobs go", "wait jobs --all --for=delete --timeout=180s", races=True),
    Step("pods go with their owners", "wait pods --all --for=delete --timeout=180s", races=True),
    Step("nothing is left", "get cronjobs,jobs,pods", shows="No resources found"),
)  # fmt: skip

AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: second}
  minReplicas: 2
  maxReplicas: 5
  metrics:
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 100Mi}}}
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}
  - {type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 1k}}}
  behavior: {scaleDown: {stabilizationWindowSeconds: 60}}
"""

# A deployment without pods is not scaled, so the status has nothing to compare.
SCALERS = (
    Step("a deployment", "create deployment second --image=registry.example/x:1 --replicas=0"),
    Step("an autoscaler by a command", "autoscale deployment second --min=1 --max=3 --cpu=50%"),
    Step("get it", "get hpa second"),
    Step("its spec", "get hpa second -o jsonpath={.apiVersion}{.spec}"),
    Step("one with several metrics", "apply -f -", AUTOSCALER),
    Step("get them", "get hpa"),
    Step("get it wide", "get hpa scaler -o wide"),
    Step("its spec", "get hpa scaler -o jsonpath={.spec}"),
    Step("patch it", 'patch hpa scaler --type=merge -p {"spec":{"maxReplicas":7}}'),
    Step("without metrics", "apply --dry-run=server -o jsonpath={.spec} -f -",
         "\n".join(AUTOSCALER.replace("name: scaler", "name: plain").splitlines()[:8])),
    Step("fewer at most than at least", "apply -f -",
         AUTOSCALER.replace("maxReplicas: 5", "maxReplicas: 1"), fails=True),
    Step("none at all", "apply -f -", AUTOSCALER.replace("maxReplicas: 5", "maxReplicas: 0"), fails=True),
    Step("no target", "apply -f -", AUTOSCALER.replace("name: second", 'name: ""'), fails=True),
    Step("an unknown metric", "apply -f -", AUTOSCALER.replace("type: Pods", "type: Moon"), fails=True),
    Step("a metric without its source", "apply -f -", AUTOSCALER.replace("type: Pods", "type: Object"), fails=True),
    Step("delete them", "delete hpa/scaler hpa/second deployment/second"),
)  # fmt: skip

CLASS = """
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: public, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: example.io/controller, parameters: {apiGroup: example.io, kind: Setup, name: main}}
"""
INGRESS = """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front}
spec:
  tls: [{hosts: [a.example], secretName: certificate}]
  rules:
  - host: a.example
    http:
      paths:
      - {path: /x, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
      - {path: /y, pathType: Exact, backend: {service: {name: web, port: {name: http}}}}
  - host: "*.b.example"
  - host: c.example
  - host: d.example
"""
ENDPOINTS = """
apiVersion: v1
kind: Endpoints
metadata: {name: own}
subsets:
- {addresses: [{ip: 10.1.0.1}, {ip: 10.1.0.2}], ports: [{name: a, port: 80}, {name: b, port: 90}]}
"""
SLICE = """
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: own, labels: {kubernetes.io/service-name: own}}
addressType: IPv4
ports: [{port: 80}]
endpoints:
- {addresses: [10.1.0.1], conditions: {ready: true}, nodeName: day-0}
- {addresses: [10.1.0.2]}
- {addresses: [10.1.0.3]}
- {addresses: [10.1.0.4]}
"""

NETWORK = (
    Step("an ingress class", "apply -f -", CLASS),
    Step("get it", "get ingressclass public"),
    Step("describe it", "describe ingressclass public"),
    Step("a controller that is none", "apply -f -",
         CLASS.replace("example.io/controller", "controller").replace("public", "wrong"), fails=True),
    Step("the controller stays", 'patch ingressclass public -p {"spec":{"controller":"a.io/b"}}', fails=True),
    Step("an ingress", "apply -f -", INGRESS),
    Step("get it", "get ing"),
    Step("get it as yaml", "get ingress front -o yaml"),
    Step("describe it", "describe ingress front"),
    Step("an ingress by a command", "create ingress made --default-backend=web:80 --class=other"),
    Step("get both", "get ingress"),
    Step("it as yaml", "get ingress made -o yaml"),
    Step("no type of a path", "apply -f -", INGRESS.replace("pathType: Exact, ", ""), fails=True),
    Step("an unknown type of a path", "apply -f -", INGRESS.replace("Exact", "About"), fails=True),
    Step("a path without a slash", "apply -f -", INGRESS.replace("/x", "x"), fails=True),
    Step("an address for a host", "apply -f -", INGRESS.replace("c.example", "10.0.0.1"), fails=True),
    Step("no port", "apply -f -", INGRESS.replace("number: 80", ""), fails=True),
    Step("no rules", "apply -f -", INGRESS.split("spec:")[0] + "spec: {}\n", fails=True),
    Step("endpoints", "apply -f -", ENDPOINTS),
    Step("get them", "get endpoints own"),
    Step("get them as yaml", "get ep own -o yaml"),
    Step("describe them", "describe endpoints own"),
    Step("an address that is none", "apply -f -", ENDPOINTS.replace("10.1.0.2", "10.1.0.300"), fails=True),
    Step("a port that is none", "apply -f -", ENDPOINTS.replace("port: 90", "port: 99999"), fails=True),
    Step("an endpoint slice", "apply -f -", SLICE),
    Step("get it", "get endpointslice own"),
    Step("get it as yaml", "get endpointslice own -o yaml"),
    Step("describe it", "describe endpointslice own"),
    Step("an unknown type of addresses", "apply -f -", SLICE.replace("IPv4", "IPv5"), fails=True),
    Step("the type stays", "patch endpointslice own --type=merge -p {\"addressType\":\"FQDN\"}", fails=True),
    Step("an endpoint without an address", "apply -f -", SLICE.replace("[10.1.0.3]", "[]"), fails=True),
    Step("an address of a slice that is none", "apply -f -", SLICE.replace("[10.1.0.3]", "[nonsense]"), fails=True),
    Step("the address of oneself", "apply -f -", SLICE.replace("[10.1.0.3]", "[127.0.0.1]"), fails=True),
    Step("an address of the other kind", "apply -f -", SLICE.replace("[10.1.0.3]", "['2001:db8::1']"), fails=True),
    Step("delete them", "delete ingress/front ingress/made endpointslice/own endpoints/own ingressclass/public"),
)  # fmt: skip

CONTROLLERS = (*QUOTAS, *LIMITS, *TAINTS, *CRON, *SCALERS, *NETWORK)
