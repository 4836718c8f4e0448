"""What the kubectl script applies."""

from __future__ import annotations

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      automountServiceAccountToken: false
      containers:
      - name: web
        image: registry.example/web:1
        ports: [{containerPort: 80}]
        env: [{name: COLOUR, value: red}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 3, selector: {matchLabels: {app: web}}}
"""
CHANGED = WEB.replace("web:1", "web:2").replace("value: red", "value: blue")
BROKEN = WEB.replace("replicas: 3", "replicsa: 3")
LONE = """
apiVersion: v1
kind: Pod
metadata: {name: lone, labels: {app: lone}}
spec:
  automountServiceAccountToken: false
  nodeSelector: {topology.kubernetes.io/zone: zone-1}
  containers: [{name: main, image: "registry.example/lone:1", resources: {requests: {cpu: 250m}}}]
"""
IMPOSSIBLE = LONE.replace("lone", "huge").replace("250m", "100").replace("zone-1", "zone-2")
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec:
      automountServiceAccountToken: false
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/once:1"}]
"""
SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      automountServiceAccountToken: false
      containers: [{name: db, image: "registry.example/db:1"}]
"""
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1}
              colour: {type: string, default: red, enum: [red, blue]}
          status: {type: object, properties: {ready: {type: boolean}}}
"""
WIDGET = "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: one}\nspec: {size: 3}\n"
WRONG_WIDGET = WIDGET.replace("size: 3", "size: 0")

LIST = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: one}
  data: {a: b}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: two}
"""
