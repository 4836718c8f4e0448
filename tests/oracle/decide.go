package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// decide goes through one scheduling cycle, asking about all nodes, and keeps
// what each extension point answers. With claims, it also keeps what the plugin
// for resource claims sets aside, writes and takes back.
func (w *world) decide(ctx context.Context, withClaims bool) (*Expect, error) {
	out := &Expect{Filter: map[string]*Verdict{}, Scores: map[string]map[string]int64{}}
	pod, profile := w.pod, w.profile

	for _, pl := range profile.PreEnqueuePlugins() {
		if s := pl.PreEnqueue(ctx, pod); !s.IsSuccess() {
			if !s.IsRejected() {
				return nil, fmt.Errorf("PreEnqueue %s: %w", pl.Name(), s.AsError())
			}
			out.PreEnqueue = verdict(s.WithPlugin(pl.Name()))
			return out, nil
		}
	}

	nodes, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		out.Message = scheduler.ErrNoNodesAvailable.Error()
		return out, nil
	}

	c, err := w.cycle(ctx)
	if err != nil {
		return nil, err
	}
	out.PreFilter, out.PreFilterNodes, out.Filter = c.preFilter, c.named, c.verdicts
	if len(c.failures) > 0 && !withClaims {
		return nil, errors.New(c.failures[0])
	}
	if len(c.failures) == 0 && len(c.feasible) > 0 {
		if err := w.score(ctx, c.state, c.feasible, out); err != nil {
			return nil, err
		}
	}
	if withClaims {
		if err := w.setAsideOnAll(ctx, c, out); err != nil {
			return nil, err
		}
	}
	if len(c.failures) > 0 {
		out.Error = &Failure{AnyOf: sets.List(sets.New(c.failures...))}
		return out, nil
	}
	if len(c.feasible) > 0 {
		if withClaims {
			out.Bind, err = w.bind(ctx, out.Best[0])
		}
		return out, err
	}

	out.Message = (&framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: c.diagnosis}).Error()
	if err := w.crossCheck(ctx, out.Message); err != nil {
		return nil, err
	}
	if withClaims {
		if out.PostFilter, err = w.afterFilter(ctx, c); err != nil {
			return nil, err
		}
	}
	for _, pl := range profile.ListPlugins().PostFilter.Enabled {
		if pl.Name == names.DefaultPreemption {
			return out, w.preempt(ctx, out)
		}
	}
	return out, nil
}

// cycle is one scheduling cycle up to and including Filter.
type cycle struct {
	state     fwk.CycleState
	diagnosis framework.Diagnosis
	preFilter *Verdict
	named     *[]string
	verdicts  map[string]*Verdict
	feasible  []fwk.NodeInfo
	failures  []string // what the cycle fails in, by node
}

// cycle asks PreFilter, and Filter about the given nodes, without names about
// all. What plugins keep in the state is theirs: whoever calls a plugin that
// writes there takes a cycle of its own.
func (w *world) cycle(ctx context.Context, only ...string) (*cycle, error) {
	nodes, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	c := &cycle{
		state: framework.NewCycleState(), verdicts: map[string]*Verdict{},
		diagnosis: framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()},
	}
	narrowed, status, narrowing := w.profile.RunPreFilterPlugins(ctx, c.state, w.pod)
	if status.IsRejected() {
		c.preFilter = verdict(status)
		c.diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		c.diagnosis.PreFilterMsg = status.Message()
		return c, nil
	}
	if !status.IsSuccess() {
		return nil, fmt.Errorf("PreFilter %s: %w", status.Plugin(), status.AsError())
	}
	excluded := fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing)))
	if !narrowed.AllNodes() {
		named := sets.List(narrowed.NodeNames)
		c.named = &named
		c.diagnosis.NodeToStatus.SetAbsentNodesStatus(excluded)
	}
	for _, info := range nodes {
		name := info.Node().Name
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			c.verdicts[name] = verdict(excluded)
			continue
		}
		s := w.profile.RunFilterPluginsWithNominatedPods(ctx, c.state, w.pod, info)
		switch {
		case s.IsSuccess():
			c.verdicts[name] = nil
			c.feasible = append(c.feasible, info)
		case s.IsRejected():
			c.verdicts[name] = verdict(s)
			c.diagnosis.NodeToStatus.Set(name, s)
		case s.Plugin() == names.DynamicResources:
			c.verdicts[name] = verdict(s)
			c.failures = append(c.failures, s.AsError().Error())
		default:
			return nil, fmt.Errorf("Filter %s on %s: %w", s.Plugin(), name, s.AsError())
		}
	}
	return c, nil
}

// crossCheck compares the message with the one of the scheduler's own cycle.
// They differ where the cycle tries the incoming pod's nominated node although
// PreFilter excluded it by name.
func (w *world) crossCheck(ctx context.Context, message string) error {
	info, err := framework.NewPodInfo(w.pod)
	if err != nil {
		return nil // an invalid affinity term: the cycle itself ignores this
	}
	_, err = w.sched.SchedulePod(ctx, w.profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	if err == nil || err.Error() != message {
		return fmt.Errorf("no single answer: the message %q differs from the scheduler's own cycle: %v", message, err)
	}
	return nil
}

func (w *world) score(ctx context.Context, state fwk.CycleState, feasible []fwk.NodeInfo, out *Expect) error {
	if s := w.profile.RunPreScorePlugins(ctx, state, w.pod, feasible); !s.IsSuccess() {
		return fmt.Errorf("PreScore %s: %w", s.Plugin(), s.AsError())
	}
	scored, s := w.profile.RunScorePlugins(ctx, state, w.pod, feasible)
	if !s.IsSuccess() {
		return fmt.Errorf("Score %s: %w", s.Plugin(), s.AsError())
	}
	weights := map[string]int64{}
	for _, pl := range w.profile.ListPlugins().Score.Enabled {
		weights[pl.Name] = int64(pl.Weight)
	}
	for _, node := range scored {
		row := map[string]int64{"total": node.TotalScore}
		for _, p := range node.Scores {
			row[p.Name] = p.Score / weights[p.Name]
		}
		out.Scores[node.Name] = row
		if len(out.Best) > 0 {
			top := out.Scores[out.Best[0]]["total"]
			if node.TotalScore < top {
				continue
			}
			if node.TotalScore > top {
				out.Best = nil
			}
		}
		out.Best = append(out.Best, node.Name)
	}
	sort.Strings(out.Best)
	return nil
}

func verdict(s *fwk.Status) *Verdict {
	reasons := append([]string{}, s.Reasons()...)
	if s.Plugin() == names.NodeResourcesFit {
		reasons = sortScalarReasons(reasons)
	}
	return &Verdict{Plugin: s.Plugin(), Code: s.Code().String(), Reasons: reasons}
}

// sortScalarReasons sorts what NodeResourcesFit reports in map order.
func sortScalarReasons(reasons []string) []string {
	fixed := sets.New("Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage")
	var head, tail []string
	for _, r := range reasons {
		if fixed.Has(r) {
			head = append(head, r)
		} else {
			tail = append(tail, r)
		}
	}
	sort.Strings(tail)
	return append(append([]string{}, head...), tail...)
}
