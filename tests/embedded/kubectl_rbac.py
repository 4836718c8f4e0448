"""kubectl commands about roles and rights: RBAC objects, `auth`, `--as`, refusals. They follow those by feature.

"{namespace}" is the namespace of the script. Objects of the whole cluster begin with "day-". A real server needs a
moment until a new binding counts: the first question after one is asked until it does.
"""

from __future__ import annotations

from tests.embedded.kubectl_features import Step

_VERSION = "apiVersion: rbac.authorization.k8s.io/v1"
BAD_ROLE = f"""
{_VERSION}
kind: Role
metadata: {{name: bad}}
rules:
- {{apiGroups: [""], resources: [pods]}}
- {{nonResourceURLs: [/x], verbs: [get]}}
- {{verbs: [get]}}
"""
BAD_BINDING = f"""
{_VERSION}
kind: RoleBinding
metadata: {{name: bad}}
roleRef: {{kind: Nope, apiGroup: example.io}}
subjects:
- {{kind: ServiceAccount, name: A B, apiGroup: example.io}}
- {{kind: User, apiGroup: example.io, name: z}}
- {{kind: Group, name: ""}}
- {{kind: Dog, name: d}}
"""
BAD_CLUSTER_BINDING = f"""
{_VERSION}
kind: ClusterRoleBinding
metadata: {{name: day-bad}}
roleRef: {{kind: Role, name: a%b}}
subjects:
- {{kind: ServiceAccount, name: s}}
"""
OTHER_ROLE = f"""
{_VERSION}
kind: RoleBinding
metadata: {{name: readers}}
roleRef: {{kind: ClusterRole, name: view}}
"""
AGGREGATED = f"""
{_VERSION}
kind: ClusterRole
metadata: {{name: day-all}}
aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{day: part}}}}]}}
---
{_VERSION}
kind: ClusterRole
metadata: {{name: day-pods, labels: {{day: part}}}}
rules:
- {{apiGroups: [""], resources: [pods, pods/log], verbs: [get, list]}}
---
{_VERSION}
kind: ClusterRole
metadata: {{name: day-paths, labels: {{day: part}}}}
rules:
- {{nonResourceURLs: [/day/*], verbs: [get]}}
- {{apiGroups: [""], resources: [nodes], resourceNames: [one], verbs: [get]}}
"""
_ACCESS = """
apiVersion: authorization.k8s.io/v1
kind: {kind}
metadata: {{namespace: "{namespace}"}}
spec:
  user: jane
  groups: [devs]
  resourceAttributes: {{verb: {verb}, resource: pods, namespace: "{namespace}"}}
"""
REVIEW = _ACCESS.format(kind="SubjectAccessReview", verb="list", namespace="{namespace}").replace(
    'metadata: {namespace: "{namespace}"}\n', ""
)
LOCAL_REVIEW = _ACCESS.format(kind="LocalSubjectAccessReview", verb="delete", namespace="{namespace}")
TOKEN_REVIEW = """
apiVersion: authentication.k8s.io/v1
kind: TokenReview
spec: {token: nobodys}
"""
NO_REVIEW = """
apiVersion: authorization.k8s.io/v1
kind: SelfSubjectAccessReview
spec: {}
"""
ROBOT = "--as=system:serviceaccount:{namespace}:robot"

