package main

import (
	"context"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// decide goes through one scheduling cycle, asking about all nodes, and keeps
// what each extension point answers.
func (w *world) decide(ctx context.Context) (*Expect, error) {
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

	state := framework.NewCycleState()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	var feasible []fwk.NodeInfo
	narrowed, status, narrowing := profile.RunPreFilterPlugins(ctx, state, pod)
	switch {
	case status.IsSuccess():
		excluded := fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing)))
		if !narrowed.AllNodes() {
			named := sets.List(narrowed.NodeNames)
			out.PreFilterNodes = &named
			diagnosis.NodeToStatus.SetAbsentNodesStatus(excluded)
		}
		for _, info := range nodes {
			name := info.Node().Name
			if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
				out.Filter[name] = verdict(excluded)
				continue
			}
			s := profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
			switch {
			case s.IsSuccess():
				out.Filter[name] = nil
				feasible = append(feasible, info)
			case s.IsRejected():
				out.Filter[name] = verdict(s)
				diagnosis.NodeToStatus.Set(name, s)
			default:
				return nil, fmt.Errorf("Filter %s on %s: %w", s.Plugin(), name, s.AsError())
			}
		}
	case status.IsRejected():
		out.PreFilter = verdict(status)
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
	default:
		return nil, fmt.Errorf("PreFilter %s: %w", status.Plugin(), status.AsError())
	}

	if len(feasible) > 0 {
		return out, w.score(ctx, state, feasible, out)
	}

	out.Message = (&framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: diagnosis}).Error()
	if err := w.crossCheck(ctx, out.Message); err != nil {
		return nil, err
	}
	for _, pl := range profile.ListPlugins().PostFilter.Enabled {
		if pl.Name == names.DefaultPreemption {
			return out, w.preempt(ctx, state, diagnosis.NodeToStatus, out)
		}
	}
	return out, nil
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
