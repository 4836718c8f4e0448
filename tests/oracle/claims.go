package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Allocation is what the plugin sets aside for one claim on one node.
type Allocation struct {
	Claim      string                                `json:"claim"`
	Requests   *[]resourcev1.DeviceRequest           `json:"requests,omitempty"`
	Mappings   []v1.ContainerExtendedResourceRequest `json:"mappings,omitempty"`
	Allocation any                                   `json:"allocation"`
}

// Bind is what Reserve and PreBind of the plugin do.
type Bind struct {
	Node      string   `json:"node"`
	Calls     []Call   `json:"calls"`
	Events    []string `json:"events,omitempty"`
	Waiting   bool     `json:"waiting,omitempty"`
	Error     string   `json:"error,omitempty"`
	Unreserve []Call   `json:"unreserve,omitempty"`
}

// PostFilter is what the plugin does for a pod that fits nowhere. It picks at random: OneOf has all lists of calls.
type PostFilter struct {
	Code   string   `json:"code"`
	Reason string   `json:"reason"`
	OneOf  [][]Call `json:"oneOf"`
}

// Earlier is a pod that the scheduler placed before.
type Earlier struct {
	Pod         json.RawMessage `json:"pod"`
	Stage       string          `json:"stage"`
	Node        string          `json:"node"`
	Allocations []Allocation    `json:"allocations"`
}

// Event is what an informer reports.
type Event struct {
	Kind string          `json:"kind"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new"`
}

const tries = 96 // of a random choice among a few claims

// claimsPlugin makes the plugin of the pod's profile, with its arguments.
func claimsPlugin(ctx context.Context, cfg *schedconfig.KubeSchedulerConfiguration, scheduler string, profile framework.Framework) (*dynamicresources.DynamicResources, error) {
	var args runtime.Object = &schedconfig.DynamicResourcesArgs{}
	for _, p := range cfg.Profiles {
		for _, c := range p.PluginConfig {
			if p.SchedulerName == scheduler && c.Name == names.DynamicResources {
				args = c.Args
			}
		}
	}
	pl, err := dynamicresources.New(ctx, args, profile, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return nil, err
	}
	return pl.(*dynamicresources.DynamicResources), nil
}

func (w *world) setAsideOnAll(ctx context.Context, c *cycle, out *Expect) (err error) {
	out.Allocations = map[string][]Allocation{}
	for _, info := range c.feasible {
		name := info.Node().Name
		if out.Allocations[name], err = w.allocations(ctx, c.state, name); err != nil {
			return err
		}
	}
	return nil
}

// allocations reserves the node for a moment, and says what was set aside, in the order of the pod.
func (w *world) allocations(ctx context.Context, state fwk.CycleState, node string) ([]Allocation, error) {
	w.claims.dry = true
	defer func() { w.claims.dry = false }()
	if s := w.plugin.Reserve(ctx, state, w.pod, node); !s.IsSuccess() {
		return nil, fmt.Errorf("Reserve on %s: %w", node, s.AsError())
	}
	defer w.plugin.Unreserve(ctx, state, w.pod, node)
	return w.setAside(state, node)
}

func (w *world) setAside(state fwk.CycleState, node string) ([]Allocation, error) {
	found := []Allocation{}
	tracker := w.profile.SharedDRAManager().ResourceClaims()
	for i := range w.pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(w.pod, &w.pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := tracker.Get(w.pod.Namespace, *name)
		if err != nil {
			return nil, err
		}
		if allocation := tracker.GetPendingAllocation(claim.UID); allocation != nil {
			found = append(found, Allocation{Claim: claim.Namespace + "/" + claim.Name, Allocation: allocation})
		}
	}
	claim, mappings := extendedClaim(state, node)
	if claim != nil {
		if allocation := tracker.GetPendingAllocation(claim.UID); allocation != nil {
			found = append(found, Allocation{
				Claim: claim.Name, Requests: &claim.Spec.Devices.Requests, Mappings: mappings, Allocation: allocation,
			})
		}
	}
	return found, nil
}

// extendedClaim reads the claim that the plugin made up for extended resources; it keeps that to itself.
func extendedClaim(state fwk.CycleState, node string) (*resourcev1.ResourceClaim, []v1.ContainerExtendedResourceRequest) {
	data, err := state.Read(names.DynamicResources)
	if err != nil {
		return nil, nil
	}
	kept := hidden(reflect.ValueOf(data).Elem().FieldByName("nodeAllocations")).MapIndex(reflect.ValueOf(node))
	if !kept.IsValid() {
		return nil, nil
	}
	copied := reflect.New(kept.Type()).Elem()
	copied.Set(kept)
	claim := hidden(copied.FieldByName("extendedResourceClaim")).Interface().(*resourcev1.ResourceClaim)
	return claim, hidden(copied.FieldByName("containerResourceRequestMappings")).Interface().([]v1.ContainerExtendedResourceRequest)
}

