"""kubectl commands about devices: classes, slices, claims and templates, and what is refused."""

from __future__ import annotations

from tests.embedded.kubectl_features import Step, told_of

CLASS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.example.com}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
"""
SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: rack-gpu}
spec:
  driver: gpu.example.com
  pool: {name: rack, generation: 1, resourceSliceCount: 1}
  allNodes: true
  devices:
  - name: gpu-0
    attributes: {model: {string: a100}, driverVersion: {version: 1.2.0}, index: {int: 0}, ecc: {bool: true}}
    capacity: {memory: {value: 80Gi}}
"""
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "a100"'}}]
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec:
  spec:
    devices:
      requests:
      - {name: gpu, firstAvailable: [{name: big, deviceClassName: gpu.example.com}]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  automountServiceAccountToken: false
  resourceClaims: [{name: gpu, resourceClaimName: shared}]
  containers: [{name: main, image: "registry.example/train:1", resources: {claims: [{name: gpu}]}}]
"""
OWN = """
apiVersion: v1
kind: Pod
metadata: {name: waiter}
spec:
  automountServiceAccountToken: false
  resourceClaims: [{name: gpu, resourceClaimTemplateName: nowhere}]
  containers: [{name: main, image: "registry.example/train:1", resources: {claims: [{name: gpu}]}}]
"""


def claim(*requests: str, more: str = "") -> str:
    listed = "".join(f"\n    - {request}" for request in requests)
    head = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: wrong}\nspec:\n  devices:\n"
    return f"{head}    requests:{listed or ' []'}\n{more}"


def refused(says: str, document: str) -> Step:
    return Step(says, "apply -f -", document, fails=True)


EMPTY = '{"status":{"allocation":{"devices":{"results":[]}}}}'
EXACTLY = "{name: a, exactly: {deviceClassName: gpu.example.com}}"
DEVICES = (
    Step("a class", "apply -f -", CLASS),
    Step("a slice", "apply -f -", SLICE),
    Step("a claim", "apply -f -", CLAIM),
    Step("a template", "apply -f -", TEMPLATE),
    Step("get them", "get deviceclasses,resourceslices,resourceclaims,resourceclaimtemplates"),
    Step("get the claim as yaml", "get resourceclaim shared -o yaml"),
    Step("get the template as yaml", "get resourceclaimtemplate gpu -o yaml"),
    Step("describe the claim", "describe resourceclaim shared"),
    refused("a request of nothing", claim("{name: a}")),
    refused("a request without a class", claim("{name: a, exactly: {count: 1}}")),
    refused("a request without a name", claim("{exactly: {deviceClassName: gpu.example.com}}")),
    refused("a count of all", claim("{name: a, exactly: {deviceClassName: g, allocationMode: All, count: 2}}")),
    refused("a negative count", claim("{name: a, exactly: {deviceClassName: g, count: -1}}")),
    refused("a mode that is none", claim("{name: a, exactly: {deviceClassName: g, allocationMode: Some}}")),
    refused("a name twice", claim(EXACTLY, EXACTLY)),
    refused("a constraint of nothing", claim(EXACTLY, more="    constraints: [{requests: [a]}]")),
    refused("a constraint on nobody", claim(EXACTLY, more="    constraints: [{requests: [b], matchAttribute: a.b/c}]")),
    refused("an attribute without a domain", claim(EXACTLY, more="    constraints: [{matchAttribute: model}]")),
    refused("a slice of nobody", SLICE.replace("  allNodes: true\n", "").replace("rack-gpu", "wrong")),
    refused("a slice without a count", SLICE.replace(", resourceSliceCount: 1", "").replace("rack-gpu", "wrong")),
    refused("a version that is none", SLICE.replace("1.2.0", "one").replace("rack-gpu", "wrong")),
    refused("a device without a name", SLICE.replace("name: gpu-0", "name: GPU_0").replace("rack-gpu", "wrong")),
    refused("an attribute that is no identifier", SLICE.replace("index:", "in-dex:").replace("rack-gpu", "wrong")),
    refused("two values at once", SLICE.replace("{int: 0}", "{int: 0, bool: true}").replace("rack-gpu", "wrong")),
    refused("a driver that changes", SLICE.replace("driver: gpu.example.com", "driver: other.example.com")),
    refused("another spec of a claim", CLAIM.replace("name: gpu\n", "name: other\n")),
    refused("another spec of a template", TEMPLATE.replace("name: big", "name: small")),
    Step("a pod that uses the claim", "apply -f -", POD),
    Step("wait until it is ready", "wait pod/trainer --for=condition=Ready --timeout=180s"),
    Step("the claim is in use", "get resourceclaims", shows="allocated,reserved"),
    Step(
        "another allocation",
        f"patch resourceclaim shared --subresource=status --type=merge -p {EMPTY}",
        fails=True,
    ),
    Step("delete the pod", "delete pod trainer"),
    Step("the claim is free again", "get resourceclaims", shows="pending"),
    Step("a pod whose template does not exist", "apply -f -", OWN),
    told_of("FailedResourceClaimCreation", "waiter"),
    Step("get it", "get pod waiter"),
    Step("delete it", "delete pod waiter"),
    Step("delete the claim", "delete resourceclaim shared"),
    Step("delete the rest", "delete deviceclass/gpu.example.com resourceslice/rack-gpu resourceclaimtemplate/gpu"),
)
