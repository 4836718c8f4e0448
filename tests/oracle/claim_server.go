package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/resource"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
)

// Call is one request that the scheduler sends to the API server.
type Call struct {
	Verb        string          `json:"verb"`
	Resource    string          `json:"resource"`
	Subresource string          `json:"subresource,omitempty"`
	Namespace   string          `json:"namespace"`
	Name        string          `json:"name,omitempty"`
	Object      any             `json:"object,omitempty"`
	Patch       json.RawMessage `json:"patch,omitempty"`
	Error       string          `json:"error,omitempty"`
}

// claimServer answers requests about resource claims as an API server does: with
// its strategies of validation, and with resource versions. What it stores
// reaches the scheduler's informer before the answer does. A driver prepares
// devices the moment their claim is reserved.
type claimServer struct {
	claims   map[string]*resourcev1.ResourceClaim
	informer *still
	spec     rest.RESTCreateUpdateStrategy
	status   rest.RESTUpdateStrategy
	version  int
	created  int
	dry      bool // answer, and store nothing
	calls    []Call
}

var claimResource = resourcev1.Resource("resourceclaims")

// newClaimServer makes a server that knows the namespaces: admin access is for some of them. It asks a client of its
// own, because a fake client that is answering cannot be asked.
func newClaimServer(namespaces []*v1.Namespace, informer *still, claims []*resourcev1.ResourceClaim) *claimServer {
	var held []runtime.Object
	for _, namespace := range namespaces {
		held = append(held, namespace)
	}
	strategy := resourceclaim.NewStrategy(fake.NewClientset(held...).CoreV1().Namespaces(), authorizerfactory.NewAlwaysAllowAuthorizer())
	s := &claimServer{
		claims: map[string]*resourcev1.ResourceClaim{}, informer: informer, version: 1,
		spec: strategy, status: resourceclaim.NewStatusStrategy(strategy),
	}
	for _, c := range claims {
		s.claims[c.Namespace+"/"+c.Name] = c
	}
	return s
}

// react answers one request; the fake client asks it before anything else.
func (s *claimServer) react(action clienttesting.Action) (bool, runtime.Object, error) {
	call := Call{
		Verb: action.GetVerb(), Resource: action.GetResource().Resource, Subresource: action.GetSubresource(),
		Namespace: action.GetNamespace(),
	}
	var answer runtime.Object
	var err error
	switch a := action.(type) {
	case clienttesting.PatchAction: // before the others: its method set includes none of theirs
		call.Name, call.Patch = a.GetName(), compact(a.GetPatch())
		if call.Resource == "pods" {
			answer = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: call.Namespace, Name: call.Name}}
			break
		}
		answer, err = s.patch(call, a.GetPatch())
	case clienttesting.UpdateAction:
		claim, ok := a.GetObject().(*resourcev1.ResourceClaim)
		if !ok {
			return false, nil, nil
		}
		if call.Verb == "create" {
			call.Object = withoutVersions(claim)
			answer, err = s.create(claim)
			break
		}
		call.Name = claim.Name
		answer, err = s.update(claim, call.Subresource)
		if call.Subresource == "status" {
			call.Object = map[string]any{"status": claim.Status}
		} else if err == nil {
			finalizers := append([]string{}, claim.Finalizers...)
			call.Object = map[string]any{"metadata": map[string]any{"finalizers": finalizers}}
		}
	case clienttesting.DeleteAction:
		call.Name = a.GetName()
		answer, err = s.remove(call)
	case clienttesting.GetAction:
		call.Name = a.GetName()
		answer, err = s.get(call.Namespace, call.Name)
	default:
		return false, nil, nil
	}
	if err != nil {
		call.Error = withoutDumps(err.Error())
	}
	s.calls = append(s.calls, frozen(call))
	return true, answer, err
}

func (s *claimServer) get(namespace, name string) (*resourcev1.ResourceClaim, error) {
	found, ok := s.claims[namespace+"/"+name]
	if !ok {
		return nil, apierrors.NewNotFound(claimResource, name)
	}
	return found.DeepCopy(), nil
}

func (s *claimServer) create(sent *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	claim := sent.DeepCopy()
	s.created++
	if claim.Name == "" {
		claim.Name = fmt.Sprintf("%snew%d", claim.GenerateName, s.created)
	}
	claim.UID = types.UID(fmt.Sprintf("uid-new%d", s.created))
	if err := admit("resource.k8s.io", "v1", "resourceclaims", claim.Namespace, s.spec, true, claim, &resource.ResourceClaim{}); err != nil {
		return nil, err
	}
	return s.store(nil, claim), nil
}

func (s *claimServer) update(sent *resourcev1.ResourceClaim, subresource string) (*resourcev1.ResourceClaim, error) {
	old, err := s.get(sent.Namespace, sent.Name)
	if err != nil {
		return nil, err
	}
	if sent.ResourceVersion != "" && sent.ResourceVersion != old.ResourceVersion {
		stale := errors.New("the object has been modified; please apply your changes to the latest version and try again")
		return nil, apierrors.NewConflict(claimResource, sent.Name, stale)
	}
	var strategy rest.RESTUpdateStrategy = s.spec
	if subresource == "status" {
		strategy = s.status
	}
	before, after, stored := &resource.ResourceClaim{}, &resource.ResourceClaim{}, &resourcev1.ResourceClaim{}
	if err := errors.Join(legacyscheme.Scheme.Convert(old, before, nil), legacyscheme.Scheme.Convert(sent.DeepCopy(), after, nil)); err != nil {
		return nil, err
	}
	if err := rest.BeforeUpdate(strategy, requestContext("update", subresource, sent.Namespace), after, before); err != nil {
		return nil, err
	}
	if err := legacyscheme.Scheme.Convert(after, stored, nil); err != nil {
		return nil, err
	}
	answer := s.store(old, stored)
	s.prepareDevices(old, answer)
	return answer, nil
}