func hidden(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}

// bind lets the plugin reserve and prepare the node in a cycle of its own.
func (w *world) bind(ctx context.Context, node string) (*Bind, error) {
	c, err := w.cycle(ctx, node)
	if err != nil {
		return nil, err
	}
	if s := w.plugin.Reserve(ctx, c.state, w.pod, node); !s.IsSuccess() {
		return nil, fmt.Errorf("Reserve on %s: %w", node, s.AsError())
	}
	w.claims.calls = nil
	out := &Bind{Node: node}
	done := make(chan *fwk.Status, 1)
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	waits := w.events.waits(running)
	go func() { done <- w.plugin.PreBind(running, c.state, w.pod, node) }()
	var status *fwk.Status
	select {
	case status = <-done:
	case <-waits: // the plugin looks at once, and then every few seconds
		out.Waiting = true
		cancel()
		<-done
	}
	out.Calls, out.Events = taken(&w.claims.calls), w.events.texts
	if !out.Waiting && !status.IsSuccess() {
		out.Error = withoutDumps(status.AsError().Error())
		w.plugin.Unreserve(ctx, c.state, w.pod, node)
		out.Unreserve = w.claims.calls
		w.claims.calls = nil
	}
	return out, nil
}

// eventList is the recorder of events that the plugins write to.
type eventList struct {
	texts []string
	said  chan struct{}
}

func (e *eventList) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e.texts = append(e.texts, kind+" "+reason+" "+fmt.Sprintf(note, args...))
	close(e.said)
}

func (e *eventList) WithLogger(klog.Logger) events.EventRecorderLogger { return e }

// waits empties the list. The channel is closed half a second after the plugin has said that it waits.
func (e *eventList) waits(ctx context.Context) <-chan struct{} {
	closed, said := make(chan struct{}), make(chan struct{})
	e.texts, e.said = nil, said
	go func() {
		select {
		case <-said:
			time.Sleep(500 * time.Millisecond)
			close(closed)
		case <-ctx.Done():
		}
	}()
	return closed
}

func taken(calls *[]Call) []Call {
	found := append([]Call{}, *calls...)
	*calls = nil
	return found
}

// afterFilter asks the plugin again and again what it does for a pod that fits nowhere.
func (w *world) afterFilter(ctx context.Context, c *cycle) (*PostFilter, error) {
	w.claims.dry = true
	defer func() { w.claims.dry = false }()
	var out *PostFilter
	lists := map[string][]Call{}
	for range tries {
		w.claims.calls = nil
		_, s := w.plugin.PostFilter(ctx, c.state, w.pod, c.diagnosis.NodeToStatus)
		calls := taken(&w.claims.calls)
		text, err := encode(calls)
		if err != nil {
			return nil, err
		}
		lists[string(text)] = calls
		one := &PostFilter{Code: s.Code().String(), Reason: withoutDumps(s.Message())}
		if out != nil && *one.said() != *out.said() {
			return nil, fmt.Errorf("no single answer: PostFilter says %v and %v", one.said(), out.said())
		}
		out = one
	}
	for _, key := range sets.List(sets.KeySet(lists)) {
		out.OneOf = append(out.OneOf, lists[key])
	}
	return out, nil
}

func (p *PostFilter) said() *[2]string { return &[2]string{p.Code, p.Reason} }

// place schedules an earlier pod on the first of the best nodes, and lets it stay there.
func (w *world) place(ctx context.Context, earlier *Earlier) error {
	pod := &v1.Pod{}
	if err := strictInto(earlier.Pod, pod); err != nil {
		return fmt.Errorf("earlier: %w", err)
	}
	restoreDefaults(pod)
	incoming := w.pod
	w.pod = pod
	defer func() { w.pod = incoming }()
	c, err := w.cycle(ctx)
	if err != nil {
		return err
	}
	if len(c.failures) > 0 || len(c.feasible) == 0 {
		return fmt.Errorf("the earlier pod %s has no node", pod.Name)
	}
	scores := &Expect{Scores: map[string]map[string]int64{}}
	if err := w.score(ctx, c.state, c.feasible, scores); err != nil {
		return err
	}
	earlier.Node = scores.Best[0]
	if earlier.Allocations, err = w.allocations(ctx, c.state, earlier.Node); err != nil {
		return err
	}
	switch earlier.Stage {
	case "bound":
		bound, err := w.bind(ctx, earlier.Node)
		if err != nil {
			return err
		}
		if bound.Error != "" || bound.Waiting {
			return fmt.Errorf("the earlier pod %s is not bound: %s", pod.Name, bound.Error)
		}
	case "reserved":
		if s := w.plugin.Reserve(ctx, c.state, pod, earlier.Node); !s.IsSuccess() {
			return s.AsError()
		}
	default:
		return fmt.Errorf("earlier: unknown stage %q", earlier.Stage)
	}
	placed := pod.DeepCopy()
	placed.Spec.NodeName = earlier.Node
	logger := klog.FromContext(ctx)
	if err := w.sched.Cache.AssumePod(logger, placed); err != nil {
		return err
	}
	return w.sched.Cache.UpdateSnapshot(logger, w.snapshot)
}