RBAC = (
    Step("the kinds", "api-resources --api-group=rbac.authorization.k8s.io"),
    Step("an account", "create serviceaccount robot"),
    Step("a role", "create role reader --verb=get,list,watch --resource=pods,deployments.apps,pods/log"),
    Step("the role", "get role reader"),
    Step("the role as yaml", "get role reader -o yaml"),
    Step("describe the role", "describe role reader"),
    Step("a role without verbs", "apply -f -", BAD_ROLE, fails=True),
    Step("a binding", "create rolebinding readers --role=reader --serviceaccount={namespace}:robot --user=jane "
         "--group=devs"),
    Step("the bindings", "get rolebindings -o wide"),
    Step("the binding as yaml", "get rolebinding readers -o yaml"),
    Step("describe the binding", "describe rolebinding readers"),
    Step("a binding that is none", "apply -f -", BAD_BINDING, fails=True),
    Step("one for the cluster that is none", "apply -f -", BAD_CLUSTER_BINDING, fails=True),
    Step("another role in a binding", "apply -f -", OTHER_ROLE, fails=True),
    Step("may jane list pods", "auth can-i list pods --as jane", shows="yes"),
    Step("may she delete them", "auth can-i delete pods --as jane", fails=True),
    Step("may she read logs", "auth can-i get pods/log --as jane"),
    Step("elsewhere", "auth can-i list pods --as jane -A", fails=True),
    Step("may a member", "auth can-i get deployments.apps/x --as ann --as-group devs"),
    Step("may the account", f"auth can-i watch pods {ROBOT}"),
    # While one binding is the only reason: of several, a real server names any.
    Step("a review", "create -f - -o yaml", REVIEW),
    Step("a review in a namespace", "create -f - -o yaml", LOCAL_REVIEW),
    Step("all that jane may", "auth can-i --list --as jane"),
    Step("who am I", "auth whoami"),
    Step("who would I be", "auth whoami --as jane --as-group devs --as-uid 7 -o yaml"),
    Step("who would the account be", f"auth whoami {ROBOT}"),
    Step("jane lists pods", "get pods --as jane"),
    Step("jane lists secrets", "get secrets --as jane", fails=True),
    Step("jane gets a secret", "get secret x --as jane", fails=True),
    Step("jane lists nodes", "get nodes --as jane", fails=True),
    Step("jane lists all deployments", "get deployments -A --as jane", fails=True),
    Step("jane gets the namespace", "get namespace {namespace} --as jane", fails=True),
    Step("jane gets a path", "get --raw /metrics --as jane", fails=True),
    Step("jane creates", "create configmap x --from-literal=a=b --as jane", fails=True),
    Step("jane applies by the server", "apply --server-side -f - --as jane",
         "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", fails=True),
    Step("jane deletes", "delete pod x --as jane", fails=True),
    Step("jane scales", "scale deployment/x --replicas=2 --as jane", fails=True),
    Step("anonymous", "get --raw /api/v1/pods --as system:anonymous", fails=True),
    Step("what is open to all", "get --raw /readyz --as system:anonymous"),
    Step("a binding to a role that is not there", "create rolebinding lost --role=lost --user=ann"),
    Step("it grants nothing", "get pods --as ann", fails=True),
    Step("jane becomes an admin here", "create rolebinding admins --clusterrole=admin --user=jane"),
    Step("she may write roles", "auth can-i create roles --as jane", shows="yes"),
    Step("she grants what she has", "create role giver --verb=get --resource=secrets --as jane"),
    Step("she grants what she lacks", "create role taker --verb=get,list --resource=nodes,secrets --as jane",
         fails=True),
    Step("she changes a role", "patch role giver --as jane --type=json "
         '-p [{"op":"add","path":"/rules/0/verbs/0","value":"bind"}]', fails=True),
    Step("she makes an admin", "create rolebinding more --clusterrole=admin --user=ann --as jane"),
    Step("she makes a cluster-admin", "create rolebinding most --clusterrole=cluster-admin --user=ann --as jane",
         fails=True),
    Step("she binds a role that is not there", "create rolebinding none --role=none --user=ann --as jane", fails=True),
    Step("a review of a token", "create -f - -o yaml", TOKEN_REVIEW),
    Step("a review of nothing", "create -f - -o yaml", NO_REVIEW, fails=True),
    Step("a token for a short time", "create token robot --duration=5m", fails=True),
    Step("a token of nobody", "create token nobody", fails=True),
    Step("a token by somebody", "create token robot --as bob", fails=True),
    Step("a role that aggregates", "apply -f -", AGGREGATED),
    Step("it is filled", "wait clusterrole/day-all --for=jsonpath={.rules[2].resources[0]}=pods --timeout=60s"),
    Step("describe it", "describe clusterrole day-all"),
    Step("the role as yaml", "get clusterrole day-all -o jsonpath={.rules}"),
    Step("the role of viewers", "describe clusterrole view"),
    Step("the role of editors", "get clusterrole edit -o yaml"),
    Step("the role of admins", "describe clusterrole admin"),
    Step("the role of schedulers", "describe clusterrole system:kube-scheduler"),
    Step("a binding of the cluster", "create clusterrolebinding day-all --clusterrole=day-all --group=day"),
    Step("the bindings", "get clusterrolebinding day-all cluster-admin system:public-info-viewer -o wide"),
    Step("describe one", "describe clusterrolebinding system:public-info-viewer"),
    Step("may its members get a path", "auth can-i get /day/x --as ann --as-group day", shows="yes"),
    Step("may its members get one node", "auth can-i get nodes/one --as ann --as-group day"),
    Step("may its members get others", "auth can-i get nodes/two --as ann --as-group day", fails=True),
    Step("delete what the cluster has", "delete clusterrolebinding/day-all clusterrole/day-all clusterrole/day-pods "
         "clusterrole/day-paths"),
    Step("delete the bindings", "delete rolebindings --all", sorts=True),
    Step("jane is nobody", "get pods --as jane", fails=True, shows="forbidden"),
    Step("delete the rest", "delete role/reader role/giver serviceaccount/robot"),
)  # fmt: skip