func (s *claimServer) patch(call Call, patch []byte) (*resourcev1.ResourceClaim, error) {
	old, err := s.get(call.Namespace, call.Name)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	if text, err = strategicpatch.StrategicMergePatch(text, patch, resourcev1.ResourceClaim{}); err != nil {
		return nil, err
	}
	patched := &resourcev1.ResourceClaim{}
	if err := json.Unmarshal(text, patched); err != nil {
		return nil, err
	}
	return s.update(patched, call.Subresource)
}

func (s *claimServer) remove(call Call) (*resourcev1.ResourceClaim, error) {
	old, err := s.get(call.Namespace, call.Name)
	if err != nil || s.dry {
		return old, err
	}
	if len(old.Finalizers) > 0 {
		return nil, fmt.Errorf("the recorder is wrong: %s is deleted with finalizers", old.Name)
	}
	delete(s.claims, old.Namespace+"/"+old.Name)
	s.informer.change(old, nil)
	return old, nil
}

func (s *claimServer) store(old, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim = asStored(claim)
	s.version++
	claim.ResourceVersion = strconv.Itoa(s.version)
	if s.dry {
		return claim
	}
	s.claims[claim.Namespace+"/"+claim.Name] = claim
	if old == nil {
		s.informer.change(nil, claim)
	} else {
		s.informer.change(old, claim)
	}
	return claim.DeepCopy()
}

// replace lets the informer report another state of a claim. The result takes that back.
func (s *claimServer) replace(claim *resourcev1.ResourceClaim) func() {
	old, err := s.get(claim.Namespace, claim.Name)
	if err != nil {
		old = nil
	}
	s.store(old, claim)
	return func() {
		if old != nil {
			s.store(claim, old)
			return
		}
		delete(s.claims, claim.Namespace+"/"+claim.Name)
		s.informer.change(claim, nil)
	}
}

// asStored is a copy as it comes back out of a store: of a stamp only the seconds are kept.
func asStored(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	text, err := json.Marshal(claim)
	stored := &resourcev1.ResourceClaim{}
	if err = errors.Join(err, json.Unmarshal(text, stored)); err != nil {
		panic(err)
	}
	return stored
}

// prepareDevices plays the driver: when a claim that nobody used is reserved, every condition that its devices wait for
// is true.
func (s *claimServer) prepareDevices(old, claim *resourcev1.ResourceClaim) {
	if s.dry || claim.Status.Allocation == nil || len(old.Status.ReservedFor) > 0 || len(claim.Status.ReservedFor) == 0 {
		return
	}
	ready := claim.DeepCopy()
	for _, r := range claim.Status.Allocation.Devices.Results {
		if len(r.BindingConditions) == 0 {
			continue
		}
		same := func(d resourcev1.AllocatedDeviceStatus) bool {
			return d.Driver == r.Driver && d.Pool == r.Pool && d.Device == r.Device
		}
		ready.Status.Devices = slices.DeleteFunc(ready.Status.Devices, same)
		device := resourcev1.AllocatedDeviceStatus{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
		for _, name := range r.BindingConditions {
			device.Conditions = append(device.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Prepared"})
		}
		ready.Status.Devices = append(ready.Status.Devices, device)
	}
	if len(ready.Status.Devices) > 0 {
		s.store(claim, ready)
	}
}

// requestContext is that of a request by a user that may do anything.
func requestContext(verb, subresource, namespace string) context.Context {
	ctx := genericrequest.WithNamespace(context.Background(), namespace)
	ctx = genericrequest.WithUser(ctx, &user.DefaultInfo{Name: "system:kube-scheduler"})
	return genericrequest.WithRequestInfo(ctx, &genericrequest.RequestInfo{
		IsResourceRequest: true, Verb: verb, APIGroup: "resource.k8s.io", APIVersion: "v1", Resource: "resourceclaims",
		Subresource: subresource, Namespace: namespace,
	})
}

func withoutVersions(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim = claim.DeepCopy()
	claim.ResourceVersion, claim.UID = "", ""
	return claim
}

// withoutDumps replaces objects that Go prints into a text; they have addresses and are of no use.
func withoutDumps(text string) string {
	const start, end = "Invalid value: {", "}: "
	for from := 0; ; {
		i := strings.Index(text[from:], start)
		if i < 0 {
			return text
		}
		open := from + i + len(start)
		length := strings.LastIndex(text[open:], end)
		if length < 0 {
			return text
		}
		text = text[:open] + "..." + text[open+length:]
		from = open
	}
}

// frozen is the call as it is now; the scheduler may go on to change its objects.
func frozen(call Call) Call {
	if call.Object != nil {
		text, err := encode(call.Object)
		if err != nil {
			panic(err)
		}
		call.Object = json.RawMessage(text)
	}
	return call
}

func compact(text []byte) json.RawMessage {
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(err)
	}
	out, err := encode(tree)
	if err != nil {
		panic(err)
	}
	return out
}