// hints asks the plugin about each event alone, as the queue would.
func (w *world) hints(ctx context.Context, reported []Event) ([]string, error) {
	registered, err := w.plugin.EventsToRegister(ctx)
	if err != nil {
		return nil, err
	}
	answers := []string{}
	for _, event := range reported {
		var old, changed any
		restore := func() {}
		resource, action := fwk.ResourceClaim, fwk.Add
		if len(event.Old) > 0 {
			action = fwk.Update
		}
		switch event.Kind {
		case "ResourceClaim":
			claim := &resourcev1.ResourceClaim{}
			if err := strictInto(event.New, claim); err != nil {
				return nil, err
			}
			if len(event.Old) > 0 {
				before := &resourcev1.ResourceClaim{}
				if err := strictInto(event.Old, before); err != nil {
					return nil, err
				}
				old = before
			}
			changed, restore = claim, w.claims.replace(claim)
		case "Pod":
			pod := &v1.Pod{}
			if err := strictInto(event.New, pod); err != nil {
				return nil, err
			}
			resource, action, changed = fwk.Pod, fwk.UpdatePodGeneratedResourceClaim, pod
		default:
			return nil, fmt.Errorf("events: unknown kind %q", event.Kind)
		}
		answer := fwk.QueueSkip
		for _, r := range registered {
			if r.Event.Resource == resource && r.Event.ActionType&action != 0 {
				if answer, err = r.QueueingHintFn(klog.FromContext(ctx), w.pod, old, changed); err != nil {
					return nil, err
				}
			}
		}
		answers = append(answers, answer.String())
		restore()
	}
	return answers, nil
}

// pinner replaces what differs from run to run: shares and stamps that the cluster does not have.
type pinner struct {
	cluster string
	shares  map[string]string
}

// pin replaces in each list of allocations, and in the calls of a bind, what is drawn or read from a clock.
func pin(cluster json.RawMessage, out *Expect) (err error) {
	for node := range out.Allocations {
		if out.Allocations[node], err = pinnedAllocations(cluster, out.Allocations[node]); err != nil {
			return err
		}
	}
	if out.Bind == nil {
		return nil
	}
	p := &pinner{string(cluster), map[string]string{}}
	for _, calls := range [][]Call{out.Bind.Calls, out.Bind.Unreserve} {
		for i := range calls {
			if text, ok := calls[i].Object.(json.RawMessage); ok {
				if calls[i].Object, err = p.pinned(text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func pinnedAllocations(cluster json.RawMessage, allocations []Allocation) ([]Allocation, error) {
	p := &pinner{string(cluster), map[string]string{}}
	found := []Allocation{}
	for _, each := range allocations {
		text, err := encode(each.Allocation)
		if err != nil {
			return nil, err
		}
		if each.Allocation, err = p.pinned(text); err != nil {
			return nil, err
		}
		found = append(found, each)
	}
	return found, nil
}

func (p *pinner) pinned(text json.RawMessage) (json.RawMessage, error) {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	p.walk(tree)
	return encode(tree)
}

func (p *pinner) walk(tree any) {
	switch t := tree.(type) {
	case []any:
		for _, item := range t {
			p.walk(item)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(t)) {
			text, ok := t[key].(string)
			switch {
			case ok && key == "shareID" && !strings.Contains(p.cluster, text):
				if p.shares[text] == "" {
					p.shares[text] = "share-" + strconv.Itoa(len(p.shares)+1)
				}
				t[key] = p.shares[text]
			case ok && key == "allocationTimestamp" && !strings.Contains(p.cluster, text):
				t[key] = "now"
			default:
				p.walk(t[key])
			}
		}
	}
}
